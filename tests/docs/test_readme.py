"""The README's example does what it says."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT
from tests.docs.pages import examples, run_example


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    """What a newcomer copies works."""
    (example,) = examples(ROOT / "README.md")["Use a store"]
    run_example(example, {}, {"my-catalog": str(tmp_path / "store")})
