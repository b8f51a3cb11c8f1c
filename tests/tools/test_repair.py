"""Mending a store without fencing anybody: runs of dead processes, and checksums of edited steps."""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path

import pytest

from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, Operation
from catalog.engine.migrate.executor import upgrade, validate
from catalog.engine.migrate.plan import checksum, migration_of, plan
from catalog.engine.migrate.recorder import RunState, begin
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.store.leadership import LeadershipOptions, LedStore, leading
from catalog.errors import (
    ChecksumError,
    NotAStoreError,
)
from catalog.tools.generator import generate
from catalog.tools.repair import Difference, diagnose, repair
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import events_of, findings_of, lead, state_of
from tests.upgrade.stores import files_of, log_of, rows_at

BEAT = 0.25
LEADER = LeadershipOptions(None, lock_timeout_s=30, heartbeat_s=BEAT)

OLD = 21


@pytest.fixture
def old(tmp_path: Path) -> StorePlace:
    generate(PROJECT, tmp_path / "old", OLD, 50, 1)
    return StorePlace(str(tmp_path / "old"), {}, PROJECT)


def run(leader: LedStore) -> int:
    """Say that a step runs, as its process does first."""
    return begin(leader.system_rows, plan(PROJECT, leader.system_rows.state, OLD, OLD + 1)[0], "0.0.0")


def commits_since(place: StorePlace, ts: int) -> list[Operation]:
    log = log_of(Path(place.uri))
    return [commit.operation for commit in log.commits(ts + 1, log.verify())]


@pytest.mark.parametrize("ending", ["released", "silent", "fenced"])
def test_the_run_of_a_dead_process_becomes_an_error_with_its_reason(old: StorePlace, ending: str) -> None:
    """In one commit at the present fence: whoever joined it goes on. Asked again, there is nothing to do."""
    store = Path(old.uri)
    with leading(old, LEADER) as leader:
        number = run(leader)
    if ending == "silent":
        (store / "heartbeats" / f"0.{leader.fence.epoch}.json").write_text('{"beat": 7}')
    if ending == "fenced":
        with leading(old, LEADER):
            pass
    before, rows = state_of(store), rows_at(store)
    diagnosis = diagnose(old, heartbeat_s=BEAT)
    assert [(found.number, found.step, found.lives) for found in diagnosis.runs] == [(number, "v21_to_v22", False)]
    assert state_of(store) == before
    repaired = repair(old, diagnosis, heartbeat_s=BEAT)
    assert (repaired.closed, repaired.ts) == (diagnosis.runs, before.version + 1)
    assert commits_since(old, before.version) == [Operation.TRANSACTION]
    after = state_of(store)
    assert (after.fence, after.app_txns[AppTxn.RUNNING_STEP]) == (before.fence, 0)
    assert [(event.state, event.value.error) for event in events_of(store)] == [
        (RunState.ERROR, "its process ended before the step did")
    ]
    assert rows_at(store) == rows
    assert findings_of(store) == []
    again = diagnose(old, heartbeat_s=BEAT)
    assert again.is_sound
    for old_or_new in (diagnosis, again):
        assert repair(old, old_or_new, heartbeat_s=BEAT).closed == ()
    assert state_of(store) == after


def test_a_live_run_is_left_alone_and_named(old: StorePlace) -> None:
    """It has not failed."""
    with leading(old, LEADER) as leader:
        number = run(leader)
        diagnosis = diagnose(old, heartbeat_s=BEAT)
        assert [(found.number, found.lives) for found in diagnosis.runs] == [(number, True)]
        assert diagnosis.is_sound
        assert repair(old, diagnosis, heartbeat_s=BEAT).closed == ()
        leader.system_rows.refresh()
        assert leader.system_rows.state.app_txns[AppTxn.RUNNING_STEP] == OLD + 1


def test_a_dead_run_beside_a_live_one_is_closed_and_the_live_one_goes_on(old: StorePlace) -> None:
    """The log still says that a step runs."""
    with leading(old, LEADER) as leader:
        number, kind = run(leader), leader.system_rows.registry.named("migration_event")
        value = kind.value_type(version=OLD + 1, name="v21_to_v22", state=RunState.RUNNING, previous=OLD)
        leader.system_rows.append(
            Operation.TRANSACTION, [leader.system_rows.change(kind.key_type(id=number + 1), value)], {}
        )
        repaired = repair(old, diagnose(old, heartbeat_s=BEAT), heartbeat_s=BEAT)
        assert [found.number for found in repaired.closed] == [number + 1]
        assert [event.state for event in events_of(Path(old.uri))] == [RunState.RUNNING, RunState.ERROR]
        assert state_of(Path(old.uri)).app_txns[AppTxn.RUNNING_STEP] == OLD + 1


def test_a_run_that_shows_life_after_the_diagnosis_is_left_alone(old: StorePlace) -> None:
    """A process that stood still is not dead; and one that began since was never looked at."""
    with leading(old, LEADER) as leader:
        run(leader)
    dead = diagnose(old, heartbeat_s=BEAT)
    beats = Path(old.uri, "heartbeats", f"0.{leader.fence.epoch}.json")
    beats.write_text('{"beat": 7}')
    waking = threading.Timer(BEAT, beats.write_text, ['{"beat": 8}'])
    waking.start()
    assert repair(old, dead, heartbeat_s=BEAT).closed == ()
    waking.join()
    assert [event.state for event in events_of(Path(old.uri))] == [RunState.RUNNING]
    with leading(old, LEADER) as following:
        number = run(following)
        assert repair(old, dead, heartbeat_s=BEAT).closed == ()
        assert [event.id for event in events_of(Path(old.uri)) if event.state is RunState.RUNNING] == [number]


def test_a_mark_of_a_running_step_without_an_event_is_taken_back(old: StorePlace) -> None:
    """Else nothing would be vacuumed before the next leader."""
    store = Path(old.uri)
    log = log_of(store)
    change = CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, app_txns={AppTxn.RUNNING_STEP: 22})
    log.compare_and_append(log.state(log.verify()), change)
    diagnosis = diagnose(old, heartbeat_s=BEAT)
    assert (diagnosis.stray_step, diagnosis.runs, diagnosis.is_sound) == (22, (), False)
    assert repair(old, diagnosis, heartbeat_s=BEAT).stray_step == 22
    assert state_of(store).app_txns[AppTxn.RUNNING_STEP] == 0
    assert diagnose(old, heartbeat_s=BEAT).is_sound
    assert repair(old, diagnosis, heartbeat_s=BEAT).stray_step == 0


def test_a_torn_entry_and_a_dead_run_are_mended_together(old: StorePlace) -> None:
    """The run is that of the state before the torn entry."""
    with leading(old, LEADER) as leader:
        run(leader)
    Path(old.uri, "stash", "_delta_log", f"{state_of(Path(old.uri)).version + 1:020d}.json").write_bytes(b"{")
    diagnosis = diagnose(old, heartbeat_s=BEAT)
    assert diagnosis.damaged is not None
    repaired = repair(old, diagnosis, heartbeat_s=BEAT)
    assert (repaired.closed, repaired.ts) == (
        diagnosis.runs,
        diagnosis.damaged.version + 2,
    )
    assert diagnose(old, heartbeat_s=BEAT).is_sound


@pytest.fixture
def edited(old: StorePlace) -> StorePlace:
    """A store that a migration was applied to which was edited since."""
    store = Path(old.uri)
    runner = lead(store)
    upgrade(runner)
    kind = runner.journal.registry.named("migration_event")
    event = events_of(store)[0]
    event.value.checksum = "sha256:other"
    change = runner.journal.change(kind.key_type(id=event.id), event.value)
    runner.journal.append(Operation.TRANSACTION, [change], {})
    return old


def journal_of(place: StorePlace) -> SystemRows:
    runner = lead(Path(place.uri))
    return runner.journal


def test_checksums_that_differ_are_shown_and_recorded_anew_when_asked(edited: StorePlace) -> None:
    """In one commit, at the present fence; asked again, there is nothing to do."""
    store, present = Path(edited.uri), checksum(migration_of(PROJECT, OLD))
    before, events = state_of(store), events_of(store)
    diagnosis = diagnose(edited, heartbeat_s=BEAT)
    assert diagnosis.checksums == (Difference(1, "v21_to_v22", "sha256:other", present),)
    assert not diagnosis.is_sound
    assert repair(edited, diagnosis, heartbeat_s=BEAT).recorded == ()
    assert state_of(store) == before
    repaired = repair(edited, diagnosis, checksums=True, heartbeat_s=BEAT)
    assert repaired.recorded == diagnosis.checksums
    assert commits_since(edited, before.version) == [Operation.TRANSACTION]
    assert state_of(store).fence == before.fence
    events[0].value.checksum = present
    assert events_of(store) == events
    assert diagnose(edited, heartbeat_s=BEAT).is_sound
    assert repair(edited, diagnosis, checksums=True, heartbeat_s=BEAT).recorded == ()
    validate(PROJECT, journal_of(edited))


def test_without_it_the_store_is_refused_by_the_next_upgrade(edited: StorePlace) -> None:
    """So there is something to repair."""
    with pytest.raises(ChecksumError):
        validate(PROJECT, journal_of(edited))


def test_a_sound_store_is_told_at_once(old: StorePlace) -> None:
    """Nobody is waited for, and nothing is written."""
    left, began = files_of(Path(old.uri)), time.monotonic()
    assert diagnose(old, heartbeat_s=60).is_sound
    assert time.monotonic() - began < 30
    assert files_of(Path(old.uri)) == left


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    """And not made one."""
    with pytest.raises(NotAStoreError):
        diagnose(StorePlace(str(tmp_path / "no"), {}, PROJECT))
    assert not (tmp_path / "no").exists()
