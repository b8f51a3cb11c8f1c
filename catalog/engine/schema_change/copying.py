"""A copy of tables: the rows of one ts, in a log of its own whose history begins with them.

Only live rows are copied. A schema change that is under way comes along without an owner, and begins its present stage
again: its ts is none of the copy's. Bulk writes are not copied, because their processes do not write to the copy.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from catalog.engine.codec.columns import rebatch
from catalog.engine.log.data_files import rows_table, with_ts
from catalog.engine.log.protocol import AppTxn, CommitRequest, DataFile, FileKind, Log, LogState, Operation
from catalog.engine.log.replica import newest_state
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.folding import FILE_BYTES_MAX
from catalog.engine.schema_change.layers import LayerCache, LayeredView
from catalog.engine.schema_change.replica import BULK_WRITE, SCHEMA_CHANGE, TABLE
from catalog.engine.schema_change.steps import ChangeStatus
from catalog.errors import NoStoreError, RetiredError

_TS = 0
"""Of all rows that are copied: they were there before the first commit of the copy."""


@dataclass(frozen=True, slots=True)
class CopiedTables:
    ts: int
    """The ts of the source whose rows the copy holds."""
    tables: int
    files: tuple[DataFile, ...]


def tables_state(log: Log) -> LogState | None:
    """Return the newest state of a log of tables; none if there is none, or its maker was stopped before its use."""
    try:
        state = newest_state(log)
    except NoStoreError:
        return None
    return state if AppTxn.TABLES_FORMAT in state.app_txns else None


def count_tables(log: Log, state: LogState) -> int:
    """Return the number of tables at a state."""
    return sum(1 for _ in LayeredView(LayerCache(log), state).rows(TABLE))


def copy_tables(source: Log, state: LogState, target: Log) -> CopiedTables:
    """Write the rows and marks of a state to an empty place. Raises RetiredError if the state is retired meanwhile."""
    view, files = LayeredView(LayerCache(source), state), list[DataFile]()
    target.create(uuid.uuid4().hex)
    try:
        for name in sorted(view.collections() - {BULK_WRITE}):
            files.extend(
                target.write(name, FileKind.BASE, state.fence, with_ts(rows, _TS))
                for rows in rebatch(_rows(view, name), FILE_BYTES_MAX)
            )
    except RetiredError:
        target.delete([file.path for file in files])
        raise
    marks = {**state.app_txns, AppTxn.FRONTIER: 1}
    change = CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, tuple(files), app_txns=marks)
    target.compare_and_append(target.state(0), change)
    return CopiedTables(state.version, count_tables(source, state), tuple(files))


def _rows(view: LayeredView, collection: str) -> Iterator[pa.Table]:
    """Yield the live rows of a collection, as they are to be copied, in tables of key and value."""
    if collection != SCHEMA_CHANGE:
        yield from view.tables(collection)
        return
    rows = [(key, _ownerless(value), _TS, 1) for key, value in view.rows(collection)]
    if rows:
        yield rows_table(rows).select(["key", "value"])


def _ownerless(stored: bytes) -> bytes:
    """Return the row of a change as a copy has it: if it is under way, its next owner begins the stage again."""
    change = pb.SchemaChangeValue.FromString(stored)
    if ChangeStatus(change.status).is_over:
        return stored
    change.owner, change.owner_epoch = "", change.owner_epoch + 1
    change.ClearField("read_ts")
    change.ClearField("done_until")
    del change.chunks_done[:]
    change.chunks = change.rows_done = change.rows_total = 0
    return change.SerializeToString(deterministic=True)
