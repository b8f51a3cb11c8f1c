"""Casts between types of columns, checked as Spark's are in ANSI mode: a value that does not fit fails.

Timestamps are cast in UTC, as Spark does in a session whose zone is UTC. Left out, because Spark's result depends on
its version or is no value of a column: DOUBLE to DECIMAL and to STRING, TIMESTAMP to and from numbers, BINARY to
anything, casts of ARRAYs. Texts that Spark would read and that fail here: numbers in hexadecimal, years outside 1 to
9999, times other than `2026-01-31 23:59[:59[.999999]][Z|UTC|±01:00]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from catalog.engine.base.lazy_arrow import pa, pc
from catalog.engine.schema_change.types import BIGINT_BITS, ColumnType, TypeName, Value, read_timestamp

Kernel = Callable[..., "pa.Array | pa.Scalar"]

WIDE_DIGITS = 38
"""Of intermediate DECIMALs: all that Arrow's 128 bits hold."""

_BLANK = "".join(map(chr, range(0x21))) + "\x7f"
_JAVA_BLANK = _BLANK[:-1]
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_SPECIAL = {
    "nan": float("nan"),
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), float("inf")),
    **dict.fromkeys(("-inf", "-infinity"), float("-inf")),
}
_DATE = re.compile(r"\+?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_SHORT_DATE = re.compile(r"[+\d-]+", re.ASCII)
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_ROUNDING = Context(prec=WIDE_DIGITS, rounding=ROUND_HALF_UP, traps=[InvalidOperation])
_PLAIN_SCALE_MAX = 6
"""Of DECIMALs that Arrow writes without an exponent, whatever their value."""


def cast_kernel(source: ColumnType, target: ColumnType) -> Kernel | None:
    """Return the function that casts an array or a scalar; None if there is no such cast."""
    if source == target:
        return lambda datum: datum
    make = _CASTS.get((source.name, target.name))
    return make(source, target) if make else None


def each(convert: Callable[[Value], Value], target: pa.DataType) -> Kernel:
    """Return a kernel that converts one value after the other, where Arrow has none that does the same as Spark."""

    def run(datum: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
        if isinstance(datum, pa.Scalar):
            return pa.scalar(convert(datum.as_py()) if datum.is_valid else None, target)
        return pa.array([None if value is None else convert(value) for value in datum.to_pylist()], target)

    return run


def viewed(datum: pa.Array | pa.Scalar, target: pa.DataType) -> pa.Array | pa.Scalar:
    """Return the same bits as another type."""
    if isinstance(datum, pa.Scalar):
        return pa.array([datum.as_py()], datum.type).view(target)[0]
    return datum.view(target)


def local(datum: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """Return timestamps as they read in UTC, without a zone, so that Arrow needs no database of zones."""
    return viewed(datum, pa.timestamp("us"))


def rescaled(source: ColumnType, target: ColumnType) -> Kernel:
    """Return the cast of whole numbers and DECIMALs to a DECIMAL: ties are rounded away from zero."""
    wide, narrow = pa.decimal128(WIDE_DIGITS, source.scale), target.arrow
    if source.scale <= target.scale:
        whole = source.name is not TypeName.DECIMAL
        aligned = pa.decimal128(WIDE_DIGITS, target.scale)
        return lambda datum: pc.cast(pc.cast(datum, aligned) if whole else datum, narrow)

    def run(datum: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
        rounded = pc.round(pc.cast(datum, wide), ndigits=target.scale, round_mode="half_towards_infinity")
        return pc.cast(rounded, narrow)

    return run


def _plainly(_source: ColumnType, target: ColumnType) -> Kernel:
    arrow = target.arrow
    return lambda datum: pc.cast(datum, arrow)


def _to_truth(_source: ColumnType, _target: ColumnType) -> Kernel:
    return lambda datum: pc.not_equal(datum, 0)


def _whole_to_double(_source: ColumnType, _target: ColumnType) -> Kernel:
    return lambda datum: pc.cast(datum, pa.float64(), safe=False)


def _decimal_to_double(_source: ColumnType, _target: ColumnType) -> Kernel:
    """By way of text: Arrow's own cast does not always give the nearest DOUBLE."""
    return lambda datum: pc.cast(pc.cast(datum, pa.string()), pa.float64())


def _decimal_to_whole(_source: ColumnType, target: ColumnType) -> Kernel:
    arrow = target.arrow
    return lambda datum: pc.cast(pc.trunc(datum), arrow)


def _double_to_whole(_source: ColumnType, target: ColumnType) -> Kernel:
    """Truncate; as in Java, 2⁶³ is a DOUBLE that becomes the greatest BIGINT."""
    arrow = target.arrow
    beyond = float(1 << BIGINT_BITS - 1)

    def run(datum: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
        if target.name is TypeName.INT:
            return pc.cast(pc.trunc(datum), arrow)
        at_end = pc.equal(datum, beyond)
        inside = pc.cast(pc.trunc(pc.if_else(at_end, 0.0, datum)), arrow)
        return pc.if_else(at_end, pa.scalar((1 << BIGINT_BITS - 1) - 1, arrow), inside)

    return run


def _decimal_to_text(source: ColumnType, target: ColumnType) -> Kernel:
    if source.scale <= _PLAIN_SCALE_MAX:
        return _plainly(source, target)
    return each(lambda value: format(value, "f"), target.arrow)


def _timestamp_to_text(_source: ColumnType, _target: ColumnType) -> Kernel:
    """Arrow writes six digits of the second; Spark leaves zeros at the end out."""

    def run(datum: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
        text = pc.cast(local(datum), pa.string())
        return pc.replace_substring_regex(text, pattern=r"\.?0{1,6}$", replacement="")

    return run


def _timestamp_to_date(_source: ColumnType, _target: ColumnType) -> Kernel:
    return lambda datum: pc.cast(local(datum), pa.date32())


def _date_to_timestamp(_source: ColumnType, target: ColumnType) -> Kernel:
    arrow = target.arrow
    return lambda datum: viewed(pc.cast(datum, pa.timestamp("us")), arrow)


def _text_to(read: Callable[[str, ColumnType], Value]) -> Callable[[ColumnType, ColumnType], Kernel]:
    def make(_source: ColumnType, target: ColumnType) -> Kernel:
        def convert(value: Value) -> Value:
            text = str(value)
            try:
                return read(text, target)
            except (ArithmeticError, ValueError) as error:
                raise ValueError(f"the text {text!r} is no {target.text}") from error

        return each(convert, target.arrow)

    return make


def _read_truth(text: str, _target: ColumnType) -> Value:
    word = text.strip(_BLANK).lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(word)
    return word in _TRUE


def _read_whole(text: str, target: ColumnType) -> Value:
    number = text.strip(_BLANK)
    if not _WHOLE.fullmatch(number):
        raise ValueError(number)
    return target.check(int(number))


def _read_double(text: str, _target: ColumnType) -> Value:
    number = text.strip(_JAVA_BLANK)
    if number.lower() in _SPECIAL:
        return _SPECIAL[number.lower()]
    number = number[:-1] if number[-1:] in {"d", "D", "f", "F"} else number
    if not _NUMBER.fullmatch(number):
        raise ValueError(number)
    return float(number)


def _read_decimal(text: str, target: ColumnType) -> Value:
    number = text.strip(_JAVA_BLANK)
    if not _NUMBER.fullmatch(number):
        raise ValueError(number)
    return target.check(_ROUNDING.quantize(Decimal(number), Decimal(1).scaleb(-target.scale)))


def _read_date(text: str, _target: ColumnType) -> Value:
    return date(*_day(text.strip(_BLANK)))


def _day(text: str) -> tuple[int, int, int]:
    found = _DATE.fullmatch(text)
    if not found:
        raise ValueError(text)
    year, month, day = map(int, found.groups(default="1"))
    return year, month, day


def _read_timestamp(text: str, _target: ColumnType) -> Value:
    moment = text.strip(_BLANK)
    if _SHORT_DATE.fullmatch(moment):
        return datetime.combine(date(*_day(moment)), time(), UTC)
    return read_timestamp(moment)


_MakeKernel = Callable[[ColumnType, ColumnType], Kernel]
_T = TypeName
_CASTS: dict[tuple[TypeName, TypeName], _MakeKernel] = {
    (_T.BOOLEAN, _T.INT): _plainly,
    (_T.BOOLEAN, _T.BIGINT): _plainly,
    (_T.BOOLEAN, _T.STRING): _plainly,
    (_T.INT, _T.BOOLEAN): _to_truth,
    (_T.INT, _T.BIGINT): _plainly,
    (_T.INT, _T.DOUBLE): _whole_to_double,
    (_T.INT, _T.DECIMAL): rescaled,
    (_T.INT, _T.STRING): _plainly,
    (_T.BIGINT, _T.BOOLEAN): _to_truth,
    (_T.BIGINT, _T.INT): _plainly,
    (_T.BIGINT, _T.DOUBLE): _whole_to_double,
    (_T.BIGINT, _T.DECIMAL): rescaled,
    (_T.BIGINT, _T.STRING): _plainly,
    (_T.DOUBLE, _T.INT): _double_to_whole,
    (_T.DOUBLE, _T.BIGINT): _double_to_whole,
    (_T.DECIMAL, _T.INT): _decimal_to_whole,
    (_T.DECIMAL, _T.BIGINT): _decimal_to_whole,
    (_T.DECIMAL, _T.DOUBLE): _decimal_to_double,
    (_T.DECIMAL, _T.DECIMAL): rescaled,
    (_T.DECIMAL, _T.STRING): _decimal_to_text,
    (_T.DATE, _T.STRING): _plainly,
    (_T.DATE, _T.TIMESTAMP): _date_to_timestamp,
    (_T.TIMESTAMP, _T.STRING): _timestamp_to_text,
    (_T.TIMESTAMP, _T.DATE): _timestamp_to_date,
    (_T.STRING, _T.BOOLEAN): _text_to(_read_truth),
    (_T.STRING, _T.INT): _text_to(_read_whole),
    (_T.STRING, _T.BIGINT): _text_to(_read_whole),
    (_T.STRING, _T.DOUBLE): _text_to(_read_double),
    (_T.STRING, _T.DECIMAL): _text_to(_read_decimal),
    (_T.STRING, _T.DATE): _text_to(_read_date),
    (_T.STRING, _T.TIMESTAMP): _text_to(_read_timestamp),
    (_T.STRING, _T.BINARY): _plainly,
}
