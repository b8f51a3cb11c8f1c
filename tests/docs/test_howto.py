"""How-to pages do what they say: every diff applies, every command ends and prints as shown."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from catalog.spark.session import local_session
from tests.conftest import IDENTITY, ROOT, run
from tests.docs.pages import Command, Diff, Example, blocks, run_command
from tests.docs.troubles import TROUBLES

STORES = "/srv/"
"""Where the stores of the pages are."""
ON_SPARK = {"check-a-production-store"}


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "howto").glob("*.md")), ids=lambda page: page.stem)
@pytest.mark.xdist_group("sessions")
def test_a_how_to_page_works_as_written(page: Path, checkout: Path, tmp_path: Path) -> None:
    """A new colleague can follow it to the letter, in a fresh clone."""
    places = {STORES: f"{tmp_path / 'srv'}/"}
    (tmp_path / "srv").mkdir()
    for name, make in TROUBLES.get(page.stem, {}).items():
        make(tmp_path / "srv" / name)
    if page.stem in ON_SPARK:
        local_session(settings={"spark.master": "local[2]"})
    commands = 0
    for block in blocks(page):
        match block:
            case Diff():
                _apply(block.text, checkout)
            case Command():
                run_command(block, checkout, places)
                commands += 1
            case Example():
                pass  # a sketch of what might stand in a migration
    assert commands > 0
    run("git", "add", "--all", cwd=checkout)
    run("git", *IDENTITY, "commit", "-q", "--allow-empty", "-m", "followed", cwd=checkout)
    assert run("git", "status", "--porcelain", cwd=checkout) == ""


def _apply(diff: str, checkout: Path) -> None:
    done = subprocess.run(
        ["git", "apply", "--recount", "-"], input=diff, cwd=checkout, text=True, stderr=subprocess.PIPE, check=False
    )
    assert done.returncode == 0, f"{done.stderr}\n{diff}"
