"""The glossary has each word once, where people look for it."""

from __future__ import annotations

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "glossary.md"


def test_words_stand_in_their_order_and_once() -> None:
    """As in any book of words."""
    lines = PAGE.read_text(encoding="utf-8").partition("|---|---|\n")[2].splitlines()
    words = [line.split("|")[1].strip().lower() for line in lines]
    assert words == sorted(set(words))
