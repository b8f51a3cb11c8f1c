"""Literals of expressions: the types that they have by themselves, their values as other types, their SQL text."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from catalog.engine.schema_change.functions import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, UntypableError
from catalog.engine.schema_change.types import (
    BIGINT_BITS,
    DIGITS_MAX,
    INT_BITS,
    ColumnType,
    TypeName,
    Value,
    read_timestamp,
)

_INT_END, _BIGINT_END = 1 << INT_BITS - 1, 1 << BIGINT_BITS - 1


def literal_type(value: Value) -> ColumnType:
    """Return the type that Spark gives to a literal; raise UntypableError if no column can have it."""
    if simple := _SIMPLE.get(type(value)):
        return simple
    match value:
        case int():
            if not -_BIGINT_END <= value < _BIGINT_END:
                raise UntypableError(f"the number {value} is beyond BIGINT")
            return INT if -_INT_END <= value < _INT_END else BIGINT
        case Decimal():
            return _decimal_type(value)
        case list():
            kinds = {literal_type(one) for one in value}
            if len(kinds) == 1:
                return ColumnType(TypeName.ARRAY, element=kinds.pop())
            raise UntypableError("the elements of an ARRAY are of one type")
        case _:
            raise UntypableError(f"{value!r} is no literal")


def literal_value(value: Value, kind: ColumnType) -> Value:
    """Return the value of a literal as one of a type; raise UntypableError if it does not fit."""
    try:
        if isinstance(value, str) and kind == TIMESTAMP:
            return read_timestamp(value)
        if isinstance(value, Decimal):
            if kind == DOUBLE:
                return float(value)
            if kind in {INT, BIGINT} and value == value.to_integral_value():
                return kind.check(int(value))
        return kind.check(value)
    except ValueError as error:
        raise UntypableError(str(error)) from error


def literal_text(value: Value, kind: ColumnType | None) -> str:
    """Return the SQL text of a literal, such that it has the same type when it is read."""
    if value is None:
        return "NULL"
    if kind is None:
        return literal_text(value, literal_type(value)) if not _is_untypable(value) else str(value)
    if isinstance(value, str) and kind != STRING:
        return f"{kind.text} {_string_text(value, kind)}"
    return _TEXTS[type(value)](value, kind)


def _decimal_type(value: Decimal) -> ColumnType:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise UntypableError(f"the number {value} is no DECIMAL")
    digits, scale = len(value.as_tuple().digits) + max(exponent, 0), max(-exponent, 0)
    if max(digits, scale) > DIGITS_MAX:
        raise UntypableError(f"the number {value} needs {max(digits, scale)} digits, more than {DIGITS_MAX}")
    return ColumnType.decimal(max(digits, scale), scale)


def _whole_text(value: Any, kind: ColumnType) -> str:  # noqa: ANN401 - a value of its type
    return f"{value}L" if kind == BIGINT and -_INT_END <= value < _INT_END else str(value)


def _double_text(value: Any, _kind: ColumnType) -> str:  # noqa: ANN401 - a value of its type
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"CAST('{name}' AS DOUBLE)"
    text = repr(value)
    return text if "e" in text else f"{text}D"


def _decimal_text(value: Any, kind: ColumnType) -> str:  # noqa: ANN401 - a value of its type
    """Without a point, a number would be read as a whole one."""
    text = format(value, "f")
    return text if "." in text and _decimal_type(value) == kind else f"CAST({text} AS {kind.text})"


def _string_text(value: Any, _kind: ColumnType) -> str:  # noqa: ANN401 - a value of its type
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def _array_text(value: Any, kind: ColumnType) -> str:  # noqa: ANN401 - a value of its type
    return f"array({', '.join(literal_text(one, kind.element) for one in value)})"


def _is_untypable(value: Value) -> bool:
    try:
        literal_type(value)
    except UntypableError:
        return True
    return False


_SIMPLE: dict[type, ColumnType] = {
    bool: BOOLEAN,
    float: DOUBLE,
    str: STRING,
    bytes: ColumnType(TypeName.BINARY),
    datetime: TIMESTAMP,
    date: DATE,
}
_TEXTS: dict[type, Callable[[Any, ColumnType], str]] = {
    bool: lambda value, _kind: str(value).upper(),
    int: _whole_text,
    float: _double_text,
    Decimal: _decimal_text,
    str: _string_text,
    bytes: lambda value, _kind: f"X'{value.hex().upper()}'",
    datetime: lambda value, _kind: f"TIMESTAMP '{value.isoformat(sep=' ')}'",
    date: lambda value, _kind: f"DATE '{value.isoformat()}'",
    list: _array_text,
}
