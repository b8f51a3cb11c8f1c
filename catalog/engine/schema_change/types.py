"""Types of columns: their text in SQL, their field in protobuf, their column in Arrow, their values in Python.

A value of a column is *canonical* as `ColumnType.check` returns it; other modules handle canonical values only. Stored
values are those of the protobuf field: days for DATE, microseconds since 1970 in UTC for TIMESTAMP, the unscaled number
for DECIMAL. An element of an ARRAY is never NULL, because a repeated field cannot hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from enum import StrEnum
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from catalog.engine.base.lazy_arrow import pa, pc
from catalog.errors.tables import UnsupportedTypeError

Value = bool | int | float | str | bytes | date | datetime | Decimal | list[Any] | None

DIGITS_MAX = 18
"""Of a DECIMAL: as many as a signed number of 64 bits always holds."""
INT_BITS, BIGINT_BITS = 32, 64
ELEMENT = "element"  # the name that Spark gives to the child of a list

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = timedelta(microseconds=1)
_EXACT = Context(prec=60, traps=[InvalidOperation, Inexact])
_DOUBLE_EXACT_BITS = 53
_DEFAULT_DIGITS = 10
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?) ?(Z|UTC|[+-]\d{2}:\d{2})?)?", re.ASCII
)
_PARSED = re.compile(r"\s*(\w+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)|<(.*)>)?\s*", re.ASCII | re.DOTALL)


class TypeName(StrEnum):
    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BINARY = "BINARY"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    DECIMAL = "DECIMAL"
    ARRAY = "ARRAY"


_ALIASES = {
    "INTEGER": TypeName.INT,
    "LONG": TypeName.BIGINT,
    "TIMESTAMP_LTZ": TypeName.TIMESTAMP,
    "DEC": TypeName.DECIMAL,
    "NUMERIC": TypeName.DECIMAL,
} | {name.value: name for name in TypeName}
_INSTEAD = {
    **dict.fromkeys(("BYTE", "TINYINT", "SHORT", "SMALLINT"), "INT"),
    **dict.fromkeys(("FLOAT", "REAL"), "DOUBLE"),
    **dict.fromkeys(("CHAR", "CHARACTER", "VARCHAR", "TEXT"), "STRING"),
    "TIMESTAMP_NTZ": "TIMESTAMP",
}
_STORED = {
    TypeName.BOOLEAN: (FieldDescriptorProto.TYPE_BOOL, "bool"),
    TypeName.INT: (FieldDescriptorProto.TYPE_SINT32, "int32"),
    TypeName.BIGINT: (FieldDescriptorProto.TYPE_SINT64, "int64"),
    TypeName.DOUBLE: (FieldDescriptorProto.TYPE_DOUBLE, "float64"),
    TypeName.STRING: (FieldDescriptorProto.TYPE_STRING, "string"),
    TypeName.BINARY: (FieldDescriptorProto.TYPE_BYTES, "binary"),
    TypeName.DATE: (FieldDescriptorProto.TYPE_SINT32, "int32"),
    TypeName.TIMESTAMP: (FieldDescriptorProto.TYPE_SINT64, "int64"),
    TypeName.DECIMAL: (FieldDescriptorProto.TYPE_SINT64, "int64"),
}
"""The types in protobuf and Arrow of all but ARRAY."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column, by Spark's name.

    >>> ColumnType.parse("decimal(10, 2)").check("9.9")
    Decimal('9.90')
    """

    name: TypeName
    precision: int = 0
    """Digits of a DECIMAL, all together."""
    scale: int = 0
    """Digits of a DECIMAL after the point."""
    element: ColumnType | None = None
    """Of an ARRAY."""

    @classmethod
    def parse(cls, text: str) -> ColumnType:
        """Read a type as Spark writes it; raise UnsupportedTypeError for all others."""
        parsed = _PARSED.fullmatch(text)
        if not parsed:
            raise UnsupportedTypeError(text, "it cannot be read")
        word, digits, scale, inner = parsed.groups()
        name = _ALIASES.get(word.upper())
        if name is None:
            instead = _INSTEAD.get(word.upper())
            raise UnsupportedTypeError(text, f"use {instead} instead" if instead else f"there is no {word.upper()}")
        if (name is TypeName.ARRAY) != (inner is not None):
            raise UnsupportedTypeError(text, "an ARRAY, and nothing else, has the type of its elements in <>")
        if name is TypeName.ARRAY:
            element = cls.parse(inner)
            if element.element:
                raise UnsupportedTypeError(text, "an ARRAY of ARRAYs cannot be stored")
            return cls(name, element=element)
        if name is TypeName.DECIMAL:
            return cls.decimal(int(digits or _DEFAULT_DIGITS), int(scale or 0))
        if digits:
            raise UnsupportedTypeError(text, f"{name} has no length")
        return cls(name)

    @classmethod
    def decimal(cls, precision: int, scale: int) -> ColumnType:
        """Return a DECIMAL; raise UnsupportedTypeError if it has no digit, more than 18, or a scale beyond them."""
        text = f"DECIMAL({precision},{scale})"
        if not 1 <= precision <= DIGITS_MAX:
            raise UnsupportedTypeError(text, f"a DECIMAL has 1 to {DIGITS_MAX} digits")
        if not 0 <= scale <= precision:
            raise UnsupportedTypeError(text, "no more digits can stand after the point than there are")
        return cls(TypeName.DECIMAL, precision, scale)

    @property
    def text(self) -> str:
        if self.element:
            return f"ARRAY<{self.element.text}>"
        return f"DECIMAL({self.precision},{self.scale})" if self.name is TypeName.DECIMAL else self.name.value

    @property
    def spark(self) -> str:
        return self.text

    @property
    def arrow(self) -> pa.DataType:
        """The logical Arrow type: expressions are evaluated on it, and Spark is given it."""
        if self.element:
            return pa.list_(pa.field(ELEMENT, self.element.arrow))
        match self.name:
            case TypeName.DATE:
                return pa.date32()
            case TypeName.TIMESTAMP:
                return pa.timestamp("us", "UTC")
            case TypeName.DECIMAL:
                return pa.decimal128(self.precision, self.scale)
            case _:
                return self.stored_arrow

    @property
    def stored_arrow(self) -> pa.DataType:
        """The Arrow type of the decoded protobuf field."""
        if self.element:
            return pa.list_(pa.field(ELEMENT, self.element.stored_arrow, nullable=False))
        return pa.type_for_alias(_STORED[self.name][1])

    @property
    def field_type(self) -> FieldDescriptorProto.Type.ValueType:
        """The type of the protobuf field; of an ARRAY that of its elements, in a repeated field."""
        return self.element.field_type if self.element else _STORED[self.name][0]

    @property
    def fits_key(self) -> bool:
        """Tell if equal values have equal bytes, so that a key may hold the type."""
        return self.name not in {TypeName.DOUBLE, TypeName.ARRAY}

    @property
    def is_numeric(self) -> bool:
        return self.name in {TypeName.INT, TypeName.BIGINT, TypeName.DECIMAL, TypeName.DOUBLE}

    def widens_to(self, other: ColumnType) -> bool:
        """Tell if every stored value of this type is, by the same bytes, the same value of the other."""
        if self.element and other.element:
            return self.element.widens_to(other.element)
        if self.name is TypeName.DECIMAL and other.name is TypeName.DECIMAL:
            return self.scale == other.scale and self.precision <= other.precision
        return self == other or (self.name is TypeName.INT and other.name is TypeName.BIGINT)

    def check(self, value: object) -> Value:
        """Return the canonical value, or raise ValueError and tell why this type does not hold it.

        Accepted besides canonical values: whole numbers for DOUBLE and DECIMAL, texts for DECIMAL, DATE and (with a
        zone) TIMESTAMP, timestamps of other zones, and tuples for ARRAY. Nothing is rounded.
        """
        return None if value is None else _CHECKS[self.name](self, value)

    def to_stored(self, value: Value) -> Any:  # noqa: ANN401 - protobuf's setters take any
        """Convert a canonical value to that of the protobuf field."""
        match value:
            case list():
                return [self._inner.to_stored(element) for element in value]
            case datetime():
                return (value - _EPOCH) // _MICROSECOND
            case date():
                return value.toordinal() - _EPOCH_DAY
            case Decimal():
                return int(_EXACT.scaleb(value, self.scale))
            case _:
                return value

    def from_stored(self, stored: Any) -> Value:  # noqa: ANN401 - as protobuf's getters give it
        """Convert the value of the protobuf field to the canonical value."""
        if stored is None:
            return None
        match self.name:
            case TypeName.ARRAY:
                return [self._inner.from_stored(element) for element in stored]
            case TypeName.DATE:
                return date.fromordinal(stored + _EPOCH_DAY)
            case TypeName.TIMESTAMP:
                return _EPOCH + timedelta(microseconds=stored)
            case TypeName.DECIMAL:
                return _EXACT.scaleb(Decimal(stored), -self.scale)
            case _:
                return stored  # type: ignore[no-any-return]

    def to_logical(self, array: pa.Array) -> pa.Array:
        """Convert an array of stored values to `arrow`."""
        if self.element:
            return _converted_list(array, self.element.to_logical, self.arrow)
        match self.name:
            case TypeName.DECIMAL:
                return pc.cast(array, pa.decimal128(DIGITS_MAX + 1, 0)).view(self.arrow)
            case TypeName.DATE | TypeName.TIMESTAMP:
                return array.view(self.arrow)
            case _:
                return array

    def to_stored_array(self, array: pa.Array) -> pa.Array:
        """Convert an array of `arrow` to stored values; raise ValueError for what no canonical value is."""
        if self.element:
            converted = _converted_list(array, self.element.to_stored_array, self.stored_arrow)
            if converted.values.null_count:
                raise ValueError("an element of an ARRAY cannot be NULL")
            return converted
        match self.name:
            case TypeName.DECIMAL:
                return pc.cast(array.view(pa.decimal128(self.precision, 0)), pa.int64())
            case TypeName.DATE | TypeName.TIMESTAMP:
                stored = array.view(self.stored_arrow)
                self._require_years(stored)
                return stored
            case _:
                return array

    @property
    def _inner(self) -> ColumnType:
        if self.element is None:
            raise TypeError(f"{self.text} has no elements")
        return self.element

    def _require_years(self, stored: pa.Array) -> None:
        bounds = pc.min_max(stored)
        for found in (bounds["min"].as_py(), bounds["max"].as_py()):
            try:
                self.from_stored(found)
            except (OverflowError, ValueError) as error:
                raise ValueError(f"a {self.text} is in the years 1 to 9999") from error


def read_date(text: str) -> date:
    """Read `2026-01-31`, or raise ValueError."""
    found = _DATE.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no date; write it as 2026-01-31")
    return date(*map(int, found.groups()))


def read_timestamp(text: str, *, zone_needed: bool = False) -> datetime:
    """Read `2026-01-31 23:59:59.5+01:00`, or raise ValueError. Without a zone it is in UTC, if that is allowed."""
    found = _TIMESTAMP.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no timestamp; write it as 2026-01-31 23:59:59Z")
    day, time, zone = found.groups()
    if zone_needed and not zone:
        raise ValueError(f"{text!r} has no zone; write it as 2026-01-31 23:59:59Z")
    offset = "+00:00" if zone in {None, "Z", "UTC"} else zone
    try:
        return datetime.fromisoformat(f"{day}T{time or '00:00'}{offset}").astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is outside the years 1 to 9999") from error


def _converted_list(array: pa.ListArray, convert: Callable[[pa.Array], pa.Array], target: pa.DataType) -> pa.ListArray:
    if not len(array):
        return pa.array([], target)
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    values = convert(array.values[start:end])
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pc.subtract(array.offsets, start), values, type=target, mask=mask)


def _refuse(wanted: ColumnType, value: object) -> ValueError:
    return ValueError(f"{value!r} ({type(value).__name__}) is no {wanted.text}")


def _check_boolean(wanted: ColumnType, value: object) -> Value:
    if isinstance(value, bool):
        return value
    raise _refuse(wanted, value)


def _check_whole(wanted: ColumnType, value: object) -> Value:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _refuse(wanted, value)
    bits = INT_BITS if wanted.name is TypeName.INT else BIGINT_BITS
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{value} is out of the range of {wanted.text}")
    return int(value)


def _check_double(wanted: ColumnType, value: object) -> Value:
    if isinstance(value, float):
        return float(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _refuse(wanted, value)
    if abs(value) > 1 << _DOUBLE_EXACT_BITS:
        raise ValueError(f"{value} cannot be a {wanted.text} without being rounded")
    return float(value)


def _check_string(wanted: ColumnType, value: object) -> Value:
    if not isinstance(value, str):
        raise _refuse(wanted, value)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{value!r} is no text that UTF-8 can hold") from error
    return str(value)


def _check_binary(wanted: ColumnType, value: object) -> Value:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise _refuse(wanted, value)


def _check_date(wanted: ColumnType, value: object) -> Value:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str):
        return read_date(value)
    raise _refuse(wanted, value)


def _check_timestamp(wanted: ColumnType, value: object) -> Value:
    if isinstance(value, str):
        return read_timestamp(value, zone_needed=True)
    if not isinstance(value, datetime):
        raise _refuse(wanted, value)
    if value.utcoffset() is None:
        raise ValueError(f"{value!r} has no zone; pass one, such as datetime.UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{value!r} is outside the years 1 to 9999") from error


def _check_decimal(wanted: ColumnType, value: object) -> Value:
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise _refuse(wanted, value)
    try:
        found = Decimal(value)
        unscaled = _EXACT.to_integral_exact(_EXACT.scaleb(found, wanted.scale)) if found.is_finite() else None
    except (Inexact, InvalidOperation):
        unscaled = None
    if unscaled is None or abs(unscaled) >= 10**wanted.precision:
        raise ValueError(f"{value!s} is no {wanted.text}: it would be rounded, or has too many digits")
    return _EXACT.scaleb(Decimal(int(unscaled)), -wanted.scale)


def _check_array(wanted: ColumnType, value: object) -> Value:
    if not isinstance(value, list | tuple):
        raise _refuse(wanted, value)
    if any(element is None for element in value):
        raise ValueError("an element of an ARRAY cannot be NULL")
    return [wanted._inner.check(element) for element in value]  # noqa: SLF001 - this module's own


_CHECKS: dict[TypeName, Callable[[ColumnType, object], Value]] = {
    TypeName.BOOLEAN: _check_boolean,
    TypeName.INT: _check_whole,
    TypeName.BIGINT: _check_whole,
    TypeName.DOUBLE: _check_double,
    TypeName.STRING: _check_string,
    TypeName.BINARY: _check_binary,
    TypeName.DATE: _check_date,
    TypeName.TIMESTAMP: _check_timestamp,
    TypeName.DECIMAL: _check_decimal,
    TypeName.ARRAY: _check_array,
}
