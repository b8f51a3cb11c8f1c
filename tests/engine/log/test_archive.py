"""Entries and checkpoints that left the log for the archive: read like any other, and never guessed at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import AppTxn, FaultHook, FaultPoint, Log, LogState, no_fault
from catalog.engine.storage.base import open_storage
from catalog.engine.storage.local import LocalStorage
from catalog.errors import ConflictError, CorruptCheckpointError, IndeterminateError, TornLogError
from tests.engine.log.places import Crash, CrashAt, DeltaPlace, append, change, created, grown

EVERY = 5
IN_ARCHIVING = [point for point in FaultPoint if point.startswith("archive:")]


def at(point: FaultPoint, act: Callable[[], object], times: int = 1) -> FaultHook:
    """Something happens elsewhere when a point is reached for the first few times."""
    left = [act] * times

    def reached(found: FaultPoint) -> None:
        if found is point and left:
            left.pop()()

    return reached


def advance(log: Log, state: LogState, count: int) -> list[LogState]:
    """So many commits with a checkpoint every so often; the states after each."""
    states = []
    for _ in range(count):
        state = append(log, state, removes=tuple(state.files.values()), EPOCH=state.app_txns.get(AppTxn.EPOCH, 0) + 1)
        if state.version % EVERY == 0:
            log.checkpoint(state.version)
        states.append(state)
    return states


def filled(place: DeltaPlace, count: int = 22) -> list[LogState]:
    """A log of so many commits, most of them archived; all of its states."""
    log, state = created(place)
    return [state, *advance(log, state, count)]


def versions(folder: Path) -> list[int]:
    return sorted(int(path.name[:20]) for path in folder.glob("*.json"))


def in_log(place: DeltaPlace) -> list[int]:
    return versions(place.folder / "_delta_log")


def in_archive(place: DeltaPlace) -> list[int]:
    return versions(place.folder / "_archive")


def assert_whole(place: DeltaPlace, states: list[LogState]) -> None:
    log = place.open()
    assert log.verify() == states[-1].version
    assert [log.head(state.version) for state in states] == [states[-1].version] * len(states)
    assert [log.state(state.version) for state in states] == states
    commits = log.commits(1, states[-1].version)
    assert [commit.app_txns for commit in commits] == [
        {AppTxn.EPOCH: state.app_txns[AppTxn.EPOCH]} for state in states[1:]
    ]


def test_the_log_holds_what_opening_needs_and_the_archive_all_before(folder: DeltaPlace) -> None:
    """Every version is read as before, and others still read the newest."""
    states = filled(folder)
    assert in_log(folder) == list(range(15, 23))
    assert in_archive(folder) == list(range(15))
    assert_whole(folder, states)
    assert pl.read_delta(folder.uri).height == 1
    assert len(list(folder.open().files())) == 22


def overtake(place: DeltaPlace, states: list[LogState], act: Callable[[Log], object] = lambda _: None) -> None:
    """As if the entry that just landed had been written only now, and others had gone on without it long before."""
    entry = place.entry(states[-1].version + 1)
    late = entry.read_bytes()
    entry.unlink()
    other = place.open()
    states.extend(advance(other, states[-1], 19))
    act(other)
    (place.folder / "_delta_log" / entry.name).write_bytes(late)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_writer_that_stood_still_takes_no_archived_version(folder: DeltaPlace, *, stopped: bool) -> None:
    """Its entry finds the name free again: a conflict all the same, and never read if the writer stops there."""
    states = filled(folder, 3)

    def stall() -> None:
        overtake(folder, states)
        if stopped:
            raise Crash

    log = folder.open(at(FaultPoint.COMMIT_AFTER_LOG, stall))
    with pytest.raises(Crash if stopped else ConflictError):
        log.compare_and_append(states[3], change(app_txns={AppTxn.EPOCH: 1000}))
    assert in_log(folder) == [4] * stopped + list(range(15, 23))
    assert_whole(folder, states)
    states += advance(folder.open(), states[-1], 3)
    assert in_log(folder) == list(range(20, 26))
    assert_whole(folder, states)


def test_a_writer_that_was_left_behind_before_it_began_is_told(folder: DeltaPlace) -> None:
    """Nothing of it is written."""
    states = filled(folder, 3)
    other = folder.open()
    log = folder.open(at(FaultPoint.COMMIT_BEFORE_LOG, lambda: states.extend(advance(other, states[-1], 19))))
    with pytest.raises(ConflictError):
        log.compare_and_append(states[3], change(app_txns={AppTxn.EPOCH: 1000}))
    assert in_log(folder) == list(range(15, 23))
    assert_whole(folder, states)


def test_a_writer_that_stood_still_until_its_version_expired_is_in_doubt(folder: DeltaPlace) -> None:
    """Nobody knows any more who took the version."""
    states = filled(folder, 3)
    log = folder.open(
        at(FaultPoint.COMMIT_AFTER_LOG, lambda: overtake(folder, states, act=lambda other: other.expire(22)))
    )
    with pytest.raises(IndeterminateError, match="the log was expired beyond it meanwhile"):
        log.compare_and_append(states[3], change(app_txns={AppTxn.EPOCH: 1000}))
    assert folder.open().verify() == 22
    assert folder.open().state(22) == states[22]


def test_a_commit_that_was_archived_before_it_was_acknowledged_is_acknowledged(folder: DeltaPlace) -> None:
    """It landed, and others built upon it."""
    states = filled(folder, 3)
    asked = change(app_txns={AppTxn.EPOCH: 4})

    def go_on() -> None:
        other = folder.open()
        advance(other, other.state(4), 19)

    commit = folder.open(at(FaultPoint.COMMIT_AFTER_LOG, go_on)).compare_and_append(states[3], asked)
    assert (commit.version, commit.txid) == (4, asked.txid)
    assert 4 in in_archive(folder)
    assert folder.open().commit(4) == commit


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("point", IN_ARCHIVING)
def test_archiving_may_stop_anywhere(folder: DeltaPlace, point: FaultPoint, times: int) -> None:
    """Nothing is lost, and the next checkpoint finishes the work."""
    states = filled(folder, 14)
    left = times

    def reached(found: FaultPoint) -> None:
        nonlocal left
        left -= found is point
        CrashAt(point)(found) if left == 0 else no_fault(found)

    try:
        states += advance(folder.open(reached), states[-1], 1)
    except Crash:
        states.append(folder.open().state(15))
    assert_whole(folder, states)
    states += advance(folder.open(), states[-1], 5)
    assert (in_log(folder)[0], in_archive(folder)) == (15, list(range(15)))
    assert_whole(folder, states)


def test_several_processes_may_archive_at_once(folder: DeltaPlace) -> None:
    """Each finishes what the other began."""
    states = filled(folder, 14)
    other = folder.open()
    for point in IN_ARCHIVING:
        log = folder.open(at(point, lambda: states.extend(advance(other, states[-1], 10)), times=1))
        states.append(append(log, states[-1], removes=tuple(states[-1].files.values()), EPOCH=states[-1].version + 1))
        log.checkpoint(states[-1].version)
        assert_whole(folder, states)
        assert in_archive(folder) == list(range(in_log(folder)[0]))


def test_a_reader_follows_an_entry_that_is_archived_under_its_eyes(
    folder: DeltaPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks once more where the entry went."""
    states = filled(folder, 8)
    reader, other = folder.open(), folder.open()
    looked: list[str] = []
    real = LocalStorage.read

    def read(storage: LocalStorage, path: str) -> bytes | None:
        found = real(storage, path)
        if path == f"_archive/{7:020d}.json" and not looked:
            looked.append(path)
            assert found is None
            advance(other, states[-1], 14)
        return found

    monkeypatch.setattr(LocalStorage, "read", read)
    assert reader.commit(7).app_txns == {AppTxn.EPOCH: 7}
    assert looked
    assert 7 not in in_log(folder)


def test_all_is_in_the_archive_for_good_before_any_of_it_leaves_the_log(
    folder: DeltaPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is made durable in between, whoever else archived the same."""
    synced: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)

    seen: list[tuple[list[int], list[str]]] = []
    log, state = created(
        folder, at(FaultPoint.ARCHIVE_BEFORE_REMOVAL, lambda: seen.append((in_archive(folder), synced[-2:])))
    )
    state = grown(log, state, 6)
    log.checkpoint(6)
    state = grown(log, state, 1)
    monkeypatch.setattr(os, "fsync", fsync)
    log.checkpoint(7)
    ((archived, last),) = seen
    assert archived == list(range(6))
    assert "_archive" in last


@pytest.mark.parametrize("damage", ["garbage", "missing"])
def test_what_delta_rs_needs_comes_back_from_the_archive(folder: DeltaPlace, damage: str) -> None:
    """If both checkpoints in the log are damaged, an older one and the entries since will do."""
    states = filled(folder)
    for version in (15, 20):
        found = folder.checkpoint(version)
        found.write_bytes(b"garbage") if damage == "garbage" else found.unlink()
    assert_whole(folder, states)
    states += advance(folder.open(), states[-1], 8)
    assert_whole(folder, states)
    assert pl.read_delta(folder.uri).height == 1
    assert in_archive(folder) == list(range(in_log(folder)[-1] // EVERY * EVERY - EVERY))


def test_bringing_back_may_be_repeated(folder: DeltaPlace) -> None:
    """A process that stopped in the middle leaves part of the archive in the log as well."""
    states = filled(folder)
    for version in (15, 20):
        folder.checkpoint(version).write_bytes(b"garbage")
    for version in (13, 14):
        os.link(folder.entry(version), folder.folder / "_delta_log" / f"{version:020d}.json")
    assert_whole(folder, states)
    states += advance(folder.open(), states[-1], 8)
    assert_whole(folder, states)


def test_damage_in_the_archive_is_reported(folder: DeltaPlace) -> None:
    """By whoever reads it; what does not need it goes on."""
    states = filled(folder)
    folder.entry(7).write_bytes(b"garbage")
    for act in (
        lambda: folder.open().commit(7),
        lambda: folder.open().state(8),
        lambda: list(folder.open().commits(5, 9)),
    ):
        with pytest.raises(TornLogError, match=r"log entry 7 of .* is damaged: line 1 is no JSON"):
            act()
    folder.entry(9).unlink()
    with pytest.raises(TornLogError, match=r"log entry 9 of .* is damaged: it is missing"):
        folder.open().commit(9)
    folder.checkpoint(10).write_bytes(b"garbage")
    with pytest.raises(CorruptCheckpointError, match="checkpoint 10 of"):
        folder.open().state(12)
    assert folder.open().state(17) == states[17]
    advance(folder.open(), states[-1], 8)


def test_expiry_takes_what_is_archived_meanwhile(folder: DeltaPlace) -> None:
    """Nothing older than the checkpoint in reserve is left behind in either place."""
    states = filled(folder, 14)
    with pytest.raises(Crash):
        advance(folder.open(CrashAt(FaultPoint.ARCHIVE_BEFORE)), states[-1], 1)
    assert in_log(folder)[0] == 5
    folder.open(at(FaultPoint.EXPIRE_BEFORE_ENTRY, lambda: folder.open().checkpoint(15))).expire(15)
    assert (in_archive(folder), in_log(folder)) == ([], list(range(10, 16)))
    assert folder.open().state(14) == states[14]


def test_a_copy_in_an_object_store_reads_its_archive(folder: DeltaPlace, bucket: DeltaPlace) -> None:
    """And goes on from there, where nothing is archived any more."""
    states = filled(folder)
    storage = open_storage(bucket.uri, bucket.options)
    for path in (found for found in folder.folder.rglob("*") if found.is_file()):
        storage.write(path.relative_to(folder.folder).as_posix(), path.read_bytes())
    assert_whole(bucket, states)
    log: DeltaLog = bucket.open()
    states += advance(log, states[-1], 8)
    assert_whole(bucket, states)
    log.expire(20)
    assert sorted(storage.paths("_archive")) == []
    assert bucket.open().state(30) == states[30]
