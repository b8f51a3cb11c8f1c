"""A step that ends at any point on its way, in each of the steps there are.

Of most steps every third point is taken, another third for each; `./dev soak faults` takes all of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings

from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.protocol import AppTxn, FaultPoint
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.recorder import RunState
from catalog.engine.migrate.step_runner import StepPoint
from catalog.engine.stash.registry import Registry
from catalog.errors import CatalogError, IndeterminateError
from catalog.tools.fsck.stash import fsck
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import events_of, lead, open_log, rows_of, state_of, version_of

Stores = Callable[[int], Path]
STEPS = [version for version in range(PROJECT.minimum, PROJECT.current) if version != 20]
WHOLE = STEPS if settings.get_current_profile_name() == "soak" else [PROJECT.minimum, 19]
"""The steps that are stopped at each of their points: one that rewrites rows of before protobuf, one that gives ids."""


class Crash(BaseException):
    """The process ended: nothing that it would have done afterwards happens."""


@dataclass
class Fault:
    """Fails when so many points of a step were passed; after a crash, at each one that follows too."""

    at: int | None = None
    error: type[BaseException] = Crash
    armed: bool = False
    passed: list[str] = field(default_factory=list)

    def __call__(self, point: FaultPoint | StepPoint) -> None:
        if self.armed:
            self.passed.append(point)
            place = len(self.passed) - 1
            if place == self.at or (self.at is not None and place > self.at and self.error is Crash):
                raise self.error(f"at {point}")


def run(store: Path, version: int, fault: Fault) -> None:
    """Take a store one version on, with a fault on the way."""
    runner = lead(store, log=open_log(store, fault), reached=fault)
    fault.armed = True
    upgrade(runner, until=version + 1)


def finish(store: Path, version: int) -> None:
    """The next leader finishes what was begun, and sweeps what was left."""
    upgrade(lead(store), until=version + 1)
    assert version_of(store) == version + 1
    assert state_of(store).app_txns.get(AppTxn.RUNNING_STEP, 0) == 0
    *before, last = events_of(store)
    assert last.state is RunState.MIGRATED
    assert {event.state for event in before} <= {RunState.ERROR}
    log = open_log(store)
    clean(log, state_of(store), Policy())
    types, constraints = Registry.of(PROJECT.types(version + 1)), PROJECT.constraints.at(version + 1)
    assert fsck(log, types, constraints, every_state=version >= PROJECT.first_proto).findings == ()


def points(copy_of: Stores, version: int) -> tuple[list[str], Path]:
    """The points that an undisturbed step passes, and what it leaves."""
    store, watched = copy_of(version), Fault()
    run(store, version, watched)
    assert set(StepPoint) <= set(watched.passed)
    assert {FaultPoint.WRITE_AFTER_FILE, FaultPoint.COMMIT_BEFORE_LOG, FaultPoint.COMMIT_AFTER_SYNC} <= set(
        watched.passed
    )
    return watched.passed, store


def taken(passed: list[str], version: int) -> range:
    """The points at which a step is stopped."""
    return range(len(passed)) if version in WHOLE else range(version % 3, len(passed), 3)


@pytest.mark.parametrize("version", STEPS)
def test_a_crash_anywhere_leaves_a_store_that_the_next_leader_upgrades(copy_of: Stores, version: int) -> None:
    """The rows are those of an undisturbed step."""
    passed, undisturbed = points(copy_of, version)
    expected, before = rows_of(undisturbed), rows_of(copy_of(version))
    committed = len(passed) - 1 - passed[::-1].index(FaultPoint.COMMIT_AFTER_LOG)
    for place in taken(passed, version):
        store = copy_of(version)
        with pytest.raises(Crash):
            run(store, version, Fault(place))
        landed = place >= committed
        assert version_of(store) == version + landed
        assert rows_of(store) == (expected if landed else before), f"crashed at {place}, {passed[place]}"
        finish(store, version)
        assert rows_of(store) == expected, f"crashed at {place}, {passed[place]}"


@pytest.mark.parametrize("version", STEPS)
def test_an_error_anywhere_is_recorded_or_overcome(copy_of: Stores, version: int) -> None:
    """A process that lives on says why it failed, unless it cannot know whether it did."""
    passed, undisturbed = points(copy_of, version)
    expected = rows_of(undisturbed)
    for place in taken(passed, version):
        point, store, raised = passed[place], copy_of(version), None
        try:
            run(store, version, Fault(place, OSError))
        except (OSError, CatalogError) as error:
            raised = error
        begun = passed.index(StepPoint.AFTER_BEGIN) <= place < passed.index(StepPoint.AFTER_COMMIT)
        if version_of(store) == version and begun and not isinstance(raised, IndeterminateError):
            assert raised is not None
            (event,) = events_of(store)
            assert event.state is RunState.ERROR
            assert f"at {point}" in event.value.error
            assert state_of(store).app_txns[AppTxn.RUNNING_STEP] == 0
        finish(store, version)
        assert rows_of(store) == expected, f"failed at {place}, {point}"


@pytest.mark.spark
def test_a_crash_of_a_step_on_frames_leaves_a_store_that_the_next_leader_upgrades(copy_of: Stores) -> None:
    """The same with a real session, before its commit, and when that has landed."""
    passed, undisturbed = points(copy_of, 20)
    expected, before = rows_of(undisturbed), rows_of(copy_of(20))
    committed = len(passed) - 1 - passed[::-1].index(FaultPoint.COMMIT_AFTER_LOG)
    for place in (passed.index(StepPoint.AFTER_TASKS), committed):
        store = copy_of(20)
        with pytest.raises(Crash):
            run(store, 20, Fault(place))
        assert rows_of(store) == (expected if place >= committed else before)
        finish(store, 20)
        assert rows_of(store) == expected, f"crashed at {place}, {passed[place]}"
