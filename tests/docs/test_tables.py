"""Every example of docs/tables.md does what it says."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT
from tests.docs.pages import examples, run_example

PAGE = ROOT / "docs" / "tables.md"


def test_the_page_works_as_written(tmp_path: Path) -> None:
    """Its examples follow each other, on one store."""
    names: dict[str, object] = {}
    found = [example for section in examples(PAGE).values() for example in section]
    assert len(found) == 5
    for example in found:
        run_example(example, names, {"/var/lib/catalog": str(tmp_path / "catalog")})
