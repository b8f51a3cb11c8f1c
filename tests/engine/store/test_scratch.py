"""Scratch copies of read-only and savepoint: locked while their process lives, swept when it died."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT

OPEN = """
import sys
from catalog import open_catalog
with open_catalog(sys.argv[1], sys.argv[2]):
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("mode", ["read-only", "savepoint"])
def test_the_copy_of_a_killed_process_is_swept_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """A copy whose process lives stays."""
    store, scratch = tmp_path / "store", tmp_path / "scratch"
    scratch.mkdir()
    generate(PROJECT, store, PROJECT.current - 1, 20, 1)  # this step needs no Spark
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", str(scratch))

    def copies() -> set[Path]:
        return {*scratch.glob(f"catalog-{mode}-*")}

    with subprocess.Popen(
        [sys.executable, "-c", OPEN, str(store), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        left = copies()
        assert len(left) == 1
        with open_catalog(store, mode):
            assert len(copies()) == 2, "the other process lives"
        assert copies() == left
        process.kill()
        process.wait()
    assert copies() == left
    with open_catalog(store, mode):
        assert len(copies()) == 1
        assert copies() != left
    assert copies() == set()
