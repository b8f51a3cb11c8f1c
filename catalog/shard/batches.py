"""Batches: rows of a shard in columns, each batch one row of the log.

The key of that row names the schema of the batch, its run and its place in it, so that of the rows themselves nothing
need be read to know them. The value is an Arrow IPC stream: the columns by their ids, `ts` and `diff`. Elsewhere rows
are record batches of the columns with the diff as the last.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from catalog.codec import bounded_batches
from catalog.errors import CorruptFileError
from catalog.log.protocol import ROWS, DataFile, Fence, FileKind, Log
from catalog.shard.migration import Migration
from catalog.shard.order import numbers
from catalog.shard.schema import SchemaId

COLLECTION = "batch"
BATCH_BYTES_MAX = 64 * 2**20

_KEY = struct.Struct(">Q16sI?")
_TS = pa.field("ts", pa.int64(), nullable=False)
_DIFF = pa.field("diff", pa.int64(), nullable=False)


@dataclass(frozen=True, slots=True)
class Run:
    """Batches of one schema whose rows are in order, within each and from one to the next."""

    schema_id: SchemaId
    id: bytes
    unordered: bool = False
    """Whether it is a piece of a longer run that fell apart when a field was deleted."""

    @classmethod
    def new(cls, schema_id: SchemaId, *, unordered: bool = False) -> Run:
        return cls(schema_id, uuid.uuid4().bytes, unordered)


@dataclass(frozen=True, slots=True)
class Batch:
    file: DataFile
    run: Run
    position: int


def inner_rows(schema: pa.Schema, columns: list[pa.Array], diffs: pa.Int64Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*columns, diffs], schema=schema.append(_DIFF))


def migrated(rows: pa.RecordBatch, migration: Migration) -> pa.RecordBatch:
    """The same rows in another schema, the diff untouched."""
    columns = migration.columns(rows.columns[:-1], rows.num_rows)
    return inner_rows(migration.target, columns, rows.columns[-1])


def bounded(rows: pa.RecordBatch, bytes_max: int) -> Iterator[pa.RecordBatch]:
    return bounded_batches(rows, bytes_max=bytes_max, rows_max=max(rows.num_rows, 1))


def write_batches(
    log: Log, fence: Fence, kind: FileKind, run: Run, rows: Iterable[pa.RecordBatch], ts: int
) -> Iterator[DataFile]:
    """A file for each batch of a run, in its order."""
    for position, batch in enumerate(rows):
        yield log.write(COLLECTION, kind, fence, log_row(_pack(run, position), _encode(batch, ts), ts))


def describe_batch(log: Log, file: DataFile) -> Batch:
    """What a file of the log holds, told by its key; of the rows nothing is read."""
    keys = {key for group in log.groups(file) for key in (group.first, group.last)}
    if file.rows != 1 or len(keys) != 1 or len(key := keys.pop()) != _KEY.size:
        raise CorruptFileError(log.uri, file.path, "it is no batch of a shard")
    schema_id, run, position, unordered = _KEY.unpack(key)
    return Batch(file, Run(SchemaId(schema_id), run, unordered), position)


def read_batch(log: Log, batch: Batch) -> pa.RecordBatch:
    """The rows of a batch in its own schema."""
    table = log.read(batch.file)
    if table["key"][0].as_py() != _pack(batch.run, batch.position):
        raise CorruptFileError(log.uri, batch.file.path, "its footer tells of another batch")
    try:
        with pa.ipc.open_stream(table["value"][0].as_buffer()) as stream:
            rows = stream.read_next_batch()
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptFileError(log.uri, batch.file.path, str(error)) from error
    return rows.select([*rows.schema.names[:-2], _DIFF.name])


def log_row(key: bytes, value: pa.Buffer, ts: int) -> pa.Table:
    """One row of the log, built from buffers: nothing large is copied."""
    columns = [_binary(pa.py_buffer(key)), _binary(value), numbers(np.array([ts])), _ONE]
    return pa.Table.from_arrays(columns, schema=ROWS)


def _pack(run: Run, position: int) -> bytes:
    return _KEY.pack(run.schema_id, run.id, position, run.unordered)


def _encode(rows: pa.RecordBatch, ts: int) -> pa.Buffer:
    schema = pa.schema([*list(rows.schema)[:-1], _TS, _DIFF])
    times = numbers(np.full(rows.num_rows, ts))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays([*rows.columns[:-1], times, rows.columns[-1]], schema=schema))
    return sink.getvalue()


def _binary(value: pa.Buffer) -> pa.BinaryArray:
    offsets = pa.py_buffer(np.array([0, value.size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, value])


_ONE = pa.Array.from_buffers(pa.int32(), 1, [None, pa.py_buffer(np.array([1], np.int32))])
