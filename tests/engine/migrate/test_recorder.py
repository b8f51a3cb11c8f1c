"""What is recorded of steps, and what of that keeps others from being applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from catalog import generated, open_catalog
from catalog.actions import insert, no_change
from catalog.engine.base.fence import Fence
from catalog.engine.base.project import BuildVersion, MigrationModule
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.protocol import AppTxn
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.plan import plan
from catalog.engine.migrate.recorder import RunState, close_dead
from catalog.engine.migrate.step_runner import StepPoint
from catalog.engine.migrate.undo import abort, undo
from catalog.engine.stash.registry import encode
from catalog.errors import ChecksumError, FencedError, StepRunningError, UndoneError
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import (
    REGISTRY,
    append,
    events_of,
    findings_of,
    lead,
    module_of,
    open_log,
    project_with,
    rows_of,
    state_of,
    version_of,
)
from tests.engine.migrate.test_faults import Crash, Fault

Stores = Callable[[int], Path]


def die(store: Path, point: StepPoint = StepPoint.AFTER_TASKS) -> Fence:
    """A leader dies in the middle of a step; answer its fence."""

    def stop(reached: StepPoint) -> None:
        if reached is point:
            raise Crash

    runner = lead(store, reached=stop)
    with pytest.raises(Crash):
        upgrade(runner)
    return runner.journal.fence


def test_a_step_that_has_not_run_is_planned_and_has_no_event(copy_of: Stores) -> None:
    """What is pending is derived from the versions."""
    store = copy_of(19)
    assert [step.name for step in plan(PROJECT, state_of(store), 19, 22)] == ["v19_to_v20", "v20_to_v21", "v21_to_v22"]
    assert events_of(store) == []


def test_an_event_tells_all_of_a_step(copy_of: Stores) -> None:
    """While it runs that it does, and afterwards what it did."""
    store, seen = copy_of(18), []

    def look(_: StepPoint) -> None:
        seen.append([event.value for event in events_of(store)])

    runner = lead(store, reached=look)
    before = rows_of(store)
    upgrade(runner, until=19)
    running, done = seen[1][0], seen[-1][0]
    assert (seen[0], RunState(running.state), running.name) == ([], RunState.RUNNING, "v18_to_v19")
    assert not running.HasField("completed_ms")
    assert (RunState(done.state), done.version, done.previous) == (RunState.MIGRATED, 19, 18)
    assert done.checksum == running.checksum == plan(PROJECT, state_of(store), 18, 19)[0].checksum
    assert (done.build, done.deploy_generation, done.epoch) == (str(PROJECT.build), *runner.journal.fence)
    assert done.started_ms <= done.completed_ms
    after = rows_of(store)
    assert done.rows_before == len(before["item"])
    assert done.rows_after == len(after["item"]) + len(after["comment"])
    files = state_of(store).files.values()
    assert done.bytes_after == sum(file.size for file in files if file.collection in {"item", "comment"})


def test_a_dead_run_is_closed_by_the_next_leader(copy_of: Stores) -> None:
    """Its event says that it ended, and the step is done in a run of its own."""
    store = copy_of(17)
    die(store)
    assert [event.state for event in events_of(store)] == [RunState.RUNNING]
    assert state_of(store).app_txns[AppTxn.RUNNING_STEP] == 18
    upgrade(lead(store), until=18)
    assert [event.state for event in events_of(store)] == [RunState.ERROR, RunState.MIGRATED]
    assert events_of(store)[0].value.error == "its process ended before the step did"
    assert state_of(store).app_txns[AppTxn.RUNNING_STEP] == 0


def test_nothing_is_vacuumed_while_a_step_runs_and_its_files_are_when_it_died(copy_of: Stores) -> None:
    """Files of a lower fence can never be committed."""
    store = copy_of(17)
    fence = die(store)
    log = open_log(store)
    with pytest.raises(StepRunningError):
        clean(log, state_of(store), Policy())
    runner = lead(store)
    close_dead(runner.journal)
    swept = clean(log, state_of(store), Policy()).deleted
    assert {f"-{fence.generation}.{fence.epoch}-" in path for path in swept} == {True}
    assert {path.partition("/")[0] for path in swept} == {"collection=database", "collection=schema", "collection=item"}
    upgrade(runner, until=18)
    assert findings_of(store) == []


def test_a_build_that_stays_at_the_version_closes_a_dead_run_too(copy_of: Stores) -> None:
    """A newer build died in its upgrade, and the one before it goes on: it may vacuum again."""
    store = copy_of(21)
    upgrade(lead(store))
    newer = replace(
        PROJECT,
        current=23,
        migration_from=lambda version, build: (
            module_of(22, no_change("because nothing")) if version == 22 else PROJECT.migration_from(version, build)
        ),
    )

    def stop(point: StepPoint) -> None:
        if point is StepPoint.AFTER_BEGIN:
            raise Crash

    with pytest.raises(Crash):
        upgrade(lead(store, newer, reached=stop))
    assert state_of(store).app_txns[AppTxn.RUNNING_STEP] == 23
    with open_catalog(store) as catalog:
        assert catalog.version == 22
        with catalog.transaction():
            pass
    assert state_of(store).app_txns[AppTxn.RUNNING_STEP] == 0
    assert [event.state for event in events_of(store)] == [RunState.MIGRATED, RunState.ERROR]
    clean(open_log(store), state_of(store), Policy())


def test_a_failed_step_can_be_tried_again_by_the_same_leader(copy_of: Stores) -> None:
    """Each run has its event."""
    store = copy_of(17)
    fault = Fault(1, OSError)
    runner = lead(store, reached=fault)
    fault.armed = True
    with pytest.raises(OSError, match="after-begin"):
        upgrade(runner, until=18)
    upgrade(runner, until=18)
    assert [event.state for event in events_of(store)] == [RunState.ERROR, RunState.MIGRATED]


def test_a_step_that_is_aborted_is_fenced_and_an_error_in_one_commit(copy_of: Stores) -> None:
    """Whoever ran it cannot commit it any more."""
    store = copy_of(17)
    before, aborted = rows_of(store), []

    def give_up(point: StepPoint) -> None:
        if point is StepPoint.BEFORE_COMMIT:
            head = state_of(store).version
            aborted.extend(abort(open_log(store), REGISTRY, "an operator", 0))
            assert state_of(store).version == head + 1

    runner = lead(store, reached=give_up)
    with pytest.raises(FencedError):
        upgrade(runner, until=18)
    assert [event.id for event in aborted] == [1]
    (event,) = events_of(store)
    assert (event.state, event.value.error) == (RunState.ERROR, "aborted by an operator")
    state = state_of(store)
    assert (state.app_txns[AppTxn.RUNNING_STEP], state.fence) == (0, Fence(0, runner.journal.fence.epoch + 1))
    assert (version_of(store), rows_of(store)) == (17, before)
    with pytest.raises(FencedError):
        runner.journal.refresh()


def test_with_nothing_running_nothing_is_aborted(copy_of: Stores) -> None:
    """And nobody is fenced."""
    store = copy_of(17)
    before = state_of(store).version
    assert abort(open_log(store), REGISTRY, "an operator", 0) == []
    assert state_of(store).version == before


def edited(version: int, checksum: str) -> Callable[[int, BuildVersion], MigrationModule | None]:
    """A dispatch in which one migration was edited, with a file of that content."""
    module = PROJECT.migration_from(version, PROJECT.build)
    assert module is not None
    changed = module_of(version, *module.upgrade(), __file__=checksum)
    return lambda found, build: changed if found == version else PROJECT.migration_from(found, build)


def test_all_applied_migrations_that_differ_are_named(copy_of: Stores, tmp_path: Path) -> None:
    """Before any more is applied."""
    store = copy_of(15)
    upgrade(lead(store), until=18)
    source = tmp_path / "edited.py"
    source.write_text("another\n")
    first, second = edited(15, str(source)), edited(17, str(source))
    project = replace(
        PROJECT,
        migration_from=lambda version, build: first(version, build) if version == 15 else second(version, build),
    )
    before = state_of(store).version
    runner = lead(store, project)
    with pytest.raises(ChecksumError, match="v15_to_v16, v17_to_v18"):
        upgrade(runner)
    assert state_of(store).version == before + 1
    assert version_of(store) == 18


def test_a_migration_that_was_restyled_is_the_same(
    copy_of: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its earlier hashes are known to the build."""
    store = copy_of(17)
    upgrade(lead(store), until=18)
    source = tmp_path / "edited.py"
    source.write_text("restyled\n")
    project = replace(PROJECT, migration_from=edited(17, str(source)))
    monkeypatch.setattr(generated, "RESTYLED", {"v17_to_v18": (events_of(store)[0].value.checksum,)})
    upgrade(lead(store, project), until=19)
    assert version_of(store) == 19


def test_line_ends_make_no_difference_to_a_checksum(copy_of: Stores, tmp_path: Path) -> None:
    """A checkout on another system is the same migration."""
    store = copy_of(17)
    upgrade(lead(store), until=18)
    module = PROJECT.migration_from(17, PROJECT.build)
    source = tmp_path / "edited.py"
    source.write_bytes(Path(str(module.__file__)).read_bytes().replace(b"\n", b"\r\n"))  # type: ignore[union-attr]
    upgrade(lead(store, replace(PROJECT, migration_from=edited(17, str(source)))), until=19)
    assert version_of(store) == 19


def test_a_step_that_was_undone_is_applied_again_only_when_asked(copy_of: Stores) -> None:
    """Whoever undid it had a reason."""
    store = copy_of(17)
    runner = lead(store)
    upgrade(runner, until=18)
    expected = rows_of(store)
    undo(runner.journal, PROJECT)
    assert [event.state for event in events_of(store)] == [RunState.UNDONE]
    for _ in range(2):
        with pytest.raises(UndoneError, match="from version 17 was undone"):
            upgrade(lead(store), until=18)
    assert version_of(store) == 17
    upgrade(lead(store), until=18, reapply=True)
    assert (version_of(store), rows_of(store)) == (18, expected)
    assert [event.state for event in events_of(store)] == [RunState.UNDONE, RunState.MIGRATED]
    upgrade(lead(store), until=19)


def test_what_was_undone_needs_to_be_asked_for_again_after_it_failed(copy_of: Stores) -> None:
    """A run that died changes nothing about that."""
    store = copy_of(17)
    runner = lead(store)
    upgrade(runner, until=18)
    undo(runner.journal, PROJECT)
    fault = Fault(1)
    runner = lead(store, reached=fault)
    fault.armed = True
    with pytest.raises(Crash):
        upgrade(runner, until=18, reapply=True)
    with pytest.raises(UndoneError):
        upgrade(lead(store), until=18)
    assert state_of(store).app_txns[AppTxn.RUNNING_STEP] == 0


def test_an_error_of_any_length_is_recorded(copy_of: Stores) -> None:
    """Cut to what a row may hold."""
    store = copy_of(21)
    types = PROJECT.types(22)
    key, value = types.SettingKey(name="x" * 10_000), types.SettingValue(value="1")
    append(store, "setting", (encode(key), encode(value), 1))
    with pytest.raises(Exception, match="two rows have this key"):
        upgrade(lead(store, project_with(21, insert("setting", lambda: [(key, value)]))))
    assert len(events_of(store)[0].value.error) == 4000
