"""The glossary has each word once, where people look for it."""

from __future__ import annotations

from docs.writers.glossary import PAGE, glossary, word


def test_words_stand_in_their_order_and_once() -> None:
    """As in any book of words; `./dev docs --write` sorts them."""
    text = PAGE.read_text(encoding="utf-8")
    assert text == glossary()
    words = [word(row) for row in text.splitlines() if row.startswith("| ")]
    assert len(words) == len(set(words)) > 100
