"""The record of runs: the collection `migration_event`, with one event for every run of a step."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from catalog.engine.log.protocol import AppTxn, Operation
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.stash.transaction import RowChange
from catalog.errors import ConflictError, UndecodableRowError

if TYPE_CHECKING:
    from catalog.engine.migrate.plan import StepPlan

_ERROR_CHARACTERS_MAX = 4000


class RunState(IntEnum):
    """The states of a run, as the proto numbers them. A step that has not run has no event."""

    RUNNING = 1
    MIGRATED = 2
    ERROR = 3
    UNDONE = 4


@dataclass(frozen=True, slots=True)
class MigrationEvent:
    """One run of a step."""

    id: int
    value: Any
    """A `MigrationEventValue`."""

    @property
    def state(self) -> RunState:
        return RunState(self.value.state)


def read_events(journal: SystemRows) -> list[MigrationEvent]:
    """Return every event, the oldest first."""
    found = [MigrationEvent(int(key.id), value) for key, value in journal.rows("migration_event")]  # type: ignore[attr-defined]
    for event in found:
        if event.value.state not in set(RunState):
            reason = f"its state is {event.value.state}, which no run has"
            raise UndecodableRowError("MigrationEventValue", event.id, "", reason)
    return sorted(found, key=lambda event: event.id)


def begin(journal: SystemRows, plan: StepPlan, build: str) -> int:
    """Record that a step runs, in a commit of its own that also closes abandoned runs; return the event's id."""
    kind = journal.registry.named("migration_event")
    while True:
        events = read_events(journal)
        number = max((event.id for event in events), default=0) + 1
        value = kind.value_type(
            version=plan.version,
            name=plan.name,
            state=RunState.RUNNING,
            checksum=plan.checksum,
            started_ms=journal.log.now_ms(),
            previous=plan.previous,
            build=build,
            deploy_generation=journal.fence.generation,
            epoch=journal.fence.epoch,
        )
        rows = [*_closed(journal, _running(events)), journal.change(kind.key_type(id=number), value)]
        try:
            journal.append(Operation.TRANSACTION, rows, {AppTxn.RUNNING_STEP: plan.version})
        except ConflictError:
            journal.refresh()
        else:
            return number


def close_dead(journal: SystemRows, only: Container[int] | None = None) -> tuple[int, ...]:
    """Close the abandoned runs, or some of them, in one commit; return the ids of their events.

    A leader closes all, because it has fenced their processes. Others name those whose process they know to be dead.
    """
    while True:
        running = _running(read_events(journal))
        abandoned = [event for event in running if only is None or event.id in only]
        is_marked = bool(journal.state.app_txns.get(AppTxn.RUNNING_STEP, 0))
        if not abandoned and (running or not is_marked):
            return ()
        marks = {AppTxn.RUNNING_STEP: 0} if len(abandoned) == len(running) else {}
        try:
            journal.append(Operation.TRANSACTION, _closed(journal, abandoned), marks)
        except ConflictError:
            journal.refresh()
        else:
            return tuple(event.id for event in abandoned)


def _running(events: list[MigrationEvent]) -> list[MigrationEvent]:
    return [event for event in events if event.state is RunState.RUNNING]


def _closed(journal: SystemRows, events: list[MigrationEvent]) -> list[RowChange]:
    error = "its process ended before the step did"
    return [finished(journal, event, RunState.ERROR, error=error) for event in events]


def finished(
    journal: SystemRows,
    event: MigrationEvent,
    state: RunState,
    *,
    error: str = "",
    counts: Mapping[str, int] | None = None,
) -> RowChange:
    """Return the change that brings an event into its final state."""
    kind = journal.registry.named("migration_event")
    value = kind.value_type()
    value.CopyFrom(event.value)
    value.state = state  # type: ignore[attr-defined]
    value.error = error[:_ERROR_CHARACTERS_MAX]  # type: ignore[attr-defined]
    value.completed_ms = journal.log.now_ms()  # type: ignore[attr-defined]
    for name, number in (counts or {}).items():
        setattr(value, name, number)
    return journal.change(kind.key_type(id=event.id), value)


def fail(journal: SystemRows, number: int, error: str) -> None:
    """Record why a step was not applied; an event that is already closed stays as it is."""
    while True:
        event = next(event for event in read_events(journal) if event.id == number)
        if event.state is not RunState.RUNNING:
            return
        try:
            journal.append(
                Operation.TRANSACTION, [finished(journal, event, RunState.ERROR, error=error)], {AppTxn.RUNNING_STEP: 0}
            )
        except ConflictError:
            journal.refresh()
