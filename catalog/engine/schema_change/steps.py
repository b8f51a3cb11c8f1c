"""The steps of a schema change as commits: begin, announce, close, edit, undo.

Each is drafted for one state, and only if the change is there as its owner knows it: the same stage, the same epoch.
The row of the change is written in the same commit as every step of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from catalog.engine.log.protocol import DataFile, Operation, Row
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.plan import Edit, ItemVerb, Stage, StageKind, closed, edited
from catalog.engine.schema_change.replica import BULK_WRITE, SCHEMA_CHANGE, TABLE, TablesReplica
from catalog.engine.schema_change.schema import STORING, TableSchema
from catalog.engine.schema_change.store import Draft, put
from catalog.engine.schema_change.stored_plan import stages_of
from catalog.engine.schema_change.stored_schema import table_message, table_schema
from catalog.errors.tables import ChangeOvertakenError, NotRevertibleError, RefusedChangeError, UnknownChangeError

EVENTS_MAX = 50
"""Of a change that are kept, the newest."""


class ChangeStatus(IntEnum):
    PENDING = 1
    RUNNING = 2
    WAITING = 3
    PAUSED = 4
    HOLDING = 5
    SUCCEEDED = 6
    FAILED = 7
    CANCELLED = 8

    @property
    def is_over(self) -> bool:
        return self >= ChangeStatus.SUCCEEDED


RUN = frozenset({ChangeStatus.RUNNING, ChangeStatus.WAITING})
STOPPED = frozenset({ChangeStatus.PAUSED})
UNDONE = frozenset({ChangeStatus.FAILED, ChangeStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class Owned:
    """A change as its owner knows it."""

    id: int
    epoch: int
    stage: int


class StoppedByOthersError(Exception):
    """Raised inside an owner: the change was paused, cancelled or ended meanwhile."""


def change_row(replica: TablesReplica, number: int) -> pb.SchemaChangeValue:
    """Return a copy of the row of a change, to be changed."""
    found = replica.message(SCHEMA_CHANGE, pb.SchemaChangeKey(id=number), pb.SchemaChangeValue)
    if not isinstance(found, pb.SchemaChangeValue):
        raise UnknownChangeError(number)
    return found


def put_change(replica: TablesReplica, number: int, row: pb.SchemaChangeValue) -> list[Row]:
    del row.events[:-EVENTS_MAX]
    return put(replica, SCHEMA_CHANGE, pb.SchemaChangeKey(id=number), row)


def owned_row(replica: TablesReplica, owned: Owned, allowed: frozenset[ChangeStatus] = RUN) -> pb.SchemaChangeValue:
    """Return the row of a change; refuse if its owner is overtaken, or if it was paused or ended."""
    row = change_row(replica, owned.id)
    if row.owner_epoch != owned.epoch:
        raise ChangeOvertakenError(owned.id, row.owner or "nobody")
    if ChangeStatus(row.status) not in allowed or row.stage != owned.stage:
        raise StoppedByOthersError
    return row


def note(row: pb.SchemaChangeValue, now_ms: int, text: str) -> None:
    row.events.append(pb.ChangeEvent(at_ms=now_ms, text=text))


def finished_stage(row: pb.SchemaChangeValue, stage: Stage, now_ms: int, count: int = 1) -> None:
    """Move a change on to its next stage, or to its end."""
    note(row, now_ms, stage.text)
    row.stage += count
    row.status = pb.STATUS_RUNNING
    row.is_visible = row.is_visible or stage.is_visible
    row.ClearField("read_ts")
    row.ClearField("done_until")
    del row.chunks_done[:]
    row.chunks = row.rows_done = row.rows_total = 0
    if row.stage >= len(row.stages):
        row.status = pb.STATUS_SUCCEEDED
        row.ended_ms = now_ms


def edit_draft(replica: TablesReplica, owned: Owned, stage: Stage) -> Draft:
    """Draft an edit: it is known to all writers at once, whatever they have pinned."""
    row = owned_row(replica, owned)
    _require_empty(replica, stage)
    schemas = _edited_schemas(replica, stage.edits, closing=True)
    finished_stage(row, stage, replica.log.now_ms())
    return _schema_draft(replica, owned.id, row, schemas)


def announce_draft(replica: TablesReplica, owned: Owned, stage: Stage, following: Stage) -> Draft:
    """Draft an announcement; if nobody pins an earlier version, it is closed in the same commit."""
    row = owned_row(replica, owned)
    tables = {edit.table for edit in stage.edits}
    strict = not any(pin.table in tables for write in replica.bulk_writes().values() for pin in write.pins)
    schemas = _edited_schemas(replica, stage.edits, closing=False)
    if strict:
        schemas = {number: None if own is None else closed(own) for number, own in schemas.items()}
        finished_stage(row, stage, replica.log.now_ms(), count=2)
        row.is_visible = row.is_visible or following.is_visible
    else:
        finished_stage(row, stage, replica.log.now_ms())
    return _schema_draft(replica, owned.id, row, schemas)


def close_draft(replica: TablesReplica, owned: Owned, stage: Stage, dead: Iterable[str]) -> Draft:
    """Draft the close of an announcement; bulk writes without a sign of life are removed with it."""
    row = owned_row(replica, owned)
    worked_on = (replica.schemas.get(image.table) for image in row.images)
    schemas: dict[int, TableSchema | None] = {
        schema.id: closed(schema) for schema in worked_on if schema is not None and schema.min < schema.cur
    }
    finished_stage(row, stage, replica.log.now_ms())
    draft = _schema_draft(replica, owned.id, row, schemas)
    gone = [own for name in dead for own in put(replica, BULK_WRITE, pb.BulkWriteKey(id=name), None)]
    return replace(draft, rows={**draft.rows, BULK_WRITE: gone}) if gone else draft


def row_draft(
    replica: TablesReplica,
    owned: Owned,
    edit: Callable[[pb.SchemaChangeValue], None],
    adds: tuple[DataFile, ...] = (),
    removes: tuple[DataFile, ...] = (),
) -> Draft:
    """Draft a commit that changes the row of a change, with the files that it adds and removes."""
    row = owned_row(replica, owned)
    edit(row)
    operation = Operation.REORGANISE if adds or removes else Operation.TRANSACTION
    return Draft(operation, {SCHEMA_CHANGE: put_change(replica, owned.id, row)}, adds, removes)


def is_revertible(row: pb.SchemaChangeValue) -> bool:
    """Tell if a change can be cancelled: nobody sees it yet, and no item of the catalog may be gone by it."""
    present = stages_of(row)[row.stage : row.stage + 1]
    may_be_gone = any(stage.item is not None and stage.item.verb is ItemVerb.DELETE for stage in present)
    return not (ChangeStatus(row.status).is_over or row.is_visible or may_be_gone)


def stop_draft(replica: TablesReplica, number: int, owner: Owned | None) -> tuple[Draft, Owned]:
    """Draft the stop of a change before its item is taken back, which it would change again if it were resumed."""
    row = _revertible_row(replica, number, owner)
    first = next((at for at, stage in enumerate(stages_of(row)) if stage.item is not None), row.stage)
    row.status, row.owner, row.stage = pb.STATUS_PAUSED, "", min(row.stage, first)
    row.owner_epoch += 1
    note(row, replica.log.now_ms(), "stopped, to be undone")
    return Draft(rows={SCHEMA_CHANGE: put_change(replica, number, row)}), Owned(number, row.owner_epoch, row.stage)


def undo_draft(
    replica: TablesReplica,
    number: int,
    status: ChangeStatus,
    *,
    failure: pb.Failure | None = None,
    owner: Owned | None = None,
    is_stopped: bool = False,
) -> Draft:
    """Draft the undo of a change from whatever stage it is in: tables are as before, and nothing of it is left."""
    row = _revertible_row(replica, number, owner, STOPPED if is_stopped else RUN)
    schemas: dict[int, TableSchema | None] = {}
    for image in row.images:
        present = replica.schemas.get(image.table)
        if present is None or present.change != number:
            continue
        before = table_schema(image.table, image.before) if image.HasField("before") else None
        if before is not None:
            version = present.cur + 1
            following = max(present.next_column, before.next_column)
            before = replace(before, cur=version, min=version, change=0, next_column=following)
        schemas[image.table] = before
    row.status = status  # type: ignore[assignment]
    row.owner_epoch += 1
    row.ended_ms = replica.log.now_ms()
    note(row, row.ended_ms, "undone: nothing is left of it")
    if failure is not None:
        row.failure.CopyFrom(failure)
    return _schema_draft(replica, number, row, schemas)


def _revertible_row(
    replica: TablesReplica, number: int, owner: Owned | None, allowed: frozenset[ChangeStatus] = RUN
) -> pb.SchemaChangeValue:
    """Return the row of a change that can still be undone: by its owner until it is visible, by others not as long."""
    row = change_row(replica, number) if owner is None else owned_row(replica, owner, allowed)
    if ChangeStatus(row.status).is_over or row.is_visible or (owner is None and not is_revertible(row)):
        raise NotRevertibleError(number, ChangeStatus(row.status).name)
    return row


def _require_empty(replica: TablesReplica, stage: Stage) -> None:
    schema = replica.schemas.get(stage.table)
    if stage.needs_empty and schema is not None and next(replica.view.rows(schema.collection), None) is not None:
        raise RefusedChangeError(
            schema.name, "rows came while a NOT NULL column without a default was added", "give the column a default"
        )


def _edited_schemas(replica: TablesReplica, edits: Iterable[Edit], *, closing: bool) -> dict[int, TableSchema | None]:
    """Return the schemas after edits, each at a new version; `closing` makes it the only one."""
    by_table: dict[int, list[Edit]] = {}
    for edit in edits:
        by_table.setdefault(edit.table, []).append(edit)
    after: dict[int, TableSchema | None] = {}
    for number, own in by_table.items():
        present = replica.schemas.get(number)
        version = 1 if present is None else present.cur + 1
        schema = edited(present, own, version)
        if schema is not None and present is not None:
            schema = replace(schema, cur=version, min=version if closing else present.min)
        after[number] = schema
    return after


def _schema_draft(
    replica: TablesReplica, number: int, row: pb.SchemaChangeValue, schemas: Mapping[int, TableSchema | None]
) -> Draft:
    """Draft a commit of schemas with the row of their change; what is gone loses its files in it."""
    over = ChangeStatus(row.status).is_over
    after = dict(schemas)
    for image in row.images:
        present = after.get(image.table, replica.schemas.get(image.table))
        if image.table not in after and present is None:
            continue
        after[image.table] = None if present is None else replace(present, change=0 if over else number)
    rows = {SCHEMA_CHANGE: put_change(replica, number, row), TABLE: list[Row]()}
    removes: list[DataFile] = []
    for table, schema in after.items():
        message = None if schema is None else table_message(schema)
        rows[TABLE] += put(replica, TABLE, pb.TableKey(id=table), message)
        removes += _files_gone(replica, replica.schemas.get(table), schema)
    operation = Operation.REORGANISE if removes else Operation.TRANSACTION
    return Draft(operation, {name: own for name, own in rows.items() if own}, removes=tuple(removes))


def _files_gone(replica: TablesReplica, before: TableSchema | None, after: TableSchema | None) -> list[DataFile]:
    kept = set() if after is None else {element.id for element in after.elements}
    gone = [] if before is None else [e for e in before.elements if e.kind in STORING and e.id not in kept]
    return [file for element in gone for file in replica.view.files_of(element.collection)]


def stage_of(row: pb.SchemaChangeValue) -> Stage:
    return stages_of(row)[row.stage]


def next_stage(row: pb.SchemaChangeValue) -> Stage:
    """Return the stage after the present one; an announcement always has its close."""
    stages = stages_of(row)
    return stages[row.stage + 1] if row.stage + 1 < len(stages) else Stage(StageKind.CLOSE, "close")
