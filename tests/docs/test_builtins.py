"""Every example of docs/builtins.md does what it says."""

from __future__ import annotations

from pathlib import Path

from catalog.builtins import DECLARED
from tests.conftest import ROOT
from tests.docs.pages import examples, run_example

PAGE = ROOT / "docs" / "builtins.md"


def test_the_examples_run_in_order(tmp_path: Path) -> None:
    """Each builds on those before it."""
    names: dict[str, object] = {}
    for found in examples(PAGE).values():
        for example in found:
            run_example(example, names, {"/var/lib/catalog": str(tmp_path / "store")})


def test_the_page_has_every_builtin() -> None:
    """And no others."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    listed = {line.split("`")[1] for line in lines if line.startswith("| `")}
    assert listed == {builtin.name.object_name for builtin in DECLARED.builtins}
