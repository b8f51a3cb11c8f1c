"""What maintenance clears away, and what it never touches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from catalog.engine.base.fence import Fence
from catalog.engine.log.maintenance import Policy, clean, maintain, plan_cleaning, require_retained
from catalog.engine.log.protocol import AppTxn, Log, LogState
from catalog.errors import ConflictError, FencedError, RetiredError, StepRunningError
from tests.engine.log.places import Place, append, change, created, grown, tail

HOUR_MS = 60 * 60 * 1000
POLICY = Policy(checkpoint_every=2, clean_every=6, retention_ms=10 * HOUR_MS, orphan_ms=HOUR_MS)


def names(log: Log) -> set[str]:
    return {file.path for file in log.files()}


def needing(version: int | None) -> Callable[[LogState], int | None]:
    """Work under way that reads a version, whatever the state."""
    return lambda _: version


def test_nothing_is_done_before_it_is_due(place: Place) -> None:
    """Maintenance after every commit costs next to nothing."""
    log, state = created(place)
    done = maintain(log, append(log, state), POLICY)
    assert (done.checkpoint, done.frontier, done.deleted, done.postponed) == (None, None, (), None)
    assert log.last_checkpoint() == 0


def test_a_checkpoint_is_made_every_so_many_commits(place: Place) -> None:
    """However maintenance is called."""
    log, state = created(place)
    made = []
    for _ in range(5):
        state = append(log, state)
        made.append(maintain(log, state, POLICY).checkpoint)
    assert made == [None, 2, None, 4, None]
    assert place.open().state(5) == state


def test_the_frontier_follows_retention(place: Place) -> None:
    """Whatever was the newest version within the retention time can be read, and nothing older."""
    log, state = created(place)
    history = [state]
    for _ in range(6):
        place.wait(4 * HOUR_MS)
        history.append(append(log, history[-1], removes=tuple(history[-1].files.values())))
    assert plan_cleaning(log, history[-1], POLICY).frontier == 3
    done = clean(log, history[-1], POLICY)
    assert done.frontier == done.state.frontier == 3
    assert done.deleted == tuple(file for state in history[1:3] for file in state.files) or len(done.deleted) == 2
    assert names(log) == {path for state in history[3:] for path in state.files}
    for state in history[3:]:
        require_retained(log, done.state, state.version)
        assert log.state(state.version) == state
        assert [log.read(file).num_rows for file in state.files.values()] == [1]
    with pytest.raises(RetiredError, match="the earliest ts that can be read is 3"):
        require_retained(log, done.state, 2)


def test_what_is_still_read_is_retained_however_old_it_is(place: Place) -> None:
    """A policy can name the earliest version that work under way reads; its files are left alone as well."""
    log, state = created(place)
    for _ in range(6):
        place.wait(4 * HOUR_MS)
        state = append(log, state, removes=tuple(state.files.values()))
    younger = tail(log, state)
    place.wait(4 * HOUR_MS)
    assert plan_cleaning(log, state, POLICY).frontier == 4
    assert plan_cleaning(log, state, POLICY).orphans == (younger.path,)
    for needed, frontier in ((2, 2), (5, 4), (0, 0)):
        planned = plan_cleaning(log, state, replace(POLICY, keep_from=needing(needed)))
        assert (planned.frontier, planned.orphans) == (frontier, ())
    assert plan_cleaning(log, state, replace(POLICY, keep_from=needing(None))).frontier == 4


def test_history_does_not_pile_up(place: Place) -> None:
    """In a long life, files, entries and checkpoints stay few."""
    log, state = created(place)
    for _ in range(14):
        place.wait(5 * HOUR_MS)
        state = maintain(log, grown(log, state, 1), POLICY).state
    assert state.frontier >= 8
    assert len(names(log)) <= 6
    with pytest.raises(RetiredError):
        log.commit(3)
    assert place.open().state(place.open().verify()) == state


def test_orphans_of_lower_fences_go_at_once(place: Place) -> None:
    """Their writers are fenced and cannot commit them; those of the present fence are left for a while."""
    log, state = created(place)
    lower = tail(log, state, fence=Fence(0, 0))
    state = append(log, state, EPOCH=1)
    present, higher = tail(log, state), tail(log, state, fence=Fence(0, 2))
    assert clean(log, state, POLICY).deleted == (lower.path,)
    with pytest.raises(FencedError):
        log.compare_and_append(state, change(lower))
    place.wait(2 * HOUR_MS)
    assert set(clean(log, state, POLICY).deleted) == {present.path, higher.path}
    assert names(log) == set(state.files)


def test_what_is_retained_is_never_vacuumed(place: Place) -> None:
    """Neither by age nor by fence, while a state from the frontier on refers to it."""
    log, state = created(place)
    state = append(log, state)
    state = append(log, state, EPOCH=1, removes=tuple(state.files.values()))
    place.wait(5 * HOUR_MS)
    assert clean(log, state, POLICY).deleted == ()
    assert len(names(log)) == 2


def test_a_commit_meanwhile_is_not_vacuumed(place: Place) -> None:
    """Vacuum with an old state in hand sees what was committed since."""
    log, state = created(place)
    other = place.open()
    old = append(log, state, EPOCH=1)
    append(other, old)
    place.wait(2 * HOUR_MS)
    assert clean(log, old, POLICY).deleted == ()


def test_nothing_is_vacuumed_while_a_step_is_running(place: Place) -> None:
    """A step's files are not committed yet; checkpoints go on, cleaning waits."""
    log, state = created(place)
    state = append(log, state, RUNNING_STEP=22)
    tail(log, state)
    place.wait(2 * HOUR_MS)
    with pytest.raises(StepRunningError, match="the migration to version 22 is running"):
        clean(log, state, POLICY)
    with pytest.raises(StepRunningError):
        clean(log, state, POLICY)
    state = grown(log, state, 5)
    done = maintain(log, state, POLICY)
    assert done.checkpoint == 6
    assert isinstance(done.postponed, StepRunningError)
    assert len(names(log)) == 7
    state = append(log, done.state, RUNNING_STEP=0)
    assert len(clean(log, state, POLICY).deleted) == 1


def test_a_step_that_another_process_began_counts(place: Place) -> None:
    """Vacuum looks at the newest marks, not at those it was called with."""
    log, state = created(place)
    append(place.open(), state, RUNNING_STEP=22)
    with pytest.raises(StepRunningError):
        clean(log, state, POLICY)


def test_cleaning_that_loses_a_race_waits(place: Place) -> None:
    """Nothing is deleted if the frontier could not be moved."""
    log, state = created(place)
    state = grown(log, state, 6)
    append(place.open(), state)
    place.wait(20 * HOUR_MS)
    with pytest.raises(ConflictError):
        clean(log, state, POLICY)
    assert len(names(log)) == 7
    assert isinstance(maintain(log, state, POLICY).postponed, ConflictError)


def test_two_may_maintain_at_once(place: Place) -> None:
    """One moves the frontier; the other finds it moved."""
    log, state = created(place)
    state = grown(log, state, 6)
    place.wait(20 * HOUR_MS)
    first: LogState = maintain(log, state, POLICY).state
    other = place.open()
    second = clean(other, other.state(other.verify()), POLICY)
    assert second.state.app_txns[AppTxn.FRONTIER] >= first.app_txns[AppTxn.FRONTIER] == 6
    assert names(log) == set(state.files)
