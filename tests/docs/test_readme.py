"""The README's example does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

EXAMPLE = re.compile(r"(?ms)^```python\n(.*?)^```$")


def test_the_example_of_the_readme_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a newcomer copies works."""
    (example,) = EXAMPLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    exec(compile(example.replace("/var/lib/catalog", str(tmp_path / "store")), "README.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == "1 orders\n"
