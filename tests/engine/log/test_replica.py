"""The replica of a log: it follows what others commit, and translates what they have swept."""

from __future__ import annotations

import pytest

from catalog.engine.base.fence import Fence
from catalog.engine.log.maintenance import MaintenanceResult, Policy, clean
from catalog.engine.log.protocol import AppTxn, Log, LogState
from catalog.engine.log.replica import LogReplica, retired_if_missing
from catalog.errors import ConflictError, MissingFileError, NoStoreError, RetiredError
from tests.engine.log.places import MemoryPlace, append, change, created, grown, tail

HASTY = Policy(checkpoint_every=1, clean_every=1, retention_ms=1000, orphan_ms=0)


@pytest.fixture
def place() -> MemoryPlace:
    return MemoryPlace()


def cleaned(place: MemoryPlace, log: Log, state: LogState) -> LogState:
    """Let the retention of all states but the newest end."""
    place.wait(5000)
    state = append(log, state)
    place.wait(5000)
    log.checkpoint(state.version)
    return clean(log, append(log, state), HASTY).state


def test_it_follows_every_commit(place: MemoryPlace) -> None:
    log, state = created(place)
    replica = LogReplica(place.open(), state)
    state = grown(log, state, 5)
    assert replica.catch_up() == replica.state == state


def test_it_restarts_from_the_newest_state_if_it_was_left_behind(place: MemoryPlace) -> None:
    """The commits that it has not seen are expired: there is nothing to adopt one by one."""
    log, state = created(place)
    replica = LogReplica(place.open(), state)
    newest = cleaned(place, log, grown(log, state, 5))
    with pytest.raises(RetiredError):
        place.open().commit(1)
    assert replica.catch_up() == newest


def test_a_swept_file_is_a_conflict_only_if_something_was_committed(place: MemoryPlace) -> None:
    log, state = created(place)
    replica = LogReplica(place.open(), state)
    file = tail(log, state)
    log.delete([file.path])
    with pytest.raises(MissingFileError):
        replica.append(state, change(file))
    after = append(log, state, EPOCH=1)
    with pytest.raises(ConflictError) as conflict:
        replica.append(state, change(file))
    assert isinstance(conflict.value.__cause__, MissingFileError)
    assert replica.state == after


def test_maintenance_records_its_error_and_raises_none(place: MemoryPlace) -> None:
    log, state = created(place)
    replica = LogReplica(log, append(log, state, RUNNING_STEP=18))
    with replica.best_effort():
        replica.maintain(HASTY)
    assert "18" in str(replica.last_error)
    with replica.best_effort():
        raise NoStoreError("memory:", "it is gone")
    assert isinstance(replica.last_error, NoStoreError)
    with replica.best_effort():
        pass
    assert replica.last_error is None


def test_maintenance_moves_the_replica_to_the_new_frontier(place: MemoryPlace) -> None:
    log, state = created(place)
    replica = LogReplica(log, grown(log, state, 5))
    place.wait(5000)
    replica.adopt(log.compare_and_append(replica.state, change(app_txns={AppTxn.EPOCH: 1})), replica.state)
    done = replica.maintain(HASTY)
    assert replica.state == done.state == log.state(log.verify())
    assert (replica.state.frontier, replica.state.fence) == (5, Fence(0, 1))


def test_a_missing_file_of_a_retired_version_is_no_damage(place: MemoryPlace) -> None:
    log, state = created(place)
    grown_state = grown(log, state, 3)
    gone = MissingFileError("memory:", "collection=role/file")
    with pytest.raises(MissingFileError), retired_if_missing(log, 2):
        raise gone
    cleaned(place, log, grown_state)
    with pytest.raises(RetiredError), retired_if_missing(log, 2):
        raise gone


def test_an_error_after_the_new_frontier_is_recorded(place: MemoryPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frontier moved, the deletion after it failed: the replica follows, and the error is not forgotten."""
    log, state = created(place)
    replica, failure = LogReplica(log, state), NoStoreError("memory:", "it is gone")
    moved = append(log, state)
    monkeypatch.setattr("catalog.engine.log.replica.maintain", lambda *_: MaintenanceResult(moved, postponed=failure))
    replica.maintain(HASTY)
    assert (replica.state, replica.last_error) == (moved, failure)
