"""How-to pages do what they say: every diff applies, every command ends and prints as shown."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from catalog.engine.spark.session import local_session
from tests.conftest import IDENTITY, ROOT, run
from tests.docs.pages import Command, Diff, Example, apply_diff, blocks, run_command, run_example
from tests.docs.troubles import TROUBLES

STORES = "/srv/"
"""Where the stores of the pages are."""
SKETCHES = {
    "write-your-first-migration": """
from catalog.generated import objects_v22_pb2 as v22
from catalog.generated import objects_v23_pb2 as v23
{code}
rows = [migrate_role(v22.RoleKey(), v22.RoleValue(name="ann", permissions=mask)) for mask in (1, 2)]
assert [(value.name, value.colour) for _, value in rows] == [("ann", "grey"), ("ann", "red")]
"""
}
"""Examples of what might stand in a migration of the version that the page makes, and how they are tried with it."""
ON_SPARK = {"ask-a-store", "check-a-production-store"}
ELSEWHERE = "make-your-own-catalog"
"""It is followed outside of a clone, with the wheel: tests/docs/test_make_your_own_catalog.py."""
PAGES = [page for page in sorted((ROOT / "docs" / "howto").glob("*.md")) if page.stem != ELSEWHERE]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_how_to_page_works_as_written(page: Path, checkout: Path, tmp_path: Path) -> None:
    """A new colleague can follow it to the letter, in a fresh clone."""
    places = {STORES: f"{tmp_path / 'srv'}/"}
    (tmp_path / "srv").mkdir()
    for name, make in TROUBLES.get(page.stem, {}).items():
        make(tmp_path / "srv" / name)
    if page.stem in ON_SPARK:
        local_session(settings={"spark.master": "local[2]"})
    commands = 0
    names: dict[str, object] = {}
    sketches: list[str] = []
    for block in blocks(page):
        match block:
            case Diff():
                apply_diff(block.text, checkout)
            case Command():
                run_command(block, checkout, places)
                commands += 1
            case Example() if page.stem in SKETCHES:
                sketches.append(block.code)
            case Example():
                with contextlib.chdir(checkout):
                    run_example(block, names, places)
    assert commands > 0
    for code in sketches:
        run(".venv/bin/python", "-c", SKETCHES[page.stem].format(code=code), cwd=checkout)
    run("git", "add", "--all", cwd=checkout)
    run("git", *IDENTITY, "commit", "-q", "--allow-empty", "-m", "followed", cwd=checkout)
    assert run("git", "status", "--porcelain", cwd=checkout) == ""
