"""Schema changes as commands show them, and the carrying out of one while its progress is shown."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.signals import stopped_by
from catalog.engine.schema_change.change import ChangeFailure, SchemaChange, Waiting
from catalog.engine.schema_change.plan import Stage
from catalog.engine.schema_change.signs import DEAD_AFTER_S
from catalog.engine.schema_change.steps import RUN, ChangeStatus
from catalog.errors import CatalogError, ChangeLeftError, ChangeStoppedError, SchemaChangeFailedError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.engine.schema_change.tables import Tables

_WATCH_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class StageLine:
    kind: str
    text: str
    is_visible: bool
    """True if the change cannot be undone from its end on."""

    @classmethod
    def of(cls, stage: Stage) -> StageLine:
        return cls(stage.kind.name, stage.text, stage.is_visible)


@dataclass(frozen=True, slots=True)
class EventLine:
    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class ChangeShown:
    """A schema change at one moment."""

    id: int
    statement: str
    status: str
    owner: str
    """The host and number of the process that carries it out; empty if none does."""
    stages: tuple[StageLine, ...]
    """Empty until it has begun."""
    stages_done: int
    rows_done: int
    """Of the present stage, as far as it was committed."""
    rows_total: int
    """Of the present stage; 0 if it reads none, or does not count them."""
    rows_per_s: float | None
    left_s: float | None
    submitted_ms: int
    since_ms: int
    """The time of the last thing that it did."""
    now_ms: int
    ended_ms: int | None
    patience_s: float
    can_be_cancelled: bool
    waiting_on: tuple[Waiting, ...]
    """The bulk writes that it waits for."""
    behind: tuple[int, ...]
    """The changes of the same tables that it waits for."""
    failure: ChangeFailure | None
    events: tuple[EventLine, ...]

    @property
    def is_over(self) -> bool:
        return self.ended_ms is not None

    @classmethod
    def of(cls, tables: Tables, change: SchemaChange) -> ChangeShown:
        now_ms, events = tables.store.log.now_ms(), change.events
        since_ms = events[-1][0] if events else change.submitted_ms
        rate = _rate(change, now_ms - since_ms)
        left = max(0, change.rows_total - change.rows_done)
        return cls(
            change.id,
            " ".join(change.statement.split()),
            change.status.name,
            change.owner,
            tuple(map(StageLine.of, change.stages)),
            change.stage,
            change.rows_done,
            change.rows_total,
            rate,
            left / rate if rate else None,
            change.submitted_ms,
            since_ms,
            now_ms,
            change.ended_ms,
            change.patience_s,
            change.can_be_cancelled,
            change.waiting_on,
            tuple(_behind(tables, change)),
            change.failure,
            tuple(EventLine(at_ms, text) for at_ms, text in events),
        )


def carried_out(run: Invocation, tables: Tables, number: int) -> CommandResult:
    """Carry a change out in this process while its progress is shown; return what became of it."""

    def look() -> ChangeShown:
        return ChangeShown.of(tables, tables.change(number))

    try:
        with run.screen.change_progress(look):
            tables.carry_out(number)
    except KeyboardInterrupt as stopped:
        shown = look()
        if not shown.is_over:
            return CommandResult(shown, ChangeLeftError(stopped_by(stopped), change=number))
    else:
        shown = look()
    return CommandResult(shown, error_of(shown), renderer="render_result")


def error_of(shown: ChangeShown) -> CatalogError | None:
    """Return the error of a change that ended, or was stopped, without becoming visible; none if it is held."""
    failure = shown.failure
    if failure is not None:
        return SchemaChangeFailedError(
            shown.id, shown.statement, failure.rule, failure.keys, failure.count, failure.why
        )
    if shown.status in {ChangeStatus.SUCCEEDED.name, ChangeStatus.HOLDING.name}:
        return None
    return ChangeStoppedError(shown.id, shown.status)


def left_changes(
    run: Invocation, tables: Tables, only: Collection[int] | None = None
) -> tuple[list[SchemaChange], list[SchemaChange]]:
    """Return the changes that nobody carries out, and those that others do; a silent owner is watched for a while."""
    beats: dict[int, object] = {}
    left, running, silent = _divided(tables, only, beats)
    if left or not silent:
        return left, running
    owners = ", ".join(dict.fromkeys(change.owner for change in silent))
    watching = f"watching for a sign of life of {owners}: {DEAD_AFTER_S:.0f} s at most"
    run.screen.note_in_pipe(watching)
    with run.screen.waiting(watching):
        while silent and not left:
            time.sleep(_WATCH_EVERY_S)
            left, running, silent = _divided(tables, only, beats)
    return left, running


def _divided(
    tables: Tables, only: Collection[int] | None, beats: dict[int, object]
) -> tuple[list[SchemaChange], list[SchemaChange], list[SchemaChange]]:
    """Return the changes that nobody carries out, those that others do, and of these the ones without a new sign."""
    left = {change.id: change for change in tables.unattended()}
    running = [c for c in tables.changes() if c.id not in left and c.status in {*RUN, ChangeStatus.PENDING}]
    if only is not None:
        left = {number: change for number, change in left.items() if number in only}
        running = [change for change in running if change.id in only]
    now = {change.id: tables.signs.facts(f"change-{change.id}").get("beat") for change in running}
    silent = [change for change in running if beats.setdefault(change.id, now[change.id]) == now[change.id]]
    return list(left.values()), running, silent


def _rate(change: SchemaChange, passed_ms: int) -> float | None:
    is_measured = change.status in RUN and change.rows_done > 0 and passed_ms > 0
    return change.rows_done * 1000 / passed_ms if is_measured else None


def _behind(tables: Tables, change: SchemaChange) -> list[int]:
    """Return the unfinished changes that a change waits for before it begins."""
    if change.status is not ChangeStatus.PENDING:
        return []
    try:
        concerned = tables.plan(change.statement).tables
    except CatalogError:
        return []  # it will be judged when it begins
    schemas = tables.store.replica.schemas
    others = {schemas[number].change for number in concerned if number in schemas}
    return sorted(others - {0, change.id})
