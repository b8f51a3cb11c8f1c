"""Frames of bulk writes: of every library, in types that fit or do not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from catalog.engine.schema_change.frames import frame_rows
from catalog.engine.schema_change.schema import TableSchema
from catalog.engine.schema_change.types import Value
from catalog.errors.tables import UnfitFrameError
from tests.engine.schema_change.stores import Disk

THINGS = (
    "CREATE TABLE things (id BIGINT, n INT, d DOUBLE, m DECIMAL(10,2), s STRING, y BINARY, b BOOLEAN, day DATE, "
    "at TIMESTAMP, l ARRAY<BIGINT>, twice BIGINT GENERATED ALWAYS AS (id * 2), PRIMARY KEY (id))"
)
TYPES = pa.schema([("id", pa.int64()), ("s", pa.string())])
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def things() -> TableSchema:
    process = Disk().open()
    process.ddl(THINGS)
    return process.schema("things")


def named(schema: TableSchema, frame: object) -> list[dict[str, Value]]:
    rows = frame_rows(schema, frame, schema.key_columns())
    return [{schema.names[number]: value for number, value in row.items()} for row in rows]


class Foreign:
    """A frame of another library, by the method that it has."""

    def __init__(self, method: str) -> None:
        setattr(self, method, lambda: pa.table({"id": [1, 2], "s": ["a", None]}))


class Stream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.table({"id": [1, 2], "s": ["a", None]}).__arrow_c_stream__(requested_schema)


def _pandas() -> pd.DataFrame:
    found = pd.DataFrame({"id": [0, 1, 2], "s": ["left out", "a", None]})
    return found[found.id > 0]


FRAMES: dict[str, Callable[[], object]] = {
    "table": lambda: pa.table({"id": [1, 2], "s": ["a", None]}),
    "batch": lambda: pa.record_batch({"id": [1, 2], "s": ["a", None]}),
    "batches": lambda: iter(
        [pa.record_batch({"id": [1], "s": ["a"]}), pa.record_batch({"id": [2], "s": [None]}, TYPES)]
    ),
    "reader": lambda: pa.table({"id": [1, 2], "s": ["a", None]}).to_reader(1),
    "stream": Stream,
    "to_arrow": lambda: Foreign("to_arrow"),
    "toArrow": lambda: Foreign("toArrow"),
    "pandas": _pandas,
    "dictionaries": lambda: [{"id": 1, "s": "a"}, {"id": 2, "s": None}],
    "generator": lambda: ({"ID": number, "s": text} for number, text in ((1, "a"), (2, None))),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_every_library_are_taken(things: TableSchema, kind: str) -> None:
    """By the names of columns; an index of pandas is none of them."""
    assert named(things, FRAMES[kind]()) == [{"id": 1, "s": "a"}, {"id": 2, "s": None}]


@pytest.mark.parametrize(
    "frame", [[], pa.table({"id": pa.array([], pa.int64())}), pd.DataFrame({"id": []}, dtype="int64")]
)
def test_a_frame_may_be_empty(things: TableSchema, frame: object) -> None:
    """It has no rows."""
    assert named(things, frame) == []


def test_rows_set_the_columns_that_they_name(things: TableSchema) -> None:
    """A column that only later rows have is not lost, and one that is left out is not NULL."""
    assert named(things, [{"id": 1}, {"id": 2, "s": "b"}, {"id": 3, "s": None}]) == [
        {"id": 1},
        {"id": 2, "s": "b"},
        {"id": 3, "s": None},
    ]


def test_dictionaries_are_read_as_transactions_read_them(things: TableSchema) -> None:
    """Texts of decimals and dates, whole numbers for DOUBLE."""
    row = {"id": 1, "d": 3, "m": "9.9", "day": "2026-01-31", "at": "2026-01-31 12:00:00Z", "l": (1, 2)}
    assert named(things, [row]) == [
        {"id": 1, "d": 3.0, "m": Decimal("9.90"), "day": date(2026, 1, 31), "at": NOON, "l": [1, 2]}
    ]


@pytest.mark.parametrize(
    ("column", "data", "expected"),
    [
        ("n", pa.array([3], pa.uint8()), 3),
        ("n", pa.array([2**31 - 1], pa.uint64()), 2**31 - 1),
        ("n", pa.nulls(1), None),
        ("d", pa.array([1.5], pa.float32()), 1.5),
        ("d", pa.array([3]), 3.0),
        ("m", pa.array([5]), Decimal("5.00")),
        ("m", pa.array([99_999_999], pa.uint64()), Decimal("99999999.00")),
        ("m", pa.array([Decimal("1.5")], pa.decimal128(38, 10)), Decimal("1.50")),
        ("s", pa.array(["x"], pa.large_string()), "x"),
        ("s", pa.array(["x"], pa.string_view()), "x"),
        ("s", pa.array(["x"]).dictionary_encode(), "x"),
        ("s", pa.array(pd.Categorical(["x"])), "x"),
        ("y", pa.array([b"x"], pa.binary_view()), b"x"),
        ("b", pa.array([True]), True),
        ("day", pa.array([date(2026, 1, 31)], pa.date64()), date(2026, 1, 31)),
        ("at", pa.array([NOON], pa.timestamp("ns", "Europe/Paris")), NOON),
        ("l", pa.array([[1, 2]], pa.large_list(pa.int16())), [1, 2]),
        ("l", pa.array([[1, 2]], pa.list_(pa.int64(), 2)), [1, 2]),
    ],
)
def test_types_are_widened(things: TableSchema, column: str, data: pa.Array, expected: Value) -> None:
    """Without a change of meaning."""
    assert named(things, pa.table({"id": [1], column: data})) == [{"id": 1, column: expected}]


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        (pa.table({"id": [1], "x": [1], "z": [2]}), "there is no column x, z"),
        (pa.table({"s": ["a"]}), "the column id is missing"),
        (pa.table({"id": [1], "twice": [2]}), "twice is computed, and cannot be set"),
        (pa.table([[1], [2]], names=["id", "ID"]), "a column is there twice"),
        (pa.table({"id": ["one"]}), "id is string, the table has BIGINT"),
        (pa.table({"id": [1], "n": [1.0]}), "n is double, the table has INT"),
        (pa.table({"id": [1], "b": [1]}), "b is int64, the table has BOOLEAN"),
        (
            pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us"))}),
            r"at is timestamp\[us\], the table has TIMESTAMP",
        ),
        (pa.table({"id": [1], "at": pa.array([1], pa.timestamp("ns", "UTC"))}), "at does not fit TIMESTAMP"),
        (pa.table({"id": [1], "at": pa.array([2**62], pa.timestamp("us", "UTC"))}), "at does not fit TIMESTAMP"),
        (pa.table({"id": pa.array([2**63], pa.uint64())}), "id does not fit BIGINT"),
        (pa.table({"id": [1], "n": [2**31]}), "n does not fit INT"),
        (pa.table({"id": [1], "d": [2**60 + 1]}), "d does not fit DOUBLE"),
        (pa.table({"id": [1], "m": [10**8]}), r"m does not fit DECIMAL\(10,2\)"),
        (pa.table({"id": [1], "m": pa.array([Decimal("0.001")])}), r"m does not fit DECIMAL\(10,2\)"),
        (pa.table({"id": [1], "l": [["a"]]}), "l is list.*, the table has ARRAY<BIGINT>"),
        (pa.table({"id": [1], "l": [[None]]}), "l does not fit ARRAY<BIGINT>: an element of an ARRAY cannot be NULL"),
        (pd.DataFrame([[1, 2]], columns=["id", "id"]), "it cannot be read: Duplicate column names"),
        (pd.DataFrame({"id": [1, "one"]}), "it cannot be read"),
        ([{"id": 1}, {"id": 2, "n": 2**31}], "n of row 2: 2147483648 is out of the range of INT"),
        ([{"id": 1, "x": 1}], "there is no column x"),
        ([{"id": 1, "Id": 1}], "a column is there twice"),
        ([{"n": 1}], "the column id is missing"),
        ([{"id": 1}, (2,)], "a tuple is no row"),
        ([pa.record_batch({"id": [1]}), {"id": 2}], "a RecordBatch is no row"),
        ([pa.record_batch({"id": [1]}), pa.record_batch({"n": [1]})], "it cannot be read"),
        ("id", "a str is no row; pass Arrow, pandas, or a list of dictionaries"),
        (7, "it cannot be read: 'int' object is not iterable"),
    ],
)
def test_what_does_not_fit_is_refused(things: TableSchema, frame: object, found: str) -> None:
    """By name, before anything is written."""
    with pytest.raises(UnfitFrameError, match=found):
        named(things, frame)


def test_rows_without_columns_are_rows(things: TableSchema) -> None:
    """Of a table whose columns all have defaults, or are not needed."""
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert frame_rows(things, batch, ()) == [{}, {}]
