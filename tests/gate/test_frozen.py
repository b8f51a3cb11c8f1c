"""Mistakes with what is frozen: snapshots, migrations and their recorded hashes, against the files and against git."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from build_tools.protos.types import compile_proto
from tests.gate.project_copy import (
    AMEND,
    HASHES,
    NEWEST_SNAPSHOT,
    NEWEST_STEP,
    OBJECTS,
    ROLE_FIELD,
    SNAPSHOT,
    Copy,
    snapshot,
    step,
)

OTHER_HASH = "sha256:" + "0" * 64
EDITED_HASH = "if the hash was edited: git checkout HEAD -- proto/hashes.json"
V18_ROLE_FIELD = "repeated RoleId member_of = 7;"
V18_FIELD = "repeated AclItem privileges = 9;"
"""A field of ItemValue, which the steps to v18 and from v18 both rewrite."""


def change_v18(tree: Copy) -> None:
    """Really change the types of v18, where every neighbour copes with it."""
    tree.edit(snapshot(18), V18_FIELD, f"{V18_FIELD}\n  string colour = 20;")


def record_v18(tree: Copy) -> None:
    """Edit the recorded hash of v18 so that it fits the file again."""
    types = compile_proto(tree.path(snapshot(18)).read_bytes())
    tree.record_snapshot(18, replace(tree.hashes.snapshots[18], hash=types.hash))


def test_a_finished_project_is_clean(tree: Copy) -> None:
    """What every test here starts from has no findings."""
    tree.assert_clean()


def test_this_project_is_clean(repository: Copy) -> None:
    """The real project passes its own gate."""
    repository.assert_clean()


def test_a_changed_snapshot_is_refused(tree: Copy) -> None:
    """While it is not released it can be restored, or recorded again if the change is meant."""
    change_v18(tree)
    finding = tree.only("S202", snapshot(18))
    assert finding.what == "objects_v18.proto is not what was recorded"
    assert finding.fix == f"git checkout HEAD -- {snapshot(18)}\nor, if the change is intended: {AMEND}\n{EDITED_HASH}"


def test_a_change_of_the_newest_snapshot_is_made_in_the_current_types(tree: Copy) -> None:
    """They are copied over the snapshot when it is recorded again, so that is where the change has to be."""
    tree.edit(NEWEST_SNAPSHOT, ROLE_FIELD, f"{ROLE_FIELD}\n  string colour = 9;")
    current, changed = tree.expect("S201", "S202")
    assert (current.path, changed.path) == (OBJECTS, NEWEST_SNAPSHOT)
    assert changed.fix == (
        f"git checkout HEAD -- {NEWEST_SNAPSHOT}\n"
        f"or, if the change is intended: make it in proto/objects.proto, then {AMEND}\n{EDITED_HASH}"
    )


def test_a_changed_snapshot_of_a_release_is_refused(released: Copy) -> None:
    """After the release it can only be restored, and the change made in a new version."""
    change_v18(released)
    finding = released.only("S202", snapshot(18))
    assert finding.what == "objects_v18.proto is not what was recorded when 0.1.0 was released"
    assert finding.fix == (
        f"git checkout v0.1.0 -- {snapshot(18)}\nand make the change in a new version: {SNAPSHOT}\n{EDITED_HASH}"
    )


def test_what_was_damaged_in_a_commit_is_restored_from_an_earlier_one(tree: Copy) -> None:
    """HEAD would bring back the damage itself, so the newest commit where the file was right is named."""
    tree.init()
    good = tree.git("rev-parse", "HEAD")[:10]
    change_v18(tree)
    tree.remove(step(16))
    tree.commit("damage")
    tree.remove(snapshot(17))
    tree.commit("more damage")
    changed, missing, no_step = tree.expect("S202", "S203", "M601")
    assert changed.fix.splitlines()[0] == f"git checkout {good} -- {snapshot(18)}"
    assert missing.fix == f"git checkout {good} -- {snapshot(17)}"
    assert no_step.fix == f"git checkout {good} -- {step(16)}"


def test_steps_next_to_a_changed_snapshot_are_not_blamed(tree: Copy) -> None:
    """Whether they cover what changed is asked once the snapshot is what was recorded."""
    tree.edit(snapshot(18), V18_ROLE_FIELD, f"{V18_ROLE_FIELD}\n  string colour = 20;")
    tree.only("S202", snapshot(18))
    record_v18(tree)
    blamed = {(finding.code, finding.path) for finding in tree.check().findings}
    assert {("M611", step(17)), ("M611", step(18))} <= blamed


def test_a_missing_snapshot_is_refused(tree: Copy) -> None:
    """Each supported version has its snapshot; git has the one that is gone."""
    tree.remove(snapshot(18))
    finding = tree.only("S203", snapshot(18))
    assert finding.fix == f"git checkout HEAD -- {snapshot(18)}"


@pytest.mark.parametrize("version", [14, 23, 30])
def test_a_snapshot_outside_the_supported_versions_is_refused(tree: Copy, version: int) -> None:
    """Versions are made by the recipe and ended by retiring, never by adding a file."""
    tree.write(snapshot(version), tree.read(OBJECTS))
    finding = tree.only("S204", snapshot(version))
    assert finding.what == f"objects_v{version}.proto is outside v15..v22"
    assert f"remove it, edit proto/objects.proto, then {SNAPSHOT}" in finding.fix
    assert "python -m build_tools retire N" in finding.fix


@pytest.mark.parametrize("name", ["objects_18.proto", "objects_v018.proto", "objects_v18.proto.orig", "v18.proto"])
def test_a_renamed_snapshot_is_missing_and_does_not_belong(tree: Copy, name: str) -> None:
    """A name that says no version is no snapshot."""
    tree.move(snapshot(18), f"proto/old/{name}")
    missing, misplaced = tree.expect("S203", "S204")
    assert missing.path == snapshot(18)
    assert misplaced.path == f"proto/old/{name}"
    assert misplaced.fix == f"git mv proto/old/{name} {snapshot(18)}"


@pytest.mark.parametrize("name", ["notes.txt", "objects_v18.proto.orig", "more/objects_v18.proto"])
def test_a_stray_file_that_is_no_missing_snapshot_is_moved_elsewhere(tree: Copy, name: str) -> None:
    """Neither notes, nor a copy of a snapshot that is there, nor a folder."""
    tree.write(f"proto/old/{name}", tree.read(snapshot(18)) if "v18" in name else "Notes.")
    finding = tree.only("S204", f"proto/old/{name.partition('/')[0]}")
    assert finding.fix == "move it elsewhere"


def test_a_snapshot_renamed_to_another_version_is_missing_there(tree: Copy) -> None:
    """v18 as v23 leaves a hole at 18 and a version that nobody made."""
    tree.move(snapshot(18), snapshot(23))
    missing, misplaced = tree.expect("S203", "S204")
    assert (missing.path, misplaced.path) == (snapshot(18), snapshot(23))


def test_looks_of_frozen_types_may_change_even_after_a_release(released: Copy) -> None:
    """Comments, spacing, the order of messages and fields and the package's name are no part of the types."""
    path = snapshot(18)
    text = re.sub(r"(?m)^ *//.*\n", "", released.read(path)).replace("  ", "\t").replace(";", " ;")
    role_id = text[text.index("message RoleId {") : text.index("message Empty {}")]
    text = text.replace(role_id, "") + f"\n\n// Moved.\n{role_id}"
    name, schema = "\tstring name = 2 ;\n", "\tuint64 schema_id = 1 ;\n"
    assert schema + name in text
    text = text.replace(schema + name, name + schema).replace("package objects ;", "package anything ;")
    released.write(path, text)
    released.assert_clean()


def test_line_ends_of_a_released_migration_may_change(released: Copy) -> None:
    """A checkout with CRLF is no edit."""
    source = released.path(NEWEST_STEP).read_bytes()
    assert b"\r" not in source
    released.write(NEWEST_STEP, source.replace(b"\n", b"\r\n"))
    released.assert_clean()


def test_an_edited_hash_of_a_snapshot_is_refused(tree: Copy) -> None:
    """The file does not fit its hash, whichever of them was edited."""
    tree.record_snapshot(18, replace(tree.hashes.snapshots[18], hash=OTHER_HASH))
    finding = tree.only("S202", snapshot(18))
    assert finding.fix == f"git checkout HEAD -- {snapshot(18)}\nor, if the change is intended: {AMEND}\n{EDITED_HASH}"


def test_a_removed_hash_of_a_snapshot_is_refused(tree: Copy) -> None:
    """What has no recorded hash could change unseen."""
    tree.write(HASHES, re.sub(r'(?s)"18": \{.*?\},\n', "", tree.read(HASHES)))
    finding = tree.only("H301", HASHES)
    assert finding.what == "v18 has a snapshot but no recorded hash"
    assert finding.fix == f"git checkout HEAD -- proto/hashes.json, or {AMEND}"


def test_a_removed_hash_of_a_migration_is_refused(tree: Copy) -> None:
    """A migration without a hash could change unseen."""
    tree.write(HASHES, re.sub(r'(?s)"v17_to_v18": \{.*?\},\n', "", tree.read(HASHES)))
    finding = tree.only("H301", HASHES)
    assert finding.what == "v17_to_v18 has no recorded hash"
    assert finding.fix == f"git checkout HEAD -- proto/hashes.json, or {AMEND}"


def test_hashes_of_versions_that_do_not_exist_are_refused(tree: Copy) -> None:
    """An entry beyond the current version hides that its files are gone."""
    tree.record_snapshot(23, replace(tree.hashes.snapshots[22], hash=OTHER_HASH))
    tree.record_migration("v22_to_v23", replace(tree.hashes.migrations["v21_to_v22"], hash=OTHER_HASH))
    first, second = tree.expect("H302", "H302")
    assert first.path == second.path == HASHES
    assert first.what == "a hash of v22_to_v23 is recorded, but STASH_VERSION is 22"
    assert second.what == "a hash of v23 is recorded, but STASH_VERSION is 22"
    assert first.fix == f"remove the entry, or restore the version: {SNAPSHOT}"


def test_an_edited_unreleased_migration_is_recorded_again(tree: Copy) -> None:
    """Until a release freezes it a migration changes freely, and its hash with it."""
    tree.append(NEWEST_STEP, "\n# A thought.\n")
    finding = tree.only("M610", NEWEST_STEP)
    assert finding.what == "v21_to_v22 changed since its hash was recorded"
    assert finding.fix == AMEND
    tree.amend()
    tree.assert_clean()


def test_an_edited_released_migration_is_refused(released: Copy) -> None:
    """It can be restored, changed in a new version, or restyled if it does the same."""
    released.append(NEWEST_STEP, "\nEXTRA = 1\n")
    finding = released.only("M609", NEWEST_STEP)
    assert finding.what == "v21_to_v22 was released in 0.1.0 and has changed"
    assert finding.fix == (
        f"git checkout v0.1.0 -- {NEWEST_STEP}\nand make the change in a new version: {SNAPSHOT}\n"
        "if only comments, docstrings or layout changed: python -m build_tools restyle v21_to_v22"
    )


@pytest.mark.parametrize("committed", [False, True])
def test_a_snapshot_and_its_hash_edited_together_after_a_release_are_refused(
    released: Copy, *, committed: bool
) -> None:
    """Editing the hash to silence the gate is itself a finding, before the commit and after it."""
    change_v18(released)
    record_v18(released)
    if committed:
        released.commit("silence the gate")
    finding = released.only("H303", HASHES)
    assert finding.what.startswith("objects_v18, released in 0.1.0, was sha256:")
    where = r"restore the file and its hash as at commit [0-9a-f]{10}, and change it in a new version: "
    assert re.fullmatch(where + re.escape(SNAPSHOT), finding.fix)


def test_a_migration_and_its_hash_edited_together_after_a_release_are_refused(released: Copy) -> None:
    """What is true of snapshots is true of migrations."""
    released.append(NEWEST_STEP, "\nEXTRA = 1\n")
    released.rerecord("v21_to_v22")
    finding = released.only("H303", HASHES)
    assert finding.what.startswith("v21_to_v22, released in 0.1.0, was sha256:")


def test_the_tag_of_a_release_remembers_what_a_rewritten_history_does_not(released: Copy) -> None:
    """A branch without the old commits is still compared with the release."""
    released.git("checkout", "--quiet", "--orphan", "rewritten")
    change_v18(released)
    record_v18(released)
    released.commit("all of it, again")
    released.git("branch", "--delete", "--force", "main")
    finding = released.only("H303", HASHES)
    assert "as at tag v0.1.0" in finding.fix


@pytest.mark.parametrize("mark", [None, "0.0.9"])
def test_a_released_mark_that_is_removed_or_changed_is_refused(released: Copy, mark: str | None) -> None:
    """A release is a fact about stores in production; taking it back would allow an amend."""
    before = released.hashes.snapshots[18]
    released.record_snapshot(18, replace(before, released=mark))
    finding = released.only("H304", HASHES)
    assert finding.what.startswith("objects_v18 was released in 0.1.0 (commit ")
    assert finding.what.endswith(f"and its release is now {mark}")
    assert finding.fix == f'put it back: "hash": "{before.hash}", "released": "0.1.0"'


def test_a_released_entry_that_is_removed_is_refused(released: Copy) -> None:
    """Without its entry a released file would pass as a new one."""
    released.write(HASHES, re.sub(r'(?s)"18": \{.*?\},\n', "", released.read(HASHES)))
    unrecorded, gone = released.expect("H301", "H304")
    assert unrecorded.path == gone.path == HASHES
    assert gone.what.endswith("and is missing")
    assert '"released": "0.1.0"' in gone.fix


def test_a_released_entry_whose_snapshot_is_removed_with_it_is_refused(released: Copy) -> None:
    """Removing file and entry together is still seen."""
    released.write(HASHES, re.sub(r'(?s)"18": \{.*?\},\n', "", released.read(HASHES)))
    released.remove(snapshot(18))
    missing, gone = released.expect("S203", "H304")
    assert (missing.path, gone.path) == (snapshot(18), HASHES)
