"""catalog create: the recipe of the gate, as a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.cli.answer import ExitCode
from tests.cli.commands import call, complaint, fail, text
from tests.gate.project_copy import HASHES, NEXT_SNAPSHOT, NEXT_STEP, NEXT_TEST, OBJECTS, ROLE_FIELD, Copy

WHY = "roles have a colour"


@pytest.fixture
def coloured(tree: Copy) -> Copy:
    """The project with a field added to roles, and nothing else done yet."""
    tree.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  string colour = 9;")
    return tree


def test_a_version_is_made_of_edited_types(coloured: Copy) -> None:
    """Everything that a version is, and what is left to fill in; recorded again when that is done."""
    told = call("create", WHY, "--root", coloured.root)
    assert (told["version"], told["summary"]) == (23, f"made v23: {WHY}")
    assert {NEXT_SNAPSHOT, NEXT_STEP, NEXT_TEST, HASHES} <= set(told["written"])
    assert all(coloured.path(path).is_file() for path in told["written"])
    assert told["ready"] is False
    assert NEXT_STEP in told["left"]
    recorded = coloured.read(HASHES)
    coloured.append(NEXT_STEP, "\n")
    again = call("create", "--amend", "--root", coloured.root)
    assert again["version"] == 23
    assert coloured.read(HASHES) != recorded


def test_what_is_left_is_shown_with_the_command_that_ends_it(coloured: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project is found from a folder inside of it."""
    monkeypatch.chdir(coloured.path("catalog/migrations"))
    shown = text("create", WHY)
    assert shown.startswith(f"made v23: {WHY}\n")
    assert "Left to do:" in shown
    assert shown.splitlines()[-1].startswith("then run: ")


def test_a_version_without_a_reason_or_a_change_is_refused(tree: Copy, tmp_path: Path) -> None:
    """And nothing is written; one that changes rows only is asked for."""
    before = tree.digest()
    for words in (["create"], ["create", ""], ["create", WHY], ["create", "--renumber"]):
        complaint(*words, "--root", tree.root, expect=ExitCode.USAGE)
    assert "exclude each other" in fail("create", "--amend", "--renumber", expect=ExitCode.USAGE).message
    assert fail("create", WHY, "--root", tmp_path / "none", expect=ExitCode.USAGE).code == "UsageError"
    assert tree.digest() == before
    assert call("create", WHY, "--same-types", "--root", tree.root)["version"] == 23
