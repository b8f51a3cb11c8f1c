"""Arrow columns from Python values, built from buffers.

`pa.array` and `pa.scalar` import pandas where it is installed, which costs a process more than everything else at
start-up together.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate

import pyarrow as pa

from catalog.log.protocol import ROWS

_CHUNK_BYTES_MAX = 1 << 30
"""Well below what 32-bit offsets reach."""
_CODES = {pa.int64(): "q", pa.int32(): "i"}


def binary_column(values: Sequence[bytes]) -> pa.ChunkedArray:
    return pa.chunked_array([_binary(part) for part in _parts(values)], pa.binary())


def rows_table(rows: Sequence[tuple[bytes, bytes, int, int]]) -> pa.Table:
    """Rows as (key, value, ts, diff) in the columns of a data file."""
    keys, values, ts, diffs = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    columns = [
        binary_column(keys),
        binary_column(values),
        pa.chunked_array([_numbers(pa.int64(), ts)]),
        pa.chunked_array([_numbers(pa.int32(), diffs)]),
    ]
    return pa.Table.from_arrays(columns, schema=ROWS)


def dated(rows: pa.RecordBatch, ts: int) -> pa.Table:
    """Rows of keys and values in the columns of a data file, all of them added at one ts."""
    count = rows.num_rows
    columns = [rows["key"], rows["value"], _repeated(pa.int64(), ts, count), _repeated(pa.int32(), 1, count)]
    return pa.Table.from_arrays(columns, schema=ROWS)


def _repeated(type_: pa.DataType, value: int, count: int) -> pa.Array:
    """A column of whole numbers that are all the same."""
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(array(_CODES[type_], [value]) * count)])


def _binary(values: Sequence[bytes]) -> pa.BinaryArray:
    offsets = array("i", accumulate((len(value) for value in values), initial=0))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def _numbers(type_: pa.DataType, values: Sequence[int]) -> pa.Array:
    return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(array(_CODES[type_], values))])


def _parts(values: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    start, size = 0, 0
    for position, value in enumerate(values):
        if size and size + len(value) > _CHUNK_BYTES_MAX:
            yield values[start:position]
            start, size = position, 0
        size += len(value)
    yield values[start:]
