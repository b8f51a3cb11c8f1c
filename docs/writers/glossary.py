"""The glossary, whose words are written by hand: here they are only put in order."""

from __future__ import annotations

from docs.links import ROOT

PAGE = ROOT / "docs" / "glossary.md"
_RULE = "|---|---|\n"


def glossary() -> str:
    before, rule, rows = PAGE.read_text(encoding="utf-8").partition(_RULE)
    return before + rule + "".join(sorted(rows.splitlines(keepends=True), key=word))


def word(row: str) -> str:
    """What a row is about."""
    return row.split("|")[1].strip().lower()
