"""`catalog ddl run`: carry out a statement that defines tables, or show its stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.schema_changes import ChangeShown, StageLine, carried_out
from catalog.cli.store_tables import tables_to_read, tables_to_write
from catalog.engine.base.duration import parse_seconds
from catalog.errors import UsageError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.cli.context import StoreTarget
    from catalog.engine.schema_change.plan import Plan


@dataclass(frozen=True, slots=True)
class PlannedChange:
    statement: str
    stages: tuple[StageLine, ...]
    notes: tuple[str, ...]


def run(  # noqa: PLR0913 - its options
    invocation: Invocation,
    *,
    statement: str,
    detach: bool,
    patience: str,
    hold: bool,
    rows_per_s: int,
    dry_run: bool,
) -> CommandResult:
    """Carry a statement out here, or leave it to another process; with `dry_run`, only plan it."""
    patience_s = _seconds(patience)
    if dry_run:
        planned = _plan(invocation.target, statement)
        stages = tuple(map(StageLine.of, planned.stages))
        return CommandResult(PlannedChange(" ".join(statement.split()), stages, planned.notes), renderer="render_plan")
    with tables_to_write(invocation.target) as tables:
        change = tables.submit(statement, patience_s=patience_s, hold=hold, rows_per_s=rows_per_s, detach=True)
        if detach:
            return CommandResult(ChangeShown.of(tables, change), renderer="render_detached")
        return carried_out(invocation, tables, change.id)


def _plan(target: StoreTarget, statement: str) -> Plan:
    with tables_to_read(target) as tables:
        if tables is not None:
            return tables.plan(statement)
    return _first_plan(target, statement)


def _first_plan(target: StoreTarget, statement: str) -> Plan:
    """Plan a statement for a store that has had no table yet."""
    from catalog.engine.schema_change.names import StashNames  # noqa: PLC0415 - most stores have tables
    from catalog.engine.schema_change.operations.context import Planning  # noqa: PLC0415
    from catalog.engine.schema_change.plan import Ids  # noqa: PLC0415
    from catalog.engine.schema_change.planner import plan_statement  # noqa: PLC0415
    from catalog.engine.schema_change.sql import parse_statement  # noqa: PLC0415
    from catalog.engine.store.leadership import own_stash  # noqa: PLC0415

    names = StashNames(own_stash(target.project, target.place.log()))
    return plan_statement(Planning({}, names.table_id, names.canonical, Ids(1)), parse_statement(statement))


def _seconds(text: str) -> float:
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise UsageError(
            f"--patience {text!r} is no duration", str(error), "give --patience 60s, or 0 to wait for nobody"
        ) from error
