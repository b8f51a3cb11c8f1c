"""Stores that can be upgraded: a check says so, and what it foretells is what then happens."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import FileKind, Log, LogState
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.recorder import RunState
from catalog.engine.migrate.undo import undo
from catalog.engine.stash.compaction import CompactionTask, merge
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.engine.store.scratch_copy import scratch_copy
from catalog.errors import NotAStoreError, PreflightError, StoreTooNewError, StoreTooOldError
from catalog.tools.upgrade_check.check import check_upgrade
from catalog.tools.upgrade_check.report import StepOutcome
from catalog.upgrade import PROJECT
from tests.cli.histories import forge_checksums
from tests.engine.migrate.stores import events_of, lead, open_log, project_with, state_of
from tests.tools.upgrade_check.checks import checked, checked_directly
from tests.upgrade.stores import files_of
from tests.upgrade.upgraded import Told

Stores = Callable[[int], Path]


@pytest.mark.spark
@pytest.mark.parametrize("version", [14, 19])
def test_a_healthy_store_passes_and_is_upgraded_as_foretold(
    copy_of: Stores, scratch: Path, spark: SparkSession, version: int
) -> None:
    """Rows before and after, changed, inserted and deleted are those that the upgrade itself counts and records."""
    store, told = copy_of(version), Told()
    verdict = checked(store, scratch, spark)
    assert verdict.ok
    assert (verdict.version, verdict.target) == (version, PROJECT.current)
    assert [step.version for step in verdict.steps] == list(range(version + 1, PROJECT.current + 1))
    assert {step.outcome for step in verdict.steps} == {StepOutcome.OK}
    assert (verdict.before is None) == (version < PROJECT.first_proto)
    assert verdict.after is not None
    assert verdict.after.findings == ()
    assert 0 < verdict.startup_s < verdict.seconds
    before = sum(len(content) for content in files_of(store).values())
    open_catalog(store, deploy_generation=1, spark=spark, observer=told).close()
    grown = sum(len(content) for content in files_of(store).values()) - before
    assert 0 < verdict.extra_bytes < grown < 3 * verdict.extra_bytes + 200_000
    events = [event.value for event in events_of(store)]
    for step, (plan, counts), event in zip(verdict.steps, told.ended_steps, events, strict=True):
        assert (step.name, event.state) == (plan.name, RunState.MIGRATED)
        assert (event.rows_before, event.rows_after) == (
            sum(own.rows_before for own in step.collections),
            sum(own.rows_after for own in step.collections),
        )
        for own in step.collections:
            real = counts[own.collection]
            assert (own.rows_before, own.rows_after) == (real.rows_before, real.rows_after), own
            if own.form != "frame":
                assert (own.changed, own.inserted, own.deleted) == (real.changed, real.inserted, real.deleted), own


def test_a_store_that_is_up_to_date_is_checked_without_spark(
    copy_of: Stores, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no step, and no Java either."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    verdict = check_upgrade(StorePlace.at(PROJECT, copy_of(PROJECT.current)), scratch=scratch)
    assert (verdict.ok, verdict.steps, verdict.startup_s, verdict.extra_bytes) == (True, (), 0.0, 0)
    assert verdict.before is not None
    assert verdict.before.findings == ()


def test_a_step_that_somebody_undid_is_told(copy_of: Stores, scratch: Path) -> None:
    """It would be applied again only if somebody says so."""
    store = copy_of(21)
    runner = lead(store)
    assert not checked_directly(store, scratch).needs_reapply
    upgrade(runner)
    undo(runner.journal, PROJECT)
    verdict = checked_directly(store, scratch)
    assert (verdict.ok, verdict.needs_reapply) == (True, True)


def test_a_migration_that_was_edited_since_is_told(copy_of: Stores, scratch: Path) -> None:
    """Nothing is applied after it; a store that needs nothing applied is served as it is."""
    store = copy_of(19)
    upgrade(lead(store), 20)
    forge_checksums(store, 20)
    verdict = checked_directly(store, scratch)
    assert (verdict.ok, verdict.mismatches, len(verdict.steps)) == (False, ("v19_to_v20",), PROJECT.current - 20)
    served = copy_of(21)
    upgrade(lead(served, project_with(21)))
    verdict = checked_directly(served, scratch)
    assert (verdict.ok, verdict.mismatches, verdict.steps) == (True, ("v21_to_v22",), ())


def test_what_is_no_store_of_this_build_is_raised(copy_of: Stores, scratch: Path, tmp_path: Path) -> None:
    """As opening it would."""
    with pytest.raises(NotAStoreError):
        check_upgrade(StorePlace.at(PROJECT, tmp_path / "nothing"), scratch=scratch)
    store = copy_of(20)
    with pytest.raises(StoreTooNewError):
        checked_directly(store, scratch, project_with(18))
    with pytest.raises(StoreTooOldError):
        checked_directly(copy_of(14), scratch, replace(PROJECT, minimum=15))


def test_no_room_for_the_copy_is_told_before_anything_is_copied(
    copy_of: Stores, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says where, and how much."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(total=1, used=1, free=0))
    with pytest.raises(PreflightError, match="a scratch copy needs about"):
        checked_directly(copy_of(17), scratch)


def test_a_folder_that_is_not_there_is_told(copy_of: Stores, tmp_path: Path) -> None:
    """And not made: it may be a mistake."""
    with pytest.raises(PreflightError, match="no scratch copy can be made in"):
        checked_directly(copy_of(17), tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_copy_whose_files_are_vacuumed_meanwhile_is_begun_again(
    copy_of: Stores, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the newer state; the copy that was begun is gone."""
    store = copy_of(PROJECT.current)
    copies: list[Path] = []

    def vacuumed_first(place: StorePlace, log: Log, state: LogState, folder: Path, *, with_shards: bool) -> StorePlace:
        copies.append(folder)
        if len(copies) == 1:
            retire_all(store)
        return scratch_copy(place, log, state, folder, with_shards=with_shards)

    monkeypatch.setattr("catalog.tools.upgrade_check.check.scratch_copy", vacuumed_first)
    verdict = check_upgrade(StorePlace.at(PROJECT, store), scratch=scratch)
    assert (verdict.ok, len(copies)) == (True, 2)
    assert verdict.ts == state_of(store).version
    assert not copies[0].exists()


def retire_all(store: Path) -> None:
    """Merge every tail into its base, and remove what only earlier states need."""
    log = open_log(store)
    for name in sorted(load_view(BaseFileCache(log), state_of(store)).collections()):
        state = state_of(store)
        log.compare_and_append(
            state, merge(log, load_view(BaseFileCache(log), state), CompactionTask(name, FileKind.BASE), state.fence)
        )
    assert clean(log, state_of(store), Policy(retention_ms=0)).deleted
