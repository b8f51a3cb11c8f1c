"""Expressions over the columns of a table: raw as a statement says them, typed as they are stored.

A typed expression names columns by their ids, so that renaming a column changes nothing. It holds no implicit casts:
`functions` tells from the types what is converted, when an expression is resolved and again when it is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce

from catalog.engine.schema_change.casts import cast_kernel
from catalog.engine.schema_change.functions import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Function,
    Operand,
    UntypableError,
    signature,
)
from catalog.engine.schema_change.literals import literal_text, literal_type, literal_value
from catalog.engine.schema_change.types import ColumnType, TypeName, Value
from catalog.errors.tables import UnknownColumnError, UnsupportedExpressionError

__all__ = [
    "Call",
    "ColumnRef",
    "Expression",
    "Function",
    "Literal",
    "Name",
    "RawCall",
    "RawExpression",
    "RawLiteral",
    "columns_of",
    "expression_text",
    "is_constant",
    "operand",
    "resolve",
    "substitute",
]


@dataclass(frozen=True, slots=True)
class Name:
    """A column as a statement names it."""

    name: str


@dataclass(frozen=True, slots=True)
class RawLiteral:
    value: Value
    type: ColumnType | None = None
    """Only if the statement tells it, as in DATE '2026-01-31'."""


@dataclass(frozen=True, slots=True)
class RawCall:
    function: Function
    arguments: tuple[RawExpression, ...]
    type: ColumnType | None = None
    """Of a CAST."""


RawExpression = Name | RawLiteral | RawCall


@dataclass(frozen=True, slots=True)
class ColumnRef:
    column: int
    type: ColumnType


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value
    type: ColumnType


@dataclass(frozen=True, slots=True)
class Call:
    function: Function
    arguments: tuple[Expression, ...]
    type: ColumnType


Expression = ColumnRef | Literal | Call

_UNNAMED_TABLE = "the table"
_INT_DIGITS = 10
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_KEYWORDS = frozenset(
    """
    all alter and anti any array as asc at between both by case cast check collate column columns constraint create
    cross cube current current_date current_time current_timestamp current_user database date day default desc describe
    distinct div drop else end escape except exists explain extract false fetch filter for foreign from full function
    grant group grouping having hour if ilike in inner insert intersect interval into is join key lateral leading left
    like limit map merge minus minute month natural not null offset on only or order outer over partition percent
    position primary range references regexp right rlike row rows second select semi session_user set some struct
    substring table tablesample then time timestamp to trailing trim true union unique unknown unpivot update user using
    values view when where window with within year
    """.split()  # noqa: SIM905 - a hundred words
)
"""Words that are quoted where they name a column."""
_OPERATORS = {
    Function.OR: ("OR", 1),
    Function.AND: ("AND", 2),
    Function.EQ: ("=", 4),
    Function.NE: ("<>", 4),
    Function.LT: ("<", 4),
    Function.LE: ("<=", 4),
    Function.GT: (">", 4),
    Function.GE: (">=", 4),
    Function.ADD: ("+", 5),
    Function.SUBTRACT: ("-", 5),
    Function.MULTIPLY: ("*", 6),
    Function.DIVIDE: ("/", 6),
}
"""Operators with two operands, and how strongly they bind."""
_TESTS = {
    (Function.IS_NULL, 1): "{} IS NULL",
    (Function.IS_NOT_NULL, 1): "{} IS NOT NULL",
    (Function.BETWEEN, 3): "{} BETWEEN {} AND {}",
    (Function.LIKE, 2): "{} LIKE {}",
    (Function.LIKE, 3): "{} LIKE {} ESCAPE {}",
}
"""By the number of operands."""
_NOT_RANK, _TEST_RANK, _OPERAND_RANK, _SIGN_RANK, _ATOM_RANK = 3, 4, 5, 7, 8


def resolve(
    raw: RawExpression,
    columns: Mapping[str, tuple[int, ColumnType]],
    *,
    clock: bool = False,
    wanted: ColumnType | None = None,
) -> Expression:
    """Find the columns, the types and the functions of an expression, or refuse it by name.

    Names of columns are found in any case. `clock` allows `current_timestamp()`. The result is of the type `wanted`:
    numbers are widened and literals converted if they fit, and nothing else.
    """
    known = {name.lower(): found for name, found in columns.items()}
    try:
        found = _resolved(raw, known, clock=clock)
        if wanted is not None:
            return _assigned(found, wanted)
    except UntypableError as error:
        raise UnsupportedExpressionError(_text(raw, {}), str(error)) from error
    return found or Literal(None, BOOLEAN)


def expression_text(expression: Expression, names: Mapping[int, str]) -> str:
    """Return the SQL text of an expression, which Spark and `resolve` read as the same expression."""
    return _text(expression, names)


def columns_of(expression: Expression) -> frozenset[int]:
    match expression:
        case ColumnRef(column):
            return frozenset({column})
        case Call():
            return frozenset[int]().union(*map(columns_of, expression.arguments))
        case Literal():
            return frozenset()


def substitute(expression: Expression, replaced: Mapping[int, int | Expression]) -> Expression:
    """Put columns of other ids, or expressions, in the place of columns.

    Where types differ, as of a column that was widened, the types of calls are found anew; if they have none,
    UnsupportedExpressionError is raised. An expression in which nothing is replaced is returned itself.
    """
    match expression:
        case ColumnRef(column):
            found = replaced.get(column, expression)
            return replace(expression, column=found) if isinstance(found, int) else found
        case Literal():
            return expression
        case Call():
            arguments = tuple(substitute(argument, replaced) for argument in expression.arguments)
            if all(new is old for new, old in zip(arguments, expression.arguments, strict=True)):
                return expression
            try:
                return _called(expression.function, arguments, expression.type)
            except UntypableError as error:
                raise UnsupportedExpressionError(expression_text(expression, {}), str(error)) from error


def is_constant(expression: Expression) -> bool:
    """Tell if the value depends on no column and on no clock."""
    match expression:
        case ColumnRef():
            return False
        case Literal():
            return True
        case Call():
            return expression.function is not Function.CURRENT_TIMESTAMP and all(map(is_constant, expression.arguments))


def operand(expression: Expression | None) -> Operand:
    """Return what the rules of functions look at; None is a bare NULL."""
    if expression is None:
        return Operand(None, is_literal=True)
    if isinstance(expression, Literal):
        return Operand(expression.type, expression.value, is_literal=True)
    return Operand(expression.type)


def _resolved(raw: RawExpression, known: Mapping[str, tuple[int, ColumnType]], *, clock: bool) -> Expression | None:
    """Return the typed expression; None is a NULL whose type only the context tells."""
    match raw:
        case Name(name):
            if name.lower() not in known:
                raise UnknownColumnError(_UNNAMED_TABLE, name, tuple(known))
            return ColumnRef(*known[name.lower()])
        case RawLiteral(None, None):
            return None
        case RawLiteral(value, kind):
            kind = kind or literal_type(value)
            return Literal(literal_value(value, kind), kind)
        case RawCall(Function.NEGATE, (RawLiteral(bool()),)):
            raise UntypableError("NEGATE of BOOLEAN")
        case RawCall(Function.NEGATE, (RawLiteral(int() | float() | Decimal() as value, None),)):
            return _resolved(RawLiteral(-value), known, clock=clock)
        case RawCall(Function.CURRENT_TIMESTAMP) if not clock:
            raise UntypableError("current_timestamp() is allowed in defaults only")
        case RawCall(Function.AND | Function.OR, arguments) if len(arguments) > 2:  # noqa: PLR2004 - operators have two
            nested = reduce(lambda first, second: RawCall(raw.function, (first, second)), arguments)
            return _resolved(nested, known, clock=clock)
        case RawCall(function, arguments, kind):
            found = tuple(_resolved(argument, known, clock=clock) for argument in arguments)
            return _called(function, found, kind)


def _called(function: Function, arguments: tuple[Expression | None, ...], kind: ColumnType | None) -> Expression:
    """Return a call of a function; `kind` is that of a CAST."""
    if function is Function.CAST:
        if kind is None or len(arguments) != 1:
            raise UntypableError("CAST takes one argument and a type")
        return _cast(arguments[0], kind)
    called = signature(function, [operand(argument) for argument in arguments])
    fitted = tuple(_fitted(argument, target) for argument, target in zip(arguments, called.arguments, strict=True))
    return Call(function, fitted, called.result)


def _cast(argument: Expression | None, target: ColumnType) -> Expression:
    if argument is None:
        return Literal(None, target)
    if argument.type == target:
        return argument
    if cast_kernel(argument.type, target) is None:
        raise UntypableError(f"CAST of {argument.type.text} to {target.text}")
    return Call(Function.CAST, (argument,), target)


def _fitted(argument: Expression | None, target: ColumnType) -> Expression:
    """Give a NULL its type, and read a text that meets a date or a timestamp."""
    match argument:
        case None:
            return Literal(None, target)
        case Literal(value, kind) if kind == STRING and target in {DATE, TIMESTAMP}:
            return Literal(literal_value(value, target), target)
        case _:
            return argument


def _assigned(found: Expression | None, wanted: ColumnType) -> Expression:
    if found is None:
        return Literal(None, wanted)
    if found.type == wanted:
        return found
    if isinstance(found, Literal) and _may_become(found.type, wanted):
        return Literal(literal_value(found.value, wanted), wanted)
    if _widens(found.type, wanted):
        return Call(Function.CAST, (found,), wanted)
    raise UntypableError(f"it is {found.type.text}, and {wanted.text} is needed; cast it")


def _may_become(source: ColumnType, target: ColumnType) -> bool:
    """Tell if a literal of a type may be written for a value of another, if the value itself fits."""
    if source.is_numeric and source != DOUBLE:
        return target.is_numeric
    return (source == STRING and target in {DATE, TIMESTAMP}) or bool(source.element and target.element)


def _widens(source: ColumnType, target: ColumnType) -> bool:
    if target.name is TypeName.DECIMAL:
        room = target.precision - target.scale
        if source.name is TypeName.DECIMAL:
            return source.scale <= target.scale and source.precision - source.scale <= room
        return source == INT and room >= _INT_DIGITS
    if target == DOUBLE:
        return source.is_numeric
    return (source == INT and target == BIGINT) or (source == DATE and target == TIMESTAMP)


def _text(node: RawExpression | Expression, names: Mapping[int, str], needed: int = 0) -> str:
    text, rank = _ranked(node, names)
    return f"({text})" if rank < needed else text


def _ranked(node: RawExpression | Expression, names: Mapping[int, str]) -> tuple[str, int]:
    """Return the text of a node, and how strongly its parts are bound."""
    match node:
        case Name(name):
            return _quoted(name), _ATOM_RANK
        case ColumnRef(column):
            return _quoted(names.get(column, f"column {column}")), _ATOM_RANK
        case RawLiteral(value, kind) | Literal(value, kind):
            text = literal_text(value, kind)
            return text, _SIGN_RANK if text.startswith("-") else _ATOM_RANK
        case RawCall(function, arguments) | Call(function, arguments) if function in _OPERATORS and len(arguments) > 1:
            sign, rank = _OPERATORS[function]
            first = _OPERAND_RANK if rank == _TEST_RANK else rank
            texts = [_text(one, names, rank + 1 if number else first) for number, one in enumerate(arguments)]
            return f" {sign} ".join(texts), rank
        case RawCall() | Call():
            return _call_text(node, names)


def _call_text(call: RawCall | Call, names: Mapping[int, str]) -> tuple[str, int]:
    inside = [_text(argument, names) for argument in call.arguments]
    strong = [_text(argument, names, _OPERAND_RANK) for argument in call.arguments]
    match call.function, strong:
        case Function.NOT, [_]:
            return f"NOT {_text(call.arguments[0], names, _NOT_RANK)}", _NOT_RANK
        case Function.NEGATE, [_]:
            text = _text(call.arguments[0], names, _SIGN_RANK)
            return (f"-({text})" if text.startswith("-") else f"-{text}"), _SIGN_RANK
        case Function.IN, [value, *_]:
            return f"{value} IN ({', '.join(inside[1:])})", _TEST_RANK
        case Function.CAST, [_]:
            return f"CAST({inside[0]} AS {call.type.text if call.type else '?'})", _ATOM_RANK
        case _ if template := _TESTS.get((call.function, len(strong))):
            return template.format(*strong), _TEST_RANK
        case _:
            return f"{call.function.lower()}({', '.join(inside)})", _ATOM_RANK


def _quoted(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _KEYWORDS:
        return name
    return f"`{name.replace('`', '``')}`"
