"""Stores of every old version, opened by this build: row for row what the oracles say, and the same as ever."""

from __future__ import annotations

import pytest

from catalog.engine.log.protocol import FileKind, Operation
from catalog.engine.stash.registry import Registry
from catalog.tools.fsck.stash import fsck
from catalog.upgrade import PROJECT
from tests.migrations.oracles import ORACLES
from tests.migrations.oracles import upgraded as by_oracles
from tests.migrations.plain import ENGINE
from tests.upgrade.golden import COMMAND, read_digests, step_name
from tests.upgrade.stores import digest, log_of, steps_of
from tests.upgrade.upgraded import Upgraded, UpgradedStores

pytestmark = pytest.mark.spark

OLD = range(PROJECT.minimum, PROJECT.current)
FOUND_BY_ORACLES = max(ORACLES) + 1
"""Steps since then are held by their own tests and by their digests."""


def test_the_store_has_what_makes_steps_hard(oldest: Upgraded) -> None:
    """Base and tail in one collection, rows changed and deleted by the tail, and items without a schema."""
    log = log_of(oldest.store)
    files = log.state(oldest.first_ts).files.values()
    assert {file.kind for file in files if file.collection == "item"} == {FileKind.BASE, FileKind.TAIL}
    diffs = [log.read(file)["diff"].to_pylist() for file in files if file.kind is FileKind.TAIL]
    assert {diff for own in diffs for diff in own} == {-1, 1}
    rows = oldest.at(oldest.first)
    schemas = {key["id"] for key, _ in rows["schema"].values()}
    assert any(value["schema_id"] not in schemas for _, value in rows["item"].values())
    assert sum(map(len, rows.values())) > 1_000


@pytest.mark.parametrize("version", [version for version in OLD if version in ORACLES])
def test_each_step_does_what_its_oracle_says(oldest: Upgraded, version: int) -> None:
    """On one store that comes from the oldest version: each state of its history, read with the types of then."""
    assert oldest.at(version + 1) == ORACLES[version](oldest.at(version))


@pytest.mark.parametrize("version", OLD)
def test_a_store_of_any_version_comes_to_what_the_oracles_say(upgraded: UpgradedStores, version: int) -> None:
    """All steps that are due, one after the other."""
    store = upgraded[version]
    until = max(FOUND_BY_ORACLES, version)
    assert store.at(until) == by_oracles(store.at(version), version, until)
    assert list(steps_of(store.store)) == list(range(version + 1, PROJECT.current + 1))


@pytest.mark.parametrize("version", OLD)
def test_a_step_makes_of_the_same_rows_what_it_always_made(upgraded: UpgradedStores, version: int) -> None:
    """Whoever changes what a step does, or what is generated for it, sees it here."""
    name, store = step_name(version), upgraded[version]
    known = read_digests().get(name)
    assert known is not None, f"{name} has no digest: {COMMAND}"
    before, after = digest(store.stored_at(version)), digest(store.stored_at(version + 1))
    assert before == known.before, f"other rows are generated for {name} than were: {COMMAND} {name}"
    assert after == known.after, (
        f"{name} makes other rows of the same rows: if it was released, undo the edit; if not, {COMMAND} {name}"
    )


@pytest.mark.parametrize("version", OLD)
def test_an_upgraded_store_is_whole(upgraded: UpgradedStores, version: int) -> None:
    """Every row can be read, and every constraint holds, in the state that is left."""
    log = log_of(upgraded[version].store)
    report = fsck(log, Registry.of(PROJECT.current_types), PROJECT.constraints)
    assert [str(finding) for finding in report.findings] == []


def test_a_step_is_one_commit_beside_its_announcement(oldest: Upgraded) -> None:
    """Between two versions nothing is committed but the event that says what runs."""
    log = log_of(oldest.store)
    commits = list(log.commits(oldest.first_ts + 1, steps_of(oldest.store)[PROJECT.current].version))
    steps = [(Operation.TRANSACTION, ENGINE), (Operation.MIGRATE, None)] * len(OLD)
    assert [commit.operation for commit in commits] == [Operation.FENCE, *(operation for operation, _ in steps)]
    for commit, (_, collections) in zip(commits[1:], steps, strict=True):
        if collections is not None:
            assert {file.collection for file in commit.adds} <= collections
            assert commit.removed_paths == ()


def test_a_step_leaves_the_files_of_other_collections(oldest: Upgraded) -> None:
    """What it does not name costs nothing: its files are those of before, base and tail."""
    log = log_of(oldest.store)
    for plan in oldest.told.began_steps:
        commit = steps_of(oldest.store)[plan.version]
        before, after = log.state(commit.version - 1).files, log.state(commit.version).files
        kept = {work.collection for work in plan.works} | ENGINE | {"id_alloc"}
        assert {path for path, file in before.items() if file.collection not in kept} <= after.keys()
        assert {after[path].collection for path in after.keys() - before.keys()} <= kept
