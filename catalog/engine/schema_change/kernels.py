"""Kernels of functions: for the types of its operands, each function as calls of `pyarrow.compute`.

A kernel takes arrays of one length, and scalars for constants, and returns an array, or a scalar if it was given only
scalars. It raises ValueError (of which Arrow's own error is one) where Spark in ANSI mode fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from catalog.engine.base.lazy_arrow import pa, pc
from catalog.engine.schema_change.casts import WIDE_DIGITS, Kernel, cast_kernel, each, local, viewed
from catalog.engine.schema_change.functions import (
    COMPARISONS,
    DOUBLE,
    LIKE_ESCAPE,
    Function,
    Operand,
    Signature,
    UntypableError,
    pattern_parts,
    signature,
)
from catalog.engine.schema_change.types import ColumnType, TypeName


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The type and the conversion of each argument, None if it needs none, and the kernel of the call."""

    types: tuple[ColumnType, ...]
    conversions: tuple[Kernel | None, ...]
    kernel: Kernel


def call_plan(function: Function, operands: Sequence[Operand], result: ColumnType) -> CallPlan:
    """Return how a function is computed; a CAST by its result alone."""
    types = [operand.type for operand in operands if operand.type]
    if function is Function.CAST:
        return CallPlan((types[0],), (None,), _required_cast(types[0], result))
    called = signature(function, operands)
    if called.result != result:
        raise UntypableError(f"{function} gives {called.result.text}, and {result.text} is stored")
    if function in COMPARISONS or function is Function.IN:
        conversions = _comparable(types, called, all_wide=function is Function.IN)
    else:
        conversions = tuple(
            None if kind == target else _required_cast(kind, target)
            for kind, target in zip(types, called.arguments, strict=True)
        )
    return CallPlan(called.arguments, conversions, _KERNELS[function](function, operands, called))


def unscaled(datum: pa.Array | pa.Scalar, kind: ColumnType) -> pa.Array | pa.Scalar:
    """Return DECIMALs as whole numbers: without the point."""
    return pc.cast(viewed(datum, pa.decimal128(kind.precision, 0)), pa.int64())


def _required_cast(source: ColumnType, target: ColumnType) -> Kernel:
    kernel = cast_kernel(source, target)
    if kernel is None:
        raise UntypableError(f"CAST of {source.text} to {target.text}")
    return kernel


def _comparable(types: Sequence[ColumnType], called: Signature, *, all_wide: bool) -> tuple[Kernel | None, ...]:
    """Convert whole numbers and DECIMALs of different types to wide DECIMALs of one scale, which hold them exactly.

    Arrow compares those of one scale as they are.
    """
    if len(set(called.arguments)) == 1 or not any(kind.name is TypeName.DECIMAL for kind in called.arguments):
        return tuple(
            None if kind == target else _required_cast(kind, target)
            for kind, target in zip(types, called.arguments, strict=True)
        )
    scale = max(kind.scale for kind in types)
    wide = pa.decimal128(WIDE_DIGITS, scale)
    return tuple(
        None
        if kind.name is TypeName.DECIMAL and kind.scale == scale and not all_wide
        else lambda datum: pc.cast(datum, wide)
        for kind in types
    )


_MakeKernel = Callable[[Function, Sequence[Operand], Signature], Kernel]


def _plain(name: str) -> _MakeKernel:
    """Return a function of Arrow as it is."""
    return lambda _function, _operands, _called: getattr(pc, name)


def _by_type(of_double: str, otherwise: str) -> _MakeKernel:
    def make(_function: Function, _operands: Sequence[Operand], called: Signature) -> Kernel:
        return getattr(pc, of_double if called.result == DOUBLE else otherwise)  # type: ignore[no-any-return]

    return make


def _compare(function: Function, _operands: Sequence[Operand], called: Signature) -> Kernel:
    if DOUBLE in called.arguments:
        return _DOUBLE_COMPARISONS[function]
    return getattr(pc, _ARROW_COMPARISONS[function])  # type: ignore[no-any-return]


_ARROW_COMPARISONS = {
    Function.EQ: "equal",
    Function.NE: "not_equal",
    Function.LT: "less",
    Function.LE: "less_equal",
    Function.GT: "greater",
    Function.GE: "greater_equal",
}


def _same(left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare DOUBLEs as Spark does: NaN equals NaN, and is greater than all others."""
    return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _less(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.or_(pc.less(left, right), pc.and_not(pc.is_nan(right), pc.is_nan(left)))


def _not_greater(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.or_(pc.less_equal(left, right), pc.and_(pc.is_valid(left), pc.is_nan(right)))


_DOUBLE_COMPARISONS: dict[Function, Kernel] = {
    Function.EQ: _same,
    Function.NE: lambda left, right: pc.invert(_same(left, right)),
    Function.LT: _less,
    Function.LE: _not_greater,
    Function.GT: lambda left, right: _less(right, left),
    Function.GE: lambda left, right: _not_greater(right, left),
}


def _divide(_function: Function, _operands: Sequence[Operand], called: Signature) -> Kernel:
    """DECIMALs are divided as whole numbers, and ties rounded away from zero; the digits of the result suffice."""
    if called.result == DOUBLE:
        return pc.divide_checked  # type: ignore[no-any-return]
    (dividend, divisor), result = called.arguments, called.result
    factor = pa.scalar(10 ** (result.scale - dividend.scale + divisor.scale), pa.int64())
    wide, arrow = pa.decimal128(WIDE_DIGITS, 0), result.arrow

    def run(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
        above, below = pc.multiply_checked(unscaled(left, dividend), factor), unscaled(right, divisor)
        quotient = pc.divide_checked(above, below)
        rest = pc.subtract(above, pc.multiply(quotient, below))
        away = pc.multiply(pc.sign(above), pc.sign(below))
        is_up = pc.greater_equal(pc.multiply(pc.abs(rest), 2), pc.abs(below))
        rounded = pc.if_else(is_up, pc.add(quotient, pc.cast(away, pa.int64())), quotient)
        return viewed(pc.cast(rounded, wide), arrow)

    return run


def _is_in(_function: Function, _operands: Sequence[Operand], _called: Signature) -> Kernel:
    """All arguments but the first are constants, the same in every call."""
    prepared: list[pa.Array] = []
    absent = pa.scalar(None, pa.bool_())

    def run(value: pa.Array | pa.Scalar, *listed: pa.Scalar) -> pa.Array | pa.Scalar:
        if not prepared:
            prepared.append(pa.array([one.as_py() for one in listed if one.is_valid], value.type))
        known = prepared[0]
        found = pc.is_in(value, value_set=known)
        if len(known) < len(listed):
            return pc.if_else(found, found, absent)
        return pc.if_else(pc.is_valid(value), found, absent)

    return run


def _like(_function: Function, operands: Sequence[Operand], _called: Signature) -> Kernel:
    pattern, *escape = (str(operand.value) for operand in operands[1:])
    match pattern_parts(pattern, *escape or LIKE_ESCAPE):
        case []:
            return lambda value, *_: pc.equal(value, "")
        case [str(text)] if text:
            return lambda value, *_: pc.equal(value, text)
        case [str(text), None] if text:
            return lambda value, *_: pc.starts_with(value, pattern=text)
        case [None, str(text)] if text:
            return lambda value, *_: pc.ends_with(value, pattern=text)
        case [None, str(text), None] if text:
            return lambda value, *_: pc.match_substring(value, pattern=text)
        case parts:
            middle = "".join(".*" if part is None else _quoted(part) or "." for part in parts)
            return lambda value, *_: pc.match_substring_regex(value, pattern=rf"(?s)\A{middle}\z")


def _quoted(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", lambda found: f"\\x{{{ord(found[0]):x}}}", text)


def _length(_function: Function, _operands: Sequence[Operand], called: Signature) -> Kernel:
    return pc.utf8_length if called.arguments[0].name is TypeName.STRING else pc.binary_length  # type: ignore[no-any-return]


def _cased(ascii_name: str, convert: Callable[[str], str]) -> _MakeKernel:
    """Texts beyond ASCII are converted by Python, whose full mapping is Spark's; Arrow's is not."""

    def make(_function: Function, _operands: Sequence[Operand], called: Signature) -> Kernel:
        one_by_one = each(lambda value: convert(str(value)), called.result.arrow)
        quickly = getattr(pc, ascii_name)

        def run(value: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
            is_plain = pc.string_is_ascii(value)
            is_plain = is_plain if isinstance(value, pa.Scalar) else pc.all(is_plain)
            return one_by_one(value) if is_plain.as_py() is False else quickly(value)

        return run

    return make


def _trim(_function: Function, _operands: Sequence[Operand], _called: Signature) -> Kernel:
    return lambda value: pc.ascii_trim(value, characters=" ")


def _concatenate(_function: Function, _operands: Sequence[Operand], called: Signature) -> Kernel:
    separator = pa.scalar("" if called.result.name is TypeName.STRING else b"", called.result.arrow)
    return lambda *values: pc.binary_join_element_wise(*values, separator)


def _substring(_function: Function, operands: Sequence[Operand], _called: Signature) -> Kernel:
    """Positions count from 1, or from the end if negative; 0 is 1. Arrow's count from 0."""
    position, *rest = (int(operand.value) for operand in operands[1:] if isinstance(operand.value, int))
    start = position - 1 if position > 0 else position
    stop = start + rest[0] if rest else None
    if stop is not None and stop <= start:
        return lambda value, *_: pc.if_else(pc.is_valid(value), "", value)
    if start < 0 and stop is not None and stop >= 0:
        stop = None
    return lambda value, *_: pc.utf8_slice_codeunits(value, start=start, stop=stop)


def _date_part(name: str) -> _MakeKernel:
    def make(_function: Function, _operands: Sequence[Operand], called: Signature) -> Kernel:
        part = getattr(pc, name)
        if called.arguments[0].name is TypeName.TIMESTAMP:
            return lambda value: pc.cast(part(local(value)), pa.int32())
        return lambda value: pc.cast(part(value), pa.int32())

    return make


_KERNELS: dict[Function, _MakeKernel] = {
    **dict.fromkeys(COMPARISONS, _compare),
    Function.AND: _plain("and_kleene"),
    Function.OR: _plain("or_kleene"),
    Function.NOT: _plain("invert"),
    Function.IS_NULL: _plain("is_null"),
    Function.IS_NOT_NULL: _plain("is_valid"),
    Function.IN: _is_in,
    Function.ADD: _by_type("add", "add_checked"),
    Function.SUBTRACT: _by_type("subtract", "subtract_checked"),
    Function.MULTIPLY: _by_type("multiply", "multiply_checked"),
    Function.DIVIDE: _divide,
    Function.NEGATE: _by_type("negate", "negate_checked"),
    Function.ABS: _by_type("abs", "abs_checked"),
    Function.LIKE: _like,
    Function.LENGTH: _length,
    Function.LOWER: _cased("ascii_lower", str.lower),
    Function.UPPER: _cased("ascii_upper", str.upper),
    Function.TRIM: _trim,
    Function.CONCAT: _concatenate,
    Function.SUBSTRING: _substring,
    Function.COALESCE: _plain("coalesce"),
    Function.YEAR: _date_part("year"),
    Function.MONTH: _date_part("month"),
    Function.DAY: _date_part("day"),
}
