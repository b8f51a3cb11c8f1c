"""Rows by the column have the very bytes and values of rows one by one."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa

from catalog.engine.base.arrow import binary_array
from catalog.engine.schema_change.derive import stored_row
from catalog.engine.schema_change.row_columns import decode_columns, encode_entries
from catalog.engine.schema_change.rows import RowCodec, RowValues
from catalog.engine.schema_change.schema import Element, ElementKind, TableColumn, TableSchema, TableState
from catalog.engine.schema_change.types import ColumnType, Value

KINDS = ("BIGINT", "STRING", "INT", "BOOLEAN", "DOUBLE", "BINARY", "DATE", "TIMESTAMP", "DECIMAL(10,2)")
NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)


def schema() -> TableSchema:
    columns = tuple(TableColumn(number, f"c{number}", ColumnType.parse(kind)) for number, kind in enumerate(KINDS, 2))
    late = TableColumn(20, "late", ColumnType.parse("INT"), since=3, initial_default=7)
    primary = Element(1, "pk", ElementKind.PRIMARY, (2, 3))
    index = Element(2, "ix", ElementKind.INDEX, (4, 8), stored=(5, 10), built=True)
    return TableSchema(1, "t", TableState.PUBLIC, (*columns, late), (primary, index), 2, 2, 21)


def rows(draw: random.Random) -> list[RowValues]:
    def value(kind: str) -> Value:
        values: dict[str, list[Value]] = {
            "BIGINT": [0, -1, 2**62, 5],
            "STRING": ["", "ü", "ann"],
            "INT": [0, 7, -(2**31)],
            "BOOLEAN": [True, False],
            "DOUBLE": [0.0, 1.5, -2.25],
            "BINARY": [b"", b"\0\xff"],
            "DATE": [dt.date(1969, 12, 31), dt.date(2026, 2, 1)],
            "TIMESTAMP": [NOON, NOON - dt.timedelta(days=30_000)],
            "DECIMAL(10,2)": [Decimal("0.00"), Decimal("-9.90"), Decimal("12345678.12")],
        }
        return draw.choice([*values[kind], None])

    found: dict[tuple[Value, Value], RowValues] = {}
    for number in range(60):
        row = {at: value(kind) for at, kind in enumerate(KINDS, 2)}
        row[2], row[3] = number, row[3] or "key"
        found[row[2], row[3]] = row
    return list(found.values())


def test_both_ways_agree_on_random_rows() -> None:
    """Keys, values and entries of an index, and what is read of them."""
    codec, written = RowCodec(schema()), rows(random.Random(7))  # noqa: S311 - no secret
    stored = [stored_row(codec, codec.schema.primary, row) for row in written]
    keys, values = (binary_array(list(side)) for side in zip(*stored, strict=True))
    columns = decode_columns(codec, keys, values)
    one_by_one = [codec.row(*own) for own in stored]
    for column in codec.schema.columns:
        assert columns[column.id].to_pylist() == [row[column.id] for row in one_by_one], column.name
    assert columns[20].to_pylist() == [7] * len(written)
    for element in codec.schema.elements:
        own = {number: array for number, array in columns.items() if number != 20}
        made = encode_entries(codec, element, own, len(written))
        single = [stored_row(codec, element, row) for row in written]
        assert list(zip(*(side.to_pylist() for side in made), strict=True)) == single, element.name
    assert isinstance(columns[10], pa.Array)
