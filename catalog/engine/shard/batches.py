"""Batches: rows of a shard in columns, each batch one row of the log.

The key of that row holds the schema of the batch, its run and its position in it, so that a batch can be described
without reading its rows. The value is an Arrow IPC stream: the columns by their ids, `ts` and `diff`. Elsewhere rows
are record batches of the columns with the diff as the last.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from catalog.engine.base.arrow import binary_array, repeated, single_binary
from catalog.engine.base.fence import Fence
from catalog.engine.log.protocol import ROWS, DataFile, FileKind, Log
from catalog.engine.shard.array_migration import ArrayMigration
from catalog.engine.shard.schema import SchemaId
from catalog.errors import CorruptFileError

COLLECTION = "batch"
BATCH_BYTES_MAX = 64 * 2**20

_KEY = struct.Struct(">Q16sI?")
_TS = pa.field("ts", pa.int64(), nullable=False)
_DIFF = pa.field("diff", pa.int64(), nullable=False)


@dataclass(frozen=True, slots=True)
class BatchRun:
    """Batches of one schema whose rows are in order, within each and from one to the next."""

    schema_id: SchemaId
    id: bytes
    unordered: bool = False
    """True if it is a piece of a longer run that fell apart when a field was deleted."""

    @classmethod
    def new(cls, schema_id: SchemaId, *, unordered: bool = False) -> BatchRun:
        return cls(schema_id, uuid.uuid4().bytes, unordered)


@dataclass(frozen=True, slots=True)
class Batch:
    file: DataFile
    run: BatchRun
    position: int


def inner_rows(schema: pa.Schema, columns: list[pa.Array], diffs: pa.Int64Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*columns, diffs], schema=schema.append(_DIFF))


def migrated(rows: pa.RecordBatch, migration: ArrayMigration) -> pa.RecordBatch:
    """Return the same rows in another schema, the diff unchanged."""
    columns = migration.columns(rows.columns[:-1], rows.num_rows)
    return inner_rows(migration.target, columns, rows.columns[-1])


def write_batches(
    log: Log, fence: Fence, kind: FileKind, run: BatchRun, rows: Iterable[pa.RecordBatch], ts: int
) -> Iterator[DataFile]:
    """Write a file for each batch of a run, in its order."""
    for position, batch in enumerate(rows):
        yield log.write(COLLECTION, kind, fence, log_row(_pack(run, position), _encode(batch, ts), ts))


def describe_batch(log: Log, file: DataFile) -> Batch:
    """Describe the batch of a file by its key; none of its rows is read."""
    keys = {key for group in log.groups(file) for key in (group.first, group.last)}
    if file.rows != 1 or len(keys) != 1 or len(key := keys.pop()) != _KEY.size:
        raise CorruptFileError(log.uri, file.path, "it is no batch of a shard")
    schema_id, run, position, unordered = _KEY.unpack(key)
    return Batch(file, BatchRun(SchemaId(schema_id), run, unordered), position)


def read_batch(log: Log, batch: Batch) -> pa.RecordBatch:
    """Return the rows of a batch in its own schema."""
    table = log.read(batch.file)
    if table["key"][0].as_py() != _pack(batch.run, batch.position):
        raise CorruptFileError(log.uri, batch.file.path, "its footer names another batch")
    try:
        with pa.ipc.open_stream(table["value"][0].as_buffer()) as stream:
            rows = stream.read_next_batch()
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptFileError(log.uri, batch.file.path, str(error)) from error
    return rows.select([*rows.schema.names[:-2], _DIFF.name])


def log_row(key: bytes, value: pa.Buffer, ts: int) -> pa.Table:
    """Return one row of the log, built from buffers: nothing large is copied."""
    columns = [binary_array([key]), single_binary(value), repeated(pa.int64(), ts, 1), repeated(pa.int32(), 1, 1)]
    return pa.Table.from_arrays(columns, schema=ROWS)


def _pack(run: BatchRun, position: int) -> bytes:
    return _KEY.pack(run.schema_id, run.id, position, run.unordered)


def _encode(rows: pa.RecordBatch, ts: int) -> pa.Buffer:
    schema = pa.schema([*list(rows.schema)[:-1], _TS, _DIFF])
    times = repeated(pa.int64(), ts, rows.num_rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays([*rows.columns[:-1], times, rows.columns[-1]], schema=schema))
    return sink.getvalue()
