"""`migration_event`: what every run of a step did, or why it did not."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from catalog.engine.journal import Journal
from catalog.engine.plan import StepPlan
from catalog.errors import ConflictError
from catalog.log.protocol import Mark, Operation
from catalog.stash.transaction import RowChange

_ERROR_CHARACTERS_MAX = 4000


class State(IntEnum):
    """As the proto numbers them. A step that has not run has no event."""

    RUNNING = 1
    MIGRATED = 2
    ERROR = 3
    UNDONE = 4


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    value: Any
    """A `MigrationEventValue`."""

    @property
    def state(self) -> State:
        return State(self.value.state)


def read_events(journal: Journal) -> list[Event]:
    """Every event, the oldest first."""
    found = [Event(int(key.id), value) for key, value in journal.rows("migration_event")]  # type: ignore[attr-defined]
    return sorted(found, key=lambda event: event.id)


def begin(journal: Journal, plan: StepPlan, build: str) -> int:
    """Say that a step runs, in a commit of its own; a dead run of before is closed with it. Answers the event's id."""
    kind = journal.registry.named("migration_event")
    while True:
        events = read_events(journal)
        number = max((event.id for event in events), default=0) + 1
        value = kind.value_type(
            version=plan.version,
            name=plan.name,
            state=State.RUNNING,
            checksum=plan.checksum,
            started_ms=journal.log.now_ms(),
            previous=plan.previous,
            build=build,
            deploy_generation=journal.fence.generation,
            epoch=journal.fence.epoch,
        )
        rows = [*_dead(journal, _running(events)), journal.change(kind.key_type(id=number), value)]
        try:
            journal.append(Operation.TRANSACTION, rows, {Mark.RUNNING_STEP: plan.version})
        except ConflictError:
            journal.refresh()
        else:
            return number


def close_dead(journal: Journal, only: Container[int] | None = None) -> tuple[int, ...]:
    """Close the runs of before, or some of them, in one commit; answers the ids of their events.

    Whoever leads closes all: it has fenced their processes. Others name those that they know to be dead.
    """
    while True:
        running = _running(read_events(journal))
        dead = [event for event in running if only is None or event.id in only]
        is_marked = bool(journal.state.marks.get(Mark.RUNNING_STEP, 0))
        if not dead and (running or not is_marked):
            return ()
        marks = {Mark.RUNNING_STEP: 0} if len(dead) == len(running) else {}
        try:
            journal.append(Operation.TRANSACTION, _dead(journal, dead), marks)
        except ConflictError:
            journal.refresh()
        else:
            return tuple(event.id for event in dead)


def _running(events: list[Event]) -> list[Event]:
    return [event for event in events if event.state is State.RUNNING]


def _dead(journal: Journal, events: list[Event]) -> list[RowChange]:
    error = "its process ended before the step did"
    return [closed(journal, event, State.ERROR, error=error) for event in events]


def closed(
    journal: Journal, event: Event, state: State, *, error: str = "", counts: Mapping[str, int] | None = None
) -> RowChange:
    """An event in its final state, as a change to be committed."""
    kind = journal.registry.named("migration_event")
    value = kind.value_type()
    value.CopyFrom(event.value)
    value.state = state  # type: ignore[attr-defined]
    value.error = error[:_ERROR_CHARACTERS_MAX]  # type: ignore[attr-defined]
    value.completed_ms = journal.log.now_ms()  # type: ignore[attr-defined]
    for name, number in (counts or {}).items():
        setattr(value, name, number)
    return journal.change(kind.key_type(id=event.id), value)


def fail(journal: Journal, number: int, error: str) -> None:
    """Record why a step was not applied, if it was not; nothing else changes."""
    while True:
        event = next(event for event in read_events(journal) if event.id == number)
        if event.state is not State.RUNNING:
            return
        try:
            journal.append(
                Operation.TRANSACTION, [closed(journal, event, State.ERROR, error=error)], {Mark.RUNNING_STEP: 0}
            )
        except ConflictError:
            journal.refresh()
