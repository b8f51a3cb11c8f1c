"""Releasing, restyling and retiring: what freezes, what may still change its looks, and what ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from build_tools.project_tree import GateError
from build_tools.sources import git_history
from build_tools.sources.hashes import Hashes, dump, parse, source_hash
from build_tools.verbs.release import release
from build_tools.verbs.restyle import restyle
from build_tools.verbs.retire import retire
from tests.gate.project_copy import (
    AMEND,
    HASHES,
    NEWEST_STEP,
    OBJECTS,
    ROLE_FIELD,
    SNAPSHOT,
    UPGRADE,
    VERSION,
    Copy,
    snapshot,
    step,
)

COMMENT = "\n# Said better.\n"


def colour(tree: Copy) -> None:
    """Make v23 and finish it."""
    tree.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  string colour = 9;")
    tree.next_version('wire_compatible("role")')


def test_a_release_freezes_every_snapshot_and_migration(tree: Copy) -> None:
    """It marks each entry, sets the build's version, and says what to commit and tag."""
    made = release(tree.tree, "0.1.0")
    assert set(made.written) == {HASHES, VERSION}
    assert made.summary == "froze everything up to v22 as 0.1.0; commit, then: git tag v0.1.0"
    assert {entry.released for entry in tree.hashes.snapshots.values()} == {"0.1.0"}
    assert {entry.released for entry in tree.hashes.migrations.values()} == {"0.1.0"}
    assert '\nBUILD: Final = "0.1.0"\n' in tree.read(VERSION)
    tree.assert_clean()


def test_a_clean_check_asks_git_once_for_each_kind_of_fact(released: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processes are few, however long the history is: names, commits, contents, and the tags that lead here."""
    colour(released)
    released.release("0.2.0")
    asked: list[str] = []
    ask = git_history._git  # noqa: SLF001 - the one place that starts git

    def counted(root: Path, *words: str, stdin: bytes = b"") -> bytes | None:
        asked.append(next(word for word in words if word in {"rev-parse", "log", "cat-file", "tag", "merge-base"}))
        return ask(root, *words, stdin=stdin)

    monkeypatch.setattr(git_history, "_git", counted)
    assert released.check(require_history=True).ok
    assert sorted(asked) == ["cat-file", "log", "rev-parse", "tag"]


def test_a_second_release_freezes_only_what_is_new(released: Copy) -> None:
    """What the first release froze keeps its mark, and history agrees."""
    colour(released)
    released.commit("roles have a colour")
    released.release("0.2.0")
    assert released.hashes.snapshots[22].released == "0.1.0"
    assert released.hashes.snapshots[23].released == "0.2.0"
    assert released.hashes.migrations["v22_to_v23"].released == "0.2.0"
    report = released.check(require_history=True)
    assert (report.findings, report.notes) == ((), ())


@pytest.mark.parametrize(
    "number", ["", "1", "1.0", "v1.0.0", "1.0.0.dev1", "1.0.0 ", "1.-1.0", "\N{ARABIC-INDIC DIGIT ONE}.0.0"]
)
def test_a_release_is_three_numbers(tree: Copy, number: str) -> None:
    """Anything else is refused, and nothing changes."""
    before = tree.digest()
    with pytest.raises(GateError, match="is not a release") as refused:
        release(tree.tree, number)
    assert refused.value.fix == "python -m build_tools release 1.2.3"
    assert tree.digest() == before


@pytest.mark.parametrize("number", ["0.1.0", "0.0.9", "0.0.10"])
def test_releases_ascend(released: Copy, number: str) -> None:
    """By their numbers, not by their letters."""
    before = released.digest()
    with pytest.raises(GateError, match=r"0\.1\.0 is already released") as refused:
        release(released.tree, number)
    assert refused.value.fix == "choose a higher number"
    assert released.digest() == before


def test_a_release_with_findings_is_refused(tree: Copy) -> None:
    """A release freezes what it finds, so it must find nothing wrong."""
    tree.append(NEWEST_STEP, COMMENT)
    before = tree.digest()
    with pytest.raises(GateError, match="the gate has 1 finding") as refused:
        release(tree.tree, "0.1.0")
    assert refused.value.fix == "python -m build_tools check"
    assert tree.digest() == before


def test_a_release_with_unwritten_migrations_is_refused(tree: Copy) -> None:
    """A released migration never changes, so it is finished first."""
    tree.append(NEWEST_STEP, "\n\ndef later():\n    raise NotImplementedError\n")
    tree.rerecord("v21_to_v22")
    tree.edit("pyproject.toml", "unwritten = []", 'unwritten = ["v21_to_v22"]')
    tree.assert_clean()
    before = tree.digest()
    with pytest.raises(GateError, match="not written yet: v21_to_v22") as refused:
        release(tree.tree, "0.1.0")
    assert refused.value.fix == "write them, and remove them from `unwritten` under [tool.catalog]"
    assert tree.digest() == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Version 21', '"""The step from version 21'),
        ("\n\n\ndef upgrade", "\n\n\n# Why four.\n\n\ndef upgrade"),
        ('wire_compatible("role"),', 'wire_compatible(\n            "role",\n        ),'),
        ('wire_compatible("role")', "wire_compatible('role')"),
    ],
)
def test_a_cosmetic_edit_of_a_released_migration_is_accepted(released: Copy, old: str, new: str) -> None:
    """Comments, docstrings and layout may change after a proof, which every later check repeats from history."""
    released.edit(NEWEST_STEP, old, new)
    released.only("M609", NEWEST_STEP)
    made = restyle(released.tree, "v21_to_v22")
    assert made.written == (HASHES,)
    assert made.summary == "v21_to_v22 does the same as before; its new layout is recorded"
    released.assert_clean()
    released.commit("say it better")
    assert released.check(require_history=True).ok


def test_a_migration_may_be_restyled_again_and_again(released: Copy) -> None:
    """Each earlier hash stays in its entry, and each is proven."""
    released_hash = released.hashes.migrations["v21_to_v22"].hash
    for _ in range(2):
        released.append(NEWEST_STEP, COMMENT)
        restyle(released.tree, "v21_to_v22")
        released.commit("say it better")
    assert released.hashes.migrations["v21_to_v22"].restyled[0] == released_hash
    assert len(released.hashes.migrations["v21_to_v22"].restyled) == 2
    assert released_hash in released.read("catalog/generated/__init__.py")
    released.assert_clean()


def test_a_real_edit_is_no_restyling(released: Copy) -> None:
    """The syntax tree differs, so the command refuses and says how to make the change."""
    released.edit(NEWEST_STEP, 'wire_compatible("role"),', 'wire_compatible("role"), wire_compatible("comment"),')
    before = released.digest()
    with pytest.raises(GateError, match="v21_to_v22 no longer does what it did when it was released") as refused:
        restyle(released.tree, "v21_to_v22")
    assert refused.value.fix == f"git checkout v0.1.0 -- {NEWEST_STEP}\nand change it in a new version: {SNAPSHOT}"
    assert released.digest() == before


def test_a_restyling_written_by_hand_without_its_proof_is_refused(released: Copy) -> None:
    """Claiming that a real edit is cosmetic is found by comparing with history."""
    entry = released.hashes.migrations["v21_to_v22"]
    released.edit(NEWEST_STEP, 'wire_compatible("role"),', 'wire_compatible("role"), wire_compatible("comment"),')
    forged = source_hash(released.path(NEWEST_STEP).read_bytes())
    released.record_migration("v21_to_v22", replace(entry, hash=forged, restyled=(entry.hash,)))
    finding = released.only("H303", HASHES)
    assert finding.what.startswith("v21_to_v22, released in 0.1.0, was sha256:")
    assert SNAPSHOT in finding.fix


def test_restyling_needs_something_released_that_changed(released: Copy) -> None:
    """Each refusal says what to do instead."""
    with pytest.raises(GateError, match="v21_to_v22 has not changed"):
        restyle(released.tree, "v21_to_v22")
    for name in ("v1_to_v2", "../version", "objects_v18"):
        with pytest.raises(GateError, match="there is no migration") as refused:
            restyle(released.tree, name)
        assert refused.value.fix == "give a name such as v15_to_v16"


def test_restyling_an_unreleased_migration_is_not_needed(tree: Copy) -> None:
    """Until it is released it changes freely."""
    tree.append(NEWEST_STEP, COMMENT)
    with pytest.raises(GateError, match="v21_to_v22 is not released") as refused:
        restyle(tree.tree, "v21_to_v22")
    assert refused.value.fix == AMEND


def test_restyling_without_history_is_refused(tree: Copy) -> None:
    """Without the released source there is nothing to compare with."""
    release(tree.tree, "0.1.0")
    tree.append(NEWEST_STEP, COMMENT)
    before = tree.digest()
    with pytest.raises(GateError, match="the released v21_to_v22 cannot be found") as refused:
        restyle(tree.tree, "v21_to_v22")
    assert refused.value.fix == "run this in a clone with the whole history"
    assert tree.digest() == before


def test_retiring_ends_old_versions_and_the_gate_is_clean(released: Copy) -> None:
    """Modules, snapshots, tests and arms of older versions go; every hash stays, and history agrees."""
    before, entries = released.digest(), released.hashes
    made = retire(released.tree, 17)
    gone = {
        *(snapshot(version) for version in (15, 16)),
        *(step(version) for version in (14, 15, 16)),
        *(f"tests/migrations/test_v{version}_to_v{version + 1}.py" for version in (14, 15, 16)),
        "catalog/migrations/legacy_json_objects.py",
    }
    assert before.keys() - released.digest().keys() == gone
    assert set(made.written) == {VERSION, UPGRADE, HASHES}
    assert set(made.removed) == gone
    assert made.summary == (
        "v17 is now the oldest version; remove other code for earlier versions, such as tests, yourself"
    )
    assert (released.hashes.snapshots, released.hashes.migrations) == (entries.snapshots, entries.migrations)
    assert "\nMIN_STASH_VERSION: Final = 17\n" in released.read(VERSION)
    assert "\nStashVersion = Literal[17, 18, 19, 20, 21, 22]\n" in released.read(VERSION)
    assert "case 16:" not in released.read(UPGRADE)
    released.assert_clean()
    released.commit("end support for v14 to v16")
    assert released.check(require_history=True).ok


def test_everything_but_the_current_version_can_be_retired(tree: Copy) -> None:
    """Then there is nothing to upgrade from."""
    retire(tree.tree, 22)
    assert list(tree.path("proto/old").iterdir()) == [tree.path(snapshot(22))]
    tree.assert_clean()


@pytest.mark.parametrize("minimum", [-1, 13, 14, 23])
def test_only_a_supported_version_can_become_the_oldest(tree: Copy, minimum: int) -> None:
    """The refusal says which, and nothing changes."""
    before = tree.digest()
    with pytest.raises(GateError, match=f"v{minimum} cannot become the oldest version") as refused:
        retire(tree.tree, minimum)
    assert refused.value.fix == "choose one of v15..v22"
    assert tree.digest() == before


def test_where_one_version_is_left_nothing_can_be_retired(tree: Copy) -> None:
    """There is no choice to offer."""
    retire(tree.tree, 22)
    with pytest.raises(GateError, match="v22 cannot become the oldest version") as refused:
        retire(tree.tree, 22)
    assert refused.value.why == "the supported versions are v22..v22"
    assert refused.value.fix == "there is nothing left to retire"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["v14_to_v15", "v21_to_v22"]', '[ "v21_to_v22"]'),
        ('[\n    "v14_to_v15",\n    "v15_to_v16",\n]', "[\n]"),
        ('["v21_to_v22"]', '["v21_to_v22"]'),
    ],
)
def test_a_retired_migration_is_no_longer_listed_as_unwritten(tree: Copy, before: str, after: str) -> None:
    """Whatever else is listed stays, and the file is written only if it changes."""
    for version in (14, 15, 21):
        if f"v{version}_to" in before:
            tree.append(step(version), "\n\ndef later():\n    raise NotImplementedError\n")
            tree.rerecord(f"v{version}_to_v{version + 1}")
    tree.edit("pyproject.toml", "unwritten = []", f"unwritten = {before}")
    tree.assert_clean()
    made = retire(tree.tree, 17)
    assert f"unwritten = {after}" in tree.read("pyproject.toml")
    assert ("pyproject.toml" in made.written) == (before != after)
    tree.assert_clean()


def test_a_release_marks_supported_versions_only(tree: Copy) -> None:
    """What was retired before its first release was never in one."""
    retire(tree.tree, 17)
    release(tree.tree, "0.1.0")
    marks = {version: entry.released for version, entry in tree.hashes.snapshots.items()}
    assert marks == {version: "0.1.0" if version >= 17 else None for version in range(15, 23)}
    steps = {name: entry.released for name, entry in tree.hashes.migrations.items()}
    assert steps == {f"v{v}_to_v{v + 1}": "0.1.0" if v >= 17 else None for v in range(14, 22)}
    tree.assert_clean()


def test_each_command_says_what_it_did_and_what_is_left(released: Copy) -> None:
    """Written and removed files, then what the gate finds."""
    released.append(NEWEST_STEP, COMMENT)
    run = released.call("restyle", "v21_to_v22")
    assert run.stdout == f"v21_to_v22 does the same as before; its new layout is recorded\n  {HASHES}\n\ngate: clean\n"
    released.write("catalog/roles.py", '"""Roles."""\n\nfrom catalog.generated import objects_v15_pb2\n')
    run = released.call("retire", "16")
    assert run.returncode == 0
    assert f"\n  {VERSION}\n" in run.stdout
    assert f"\n  {snapshot(15)} (removed)\n" in run.stdout
    assert "\n\nLeft to do:\n\nI700 a frozen type is used outside the migrations\n" in run.stdout
    assert run.stdout.endswith("\ngate: 1 finding\n")
    released.remove("catalog/roles.py")
    run = released.call("release", "0.2.0")
    assert run.stdout.startswith("froze everything up to v22 as 0.2.0; commit, then: git tag v0.2.0\n")
    assert run.stdout.endswith("\n\ngate: clean\n")


def test_a_number_that_only_a_retired_snapshot_used_is_still_refused(tree: Copy) -> None:
    """RoleValue.create_db had number 2 until v15, and no snapshot is left that says so."""
    retire(tree.tree, 17)
    tree.edit(OBJECTS, "reserved 2, 3, 4;", "reserved 3, 4;")
    tree.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  string colour = 2;")
    _, finding = tree.expect("S201", "T110")
    assert finding.path == OBJECTS
    assert finding.what == "RoleValue.colour = 2: `create_db`, since deleted, had that number"


def test_a_number_of_a_message_that_is_gone_is_still_refused(tree: Copy) -> None:
    """ColumnComment ended with v18; under its old name a new message cannot mean something else by the same numbers."""
    retire(tree.tree, 21)
    tree.append(OBJECTS, "\nmessage ColumnComment { string text = 1; }\n")
    _, finding = tree.expect("S201", "T110")
    assert finding.what == "ColumnComment.text = 1: `position` of an earlier ColumnComment had that number"


def test_a_field_that_was_renamed_before_the_oldest_version_is_no_reuse(tree: Copy) -> None:
    """Its number has only ever meant one thing."""
    tree.edit(OBJECTS, ROLE_FIELD, "optional uint32 client_oid = 8;")
    tree.next_version('wire_compatible("role")')
    tree.assert_clean()
    retire(tree.tree, 23)
    tree.assert_clean()


def test_retiring_twice_remembers_everything(tree: Copy) -> None:
    """The numbers of the first time stay."""
    retire(tree.tree, 17)
    retire(tree.tree, 20)
    assert tree.hashes.retired_numbers["RoleValue"][2] == "create_db"
    assert tree.hashes.retired_numbers["ItemValue"][6] == "comment"
    tree.assert_clean()


def test_a_restyled_migration_can_be_retired(released: Copy) -> None:
    """Its proof is in history, where its sources stay."""
    released.append(step(15), COMMENT)
    restyle(released.tree, "v15_to_v16")
    released.commit("say it better")
    retire(released.tree, 17)
    released.commit("end support for v14 to v16")
    released.assert_clean()


@pytest.mark.parametrize("path", [snapshot(15), snapshot(19), OBJECTS, HASHES, VERSION, UPGRADE])
def test_retiring_refuses_what_it_cannot_read_and_changes_nothing(tree: Copy, path: str) -> None:
    """The numbers of a snapshot must be remembered before it goes, and the rest must still build."""
    tree.write(path, b"\xff message {")
    before = tree.digest()
    with pytest.raises(GateError):
        retire(tree.tree, 17)
    assert tree.digest() == before


def test_remembered_numbers_survive_the_file() -> None:
    """Those of enum values may be negative."""
    hashes = Hashes(retired_numbers={"Mood": {-1: "MOOD_BAD", 0: "MOOD_UNSPECIFIED"}, "RoleValue": {2: "create_db"}})
    assert parse(dump(hashes)) == hashes
