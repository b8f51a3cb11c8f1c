"""The README's examples do what they say."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT
from tests.docs.pages import examples, run_example


def test_the_examples_of_the_readme_run(tmp_path: Path) -> None:
    """What a newcomer copies works, in the order in which it stands there."""
    names: dict[str, object] = {}
    for found in examples(ROOT / "README.md").values():
        for example in found:
            run_example(example, names, {"my-catalog": str(tmp_path / "store")})
