"""Evaluation of expressions: one compiled function for the row of a transaction and for the batches of a job.

As in Spark, AND, OR, COALESCE and operators skip an operand on rows where those before it decide: `b <> 0 AND
a / b > 1` does not fail where b is 0. All rows are tried first; only if some fail, those that need it are picked out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any

from catalog.engine.base.lazy_arrow import pa, pc
from catalog.engine.schema_change.casts import Kernel
from catalog.engine.schema_change.expressions import (
    Call,
    ColumnRef,
    Expression,
    Function,
    Literal,
    expression_text,
    is_constant,
    operand,
)
from catalog.engine.schema_change.functions import BOOLEAN, COMPARISONS, DOUBLE, TIMESTAMP, signature
from catalog.engine.schema_change.kernels import CallPlan, call_plan
from catalog.engine.schema_change.types import ColumnType, TypeName, Value
from catalog.errors.tables import ExpressionFailedError

Compiled = Callable[[Mapping[int, "pa.Array"], int, datetime | None], "pa.Array"]
_Step = Callable[[Mapping[int, "pa.Array"], int, datetime | None], "pa.Array | pa.Scalar"]
_Needed = Callable[["pa.Array | pa.Scalar"], "pa.Array | pa.Scalar"]

_PROGRAMS_MAX = 4_096
_ARITHMETIC = {Function.ADD, Function.SUBTRACT, Function.MULTIPLY}


def compiled(expression: Expression) -> Compiled:
    """Return the function of arrays by column id, the number of rows, and the time that `current_timestamp()` is."""
    return _program(expression).run


def evaluate_batch(
    expression: Expression, columns: Mapping[int, pa.Array], count: int, now: datetime | None = None
) -> pa.Array:
    """Evaluate on arrays of logical types; raise ExpressionFailedError if one row fails."""
    return _program(expression).run(columns, count, now)


def evaluate_row(expression: Expression, row: Mapping[int, Value], now: datetime | None = None) -> Value:
    """Evaluate on the canonical values of one row; a column that the row lacks is NULL."""
    program = _program(expression)
    columns = {column: pa.array([row.get(column)], arrow) for column, arrow in program.columns}
    return program.value(program.run(columns, 1, now)[0].as_py())


@dataclass(frozen=True, slots=True)
class _Program:
    expression: Expression
    columns: tuple[tuple[int, pa.DataType], ...]
    step: _Step
    value: Callable[[Any], Value]
    """Makes a value of Arrow canonical."""

    def run(self, columns: Mapping[int, pa.Array], count: int, now: datetime | None = None) -> pa.Array:
        try:
            found = self.step(columns, count, now)
        except ValueError as error:
            found_text = str(error).partition("\n")[0]
            raise ExpressionFailedError(expression_text(self.expression, {}), found_text) from error
        return pa.repeat(found, count) if isinstance(found, pa.Scalar) else found


_programs: dict[int, _Program] = {}
"""By the identity of their expression, which they keep alive: to compare or to hash a tree takes longer than to run it,
and 0.0 equals -0.0."""


def _program(expression: Expression) -> _Program:
    found = _programs.get(id(expression))
    if found is None:
        types: dict[int, ColumnType] = {}
        _collect(expression, types)
        columns = tuple((column, kind.arrow) for column, kind in types.items())
        found = _Program(expression, columns, _step(expression), _canonical(expression.type))
        if len(_programs) >= _PROGRAMS_MAX:
            _programs.clear()
        _programs[id(expression)] = found
    return found


def _collect(expression: Expression, types: dict[int, ColumnType]) -> None:
    match expression:
        case ColumnRef(column, kind):
            types[column] = kind
        case Call():
            for argument in expression.arguments:
                _collect(argument, types)
        case Literal():
            pass


def _canonical(kind: ColumnType) -> Callable[[Any], Value]:
    """Arrow gives timestamps the zone of another library."""
    if kind.name is TypeName.TIMESTAMP:
        return lambda value: value and value.replace(tzinfo=UTC)
    if kind.element:
        inner = _canonical(kind.element)
        return lambda value: value and [inner(one) for one in value]
    return lambda value: value


def _step(expression: Expression) -> _Step:
    match expression:
        case ColumnRef(column):
            return lambda columns, _count, _now: columns[column]
        case Literal(value, kind):
            scalar = pa.scalar(value, kind.arrow)
            return lambda _columns, _count, _now: scalar
        case Call(Function.CURRENT_TIMESTAMP):
            return _clock
        case Call():
            return _folded(expression, _call(expression))


def _clock(_columns: Mapping[int, pa.Array], _count: int, now: datetime | None) -> pa.Scalar:
    if now is None:
        raise TypeError("the time of current_timestamp() is not given")
    return pa.scalar(now, TIMESTAMP.arrow)


def _folded(expression: Expression, step: _Step) -> _Step:
    """Compute a constant once. One that fails is left to fail where its value is needed."""
    if not is_constant(expression):
        return step
    try:
        scalar = step({}, 1, None)
    except ValueError:
        return step
    return lambda _columns, _count, _now: scalar


def _call(call: Call) -> _Step:
    match call.function:
        case Function.BETWEEN:
            value, low, high = call.arguments
            return _step(
                Call(
                    Function.AND,
                    (Call(Function.GE, (value, low), BOOLEAN), Call(Function.LE, (value, high), BOOLEAN)),
                    BOOLEAN,
                )
            )
        case Function.IN if not _is_plain_list(call):
            return _step(_alternatives(call))
        case Function.COALESCE:
            plan = _plan(call)
            return reduce(
                lambda first, second: _lazy(first, second, plan.kernel, pc.is_null, call.type), _arguments(call, plan)
            )
        case _:
            return _plain_call(call)


def _plain_call(call: Call) -> _Step:
    plan = _plan(call)
    kernel, steps = plan.kernel, _arguments(call, plan)
    if len(steps) == 1:
        only = steps[0]
        return lambda columns, count, now: kernel(only(columns, count, now))
    if call.function is Function.DIVIDE:  # Spark looks at the divisor first
        left, right = steps
        return _lazy(right, left, lambda below, above: kernel(above, below), pc.is_valid, plan.types[0])
    if needed := _NEEDED.get(call.function):
        return _lazy(steps[0], steps[1], kernel, needed, plan.types[1])
    return lambda columns, count, now: kernel(*[step(columns, count, now) for step in steps])


def _not(value: bool) -> _Needed:  # noqa: FBT001 - the value itself
    return lambda datum: pc.fill_null(pc.not_equal(datum, value), True)  # noqa: FBT003 - as above


def _valid(datum: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    return pc.is_valid(datum)


_NEEDED: dict[Function, _Needed] = {
    Function.AND: _not(False),  # noqa: FBT003
    Function.OR: _not(True),  # noqa: FBT003
    **dict.fromkeys(COMPARISONS | _ARITHMETIC, _valid),
}
"""By the first operand: the rows for which the second is needed."""


def _plan(call: Call) -> CallPlan:
    return call_plan(call.function, [operand(one) for one in call.arguments], call.type)


def _arguments(call: Call, plan: CallPlan) -> list[_Step]:
    return [
        _folded(argument, _converted(_step(argument), conversion)) if conversion else _step(argument)
        for argument, conversion in zip(call.arguments, plan.conversions, strict=True)
    ]


def _converted(step: _Step, conversion: Kernel) -> _Step:
    return lambda columns, count, now: conversion(step(columns, count, now))


def _lazy(first: _Step, second: _Step, kernel: Kernel, needed: _Needed, kind: ColumnType) -> _Step:
    """Return a call whose second operand counts only where the first does not decide."""

    def run(columns: Mapping[int, pa.Array], count: int, now: datetime | None) -> pa.Array | pa.Scalar:
        left = first(columns, count, now)
        try:
            right = second(columns, count, now)
        except ValueError:
            mask = needed(left)
            mask = pa.repeat(mask, count) if isinstance(mask, pa.Scalar) else mask
            rows = pc.indices_nonzero(mask)
            if not len(rows):
                return kernel(left, pa.nulls(count, kind.arrow))
            right = second({column: array.take(rows) for column, array in columns.items()}, len(rows), now)
            if not isinstance(right, pa.Scalar):
                places = pc.subtract(pc.cumulative_sum(pc.cast(mask, pa.int64())), 1)
                right = right.take(pc.if_else(mask, places, pa.scalar(None, pa.int64())))
        return kernel(left, right)

    return run


def _is_plain_list(call: Call) -> bool:
    """Tell if a list can be looked up: all are literals, and none is a DOUBLE, whose zeros Arrow tells apart."""
    arguments = signature(call.function, [operand(one) for one in call.arguments]).arguments
    return DOUBLE not in arguments and all(isinstance(one, Literal) for one in call.arguments[1:])


def _alternatives(call: Call) -> Expression:
    """Return `a IN (b, c)` as `a = b OR a = c`, each by the types that all of them have in common."""
    arguments = signature(call.function, [operand(one) for one in call.arguments]).arguments
    value, *listed = (
        one if one.type == kind else Call(Function.CAST, (one,), kind)
        for one, kind in zip(call.arguments, arguments, strict=True)
    )
    equal: list[Expression] = [Call(Function.EQ, (value, one), BOOLEAN) for one in listed]
    return reduce(lambda first, second: Call(Function.OR, (first, second), BOOLEAN), equal)
