"""The glossary: written by hand, sorted here."""

from __future__ import annotations

from docs.links import ROOT

PAGE = ROOT / "docs" / "glossary.md"
_RULE = "|---|---|\n"


def glossary() -> str:
    before, rule, rows = PAGE.read_text(encoding="utf-8").partition(_RULE)
    return before + rule + "".join(sorted(rows.splitlines(keepends=True), key=word))


def word(row: str) -> str:
    """Return the word that a row explains."""
    return row.split("|")[1].strip().lower()
