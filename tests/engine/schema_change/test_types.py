"""Types of columns: read as Spark writes them, values checked, stored and shown in Arrow without a loss."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from catalog.engine.schema_change.types import ColumnType, TypeName, Value
from catalog.errors.tables import UnsupportedTypeError

VALUES: dict[str, st.SearchStrategy[Value]] = {
    "BOOLEAN": st.booleans(),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(allow_nan=False),
    "STRING": st.text(st.characters(exclude_categories=["Cs"])),
    "BINARY": st.binary(),
    "DATE": st.dates(),
    "TIMESTAMP": st.datetimes(timezones=st.just(UTC)),
    "DECIMAL(18,2)": st.decimals(-(10**16) + 1, 10**16 - 1, places=2),
    "DECIMAL(5,5)": st.integers(-99_999, 99_999).map(lambda unscaled: Decimal(unscaled).scaleb(-5)),
}
SCALARS = st.sampled_from(sorted(VALUES)).flatmap(
    lambda text: st.tuples(st.just(ColumnType.parse(text)), st.lists(st.none() | VALUES[text]))
)
ARRAYS = st.sampled_from(sorted(VALUES)).flatmap(
    lambda text: st.tuples(st.just(ColumnType.parse(f"ARRAY<{text}>")), st.lists(st.none() | st.lists(VALUES[text])))
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("boolean", "BOOLEAN"),
        (" Integer ", "INT"),
        ("long", "BIGINT"),
        ("timestamp_ltz", "TIMESTAMP"),
        ("numeric", "DECIMAL(10,0)"),
        ("dec( 7 )", "DECIMAL(7,0)"),
        ("decimal(18,18)", "DECIMAL(18,18)"),
        ("array< decimal( 4 , 1 ) >", "ARRAY<DECIMAL(4,1)>"),
    ],
)
def test_types_are_read_in_all_of_sparks_spellings(text: str, told: str) -> None:
    found = ColumnType.parse(text)
    assert found.text == found.spark == told
    assert ColumnType.parse(told) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("smallint", "use INT instead"),
        ("varchar(10)", "use STRING instead"),
        ("timestamp_ntz", "use TIMESTAMP instead"),
        ("map<int", "it cannot be read"),
        ("variant", "there is no VARIANT"),
        ("decimal(19,2)", "a DECIMAL has 1 to 18 digits"),
        ("decimal(0)", "a DECIMAL has 1 to 18 digits"),
        ("decimal(4,5)", "no more digits can stand after the point than there are"),
        ("int(3)", "INT has no length"),
        ("array", "an ARRAY, and nothing else, has the type of its elements in <>"),
        ("int<string>", "an ARRAY, and nothing else, has the type of its elements in <>"),
        ("array<array<int>>", "an ARRAY of ARRAYs cannot be stored"),
    ],
)
def test_other_types_are_refused_by_name(text: str, found: str) -> None:
    with pytest.raises(UnsupportedTypeError) as raised:
        ColumnType.parse(text)
    assert raised.value.found == found


@given(SCALARS | ARRAYS)
def test_stored_values_come_back(given: tuple[ColumnType, list[Value]]) -> None:
    """One by one, in columns, and in columns that are a part of a longer one."""
    kind, values = given
    assert [kind.check(value) for value in values] == values
    stored = [kind.to_stored(value) for value in values]
    assert [kind.from_stored(value) for value in stored] == values
    column = pa.array(values, kind.arrow)
    assert kind.to_stored_array(column).equals(pa.array(stored, kind.stored_arrow))
    assert kind.to_logical(pa.array(stored, kind.stored_arrow)).equals(column)
    assert kind.to_logical(kind.to_stored_array(column[1:])).equals(column[1:])


@pytest.mark.parametrize(
    ("text", "given", "canonical"),
    [
        ("DOUBLE", 3, 3.0),
        ("BINARY", bytearray(b"a"), b"a"),
        ("DATE", "2026-01-31", date(2026, 1, 31)),
        ("TIMESTAMP", "2026-01-31 01:00:00+01:00", datetime(2026, 1, 31, tzinfo=UTC)),
        ("TIMESTAMP", datetime(2026, 1, 31, 1, tzinfo=timezone(timedelta(hours=1))), datetime(2026, 1, 31, tzinfo=UTC)),
        ("DECIMAL(5,2)", "9.9", Decimal("9.90")),
        ("DECIMAL(5,2)", 7, Decimal("7.00")),
        ("DECIMAL(5,2)", Decimal("1E+2"), Decimal("100.00")),
        ("DECIMAL(5,2)", Decimal("-0.0"), Decimal("0.00")),
        ("ARRAY<DECIMAL(3,1)>", ("1", 2), [Decimal("1.0"), Decimal("2.0")]),
    ],
)
def test_unambiguous_values_become_canonical(text: str, given: object, canonical: Value) -> None:
    found = ColumnType.parse(text).check(given)
    assert repr(found) == repr(canonical)


@pytest.mark.parametrize(
    ("text", "given", "told"),
    [
        ("BOOLEAN", 1, "1 (int) is no BOOLEAN"),
        ("INT", True, "True (bool) is no INT"),
        ("INT", 2**31, "2147483648 is out of the range of INT"),
        ("BIGINT", -(2**63) - 1, "-9223372036854775809 is out of the range of BIGINT"),
        ("BIGINT", 1.0, "1.0 (float) is no BIGINT"),
        ("DOUBLE", 2**53 + 1, "9007199254740993 cannot be a DOUBLE without being rounded"),
        ("DOUBLE", "1", "'1' (str) is no DOUBLE"),
        ("STRING", b"a", "b'a' (bytes) is no STRING"),
        ("STRING", "\ud800", "'\\ud800' is no text that UTF-8 can hold"),
        ("BINARY", "a", "'a' (str) is no BINARY"),
        ("DATE", datetime(2026, 1, 1, tzinfo=UTC), "is no DATE"),
        ("DATE", "31.1.2026", "'31.1.2026' is no date; write it as 2026-01-31"),
        ("DATE", "2026-02-30", "day is out of range for month"),
        ("TIMESTAMP", datetime(2026, 1, 1), "has no zone; pass one, such as datetime.UTC"),  # noqa: DTZ001 - the point
        ("TIMESTAMP", "2026-01-31 00:00:00", "has no zone; write it as 2026-01-31 23:59:59Z"),
        ("TIMESTAMP", "now", "'now' is no timestamp"),
        ("TIMESTAMP", "0001-01-01 00:00:00+01:00", "is outside the years 1 to 9999"),
        ("TIMESTAMP", date(2026, 1, 1), "is no TIMESTAMP"),
        ("DECIMAL(5,2)", 0.5, "0.5 (float) is no DECIMAL(5,2)"),
        ("DECIMAL(5,2)", "1.005", "1.005 is no DECIMAL(5,2): it would be rounded, or has too many digits"),
        ("DECIMAL(5,2)", 1000, "1000 is no DECIMAL(5,2)"),
        ("DECIMAL(5,2)", Decimal("NaN"), "NaN is no DECIMAL(5,2)"),
        ("DECIMAL(5,2)", "abc", "abc is no DECIMAL(5,2)"),
        ("DECIMAL(5,2)", Decimal("1E+999999"), "is no DECIMAL(5,2)"),
        ("ARRAY<INT>", [1, None], "an element of an ARRAY cannot be NULL"),
        ("ARRAY<INT>", "ab", "'ab' (str) is no ARRAY<INT>"),
    ],
)
def test_other_values_are_refused(text: str, given: object, told: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared below
        ColumnType.parse(text).check(given)
    assert told in str(raised.value)


def test_columns_with_values_that_cannot_be_stored_are_refused() -> None:
    with pytest.raises(ValueError, match="an element of an ARRAY cannot be NULL"):
        ColumnType.parse("ARRAY<INT>").to_stored_array(pa.array([[1, None]], pa.list_(pa.int32())))
    with pytest.raises(ValueError, match="a DATE is in the years 1 to 9999"):
        ColumnType.parse("DATE").to_stored_array(pa.array([0, 3_000_000], pa.int32()).view(pa.date32()))
    moments = pa.array([-(2**62)], pa.int64()).view(pa.timestamp("us", "UTC"))
    with pytest.raises(ValueError, match="a TIMESTAMP is in the years 1 to 9999"):
        ColumnType.parse("TIMESTAMP").to_stored_array(moments)


def test_null_is_a_value_of_all_types() -> None:
    for name in TypeName:
        kind = ColumnType.parse("ARRAY<INT>" if name is TypeName.ARRAY else name)
        assert kind.check(None) is kind.to_stored(None) is kind.from_stored(None) is None


@pytest.mark.parametrize(
    ("source", "target", "widens"),
    [
        ("INT", "BIGINT", True),
        ("BIGINT", "INT", False),
        ("INT", "DOUBLE", False),
        ("INT", "DATE", False),
        ("DECIMAL(5,2)", "DECIMAL(9,2)", True),
        ("DECIMAL(9,2)", "DECIMAL(5,2)", False),
        ("DECIMAL(5,2)", "DECIMAL(9,3)", False),
        ("STRING", "STRING", True),
        ("STRING", "BINARY", False),
        ("ARRAY<INT>", "ARRAY<BIGINT>", True),
        ("ARRAY<INT>", "BIGINT", False),
    ],
)
def test_a_type_widens_if_its_bytes_stay(source: str, target: str, *, widens: bool) -> None:
    assert ColumnType.parse(source).widens_to(ColumnType.parse(target)) is widens


def test_fields_of_protobuf() -> None:
    assert ColumnType.parse("DATE").field_type == FieldDescriptorProto.TYPE_SINT32
    assert ColumnType.parse("DECIMAL(4,2)").field_type == FieldDescriptorProto.TYPE_SINT64
    assert ColumnType.parse("ARRAY<STRING>").field_type == FieldDescriptorProto.TYPE_STRING


def test_keys_hold_no_type_whose_equal_values_differ_in_bytes() -> None:
    assert [text for text in VALUES if not ColumnType.parse(text).fits_key] == ["DOUBLE"]
    assert not ColumnType.parse("ARRAY<INT>").fits_key


def test_nan_is_a_double() -> None:
    found = ColumnType.parse("DOUBLE").check(math.nan)
    assert isinstance(found, float)
    assert math.isnan(found)
