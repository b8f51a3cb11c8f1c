"""Rows of a shard as Arrow columns, built without pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from catalog.engine.base.arrow import binary_array, number_array, validity_bits
from catalog.engine.base.lazy_arrow import pa
from catalog.engine.shard.schema import Schema
from catalog.errors import UnfitColumnError

Row = tuple[Any, ...]
"""Values in the order of the schema's columns; a time is in microseconds since 1970."""


def rows_table(schema: Schema, rows: Iterable[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema.columns)
    fields = [pa.field(column.name, column.type, column.nullable) for column in schema.columns]
    made = [_array(column.name, column.type, values) for column, values in zip(schema.columns, columns, strict=True)]
    return pa.Table.from_arrays(made, schema=pa.schema(fields))


def moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)


def _array(name: str, type_: pa.DataType, values: Sequence[Any]) -> pa.Array:
    valid = None if None not in values else validity_bits([value is not None for value in values])
    if pa.types.is_string(type_):
        texts = [b"" if value is None else value.encode() for value in values]
        return binary_array(texts, type_, valid)
    if pa.types.is_int64(type_) or pa.types.is_timestamp(type_):
        try:
            return number_array(type_, (0 if value is None else value for value in values), valid)
        except OverflowError as error:
            raise UnfitColumnError(name, "a number beyond 2⁶³-1", "64 bits with a sign") from error
    return pa.array(values, type_)
