"""Rows of builtins as Arrow columns, built from buffers: `pa.array` imports pandas, which costs a start-up dearly."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

import pyarrow as pa
from pyarrow import types

from catalog.errors import UnfitColumnError
from catalog.shard.schema import Schema

Row = tuple[Any, ...]
"""Values in the order of the schema's columns; a time is in microseconds since 1970."""


def rows_table(schema: Schema, rows: Iterable[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema.columns)
    fields = [pa.field(column.name, column.type, column.nullable) for column in schema.columns]
    made = [_array(column.name, column.type, values) for column, values in zip(schema.columns, columns, strict=True)]
    return pa.Table.from_arrays(made, schema=pa.schema(fields))


def moment(microseconds: int) -> datetime:
    """A time as people have it."""
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)


def _array(name: str, type_: pa.DataType, values: Sequence[Any]) -> pa.Array:
    valid = None if None not in values else _bits([value is not None for value in values])
    if types.is_string(type_):
        texts = [b"" if value is None else value.encode() for value in values]
        offsets = array("i", accumulate(map(len, texts), initial=0))
        return pa.Array.from_buffers(type_, len(values), [valid, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))])
    if types.is_int64(type_) or types.is_timestamp(type_):
        try:
            numbers = array("q", (0 if value is None else value for value in values))
        except OverflowError as error:
            raise UnfitColumnError(name, "a number beyond 2⁶³-1", "64 bits with a sign") from error
        return pa.Array.from_buffers(type_, len(values), [valid, pa.py_buffer(numbers)])
    return pa.array(values, type_)


def _bits(flags: Sequence[bool]) -> pa.Buffer:
    found = bytearray((len(flags) + 7) // 8)
    for position, flag in enumerate(flags):
        found[position >> 3] |= flag << (position & 7)
    return pa.py_buffer(bytes(found))
