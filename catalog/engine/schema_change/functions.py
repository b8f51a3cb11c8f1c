"""Functions of expressions: their names, and the rules by which the types of operands give that of the result.

The rules are those of Spark in ANSI mode, where they need no more than 18 digits; all else is refused:

- whole numbers stay INT or BIGINT, and `/` makes them DOUBLE; DECIMALs get the digits that Spark gives them;
- where a DOUBLE meets another number, both are DOUBLE; where a DATE meets a TIMESTAMP, it begins that day in UTC;
- a text is read as a date or a timestamp where it meets one, if it is a literal; nothing else is converted by itself.

`signature` says what operands are converted to. It is asked when an expression is resolved and when it is compiled, so
that no conversion stands in the stored tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from catalog.engine.schema_change.types import DIGITS_MAX, ColumnType, TypeName, Value


class Function(StrEnum):
    """All functions and operators that expressions have."""

    EQ = "EQ"
    NE = "NE"
    LT = "LT"
    LE = "LE"
    GT = "GT"
    GE = "GE"
    AND = "AND"
    OR = "OR"
    NOT = "NOT"
    IS_NULL = "IS_NULL"
    IS_NOT_NULL = "IS_NOT_NULL"
    IN = "IN"
    BETWEEN = "BETWEEN"
    ADD = "ADD"
    SUBTRACT = "SUBTRACT"
    MULTIPLY = "MULTIPLY"
    DIVIDE = "DIVIDE"
    NEGATE = "NEGATE"
    LIKE = "LIKE"
    LENGTH = "LENGTH"
    LOWER = "LOWER"
    UPPER = "UPPER"
    TRIM = "TRIM"
    CONCAT = "CONCAT"
    SUBSTRING = "SUBSTRING"
    COALESCE = "COALESCE"
    ABS = "ABS"
    CAST = "CAST"
    YEAR = "YEAR"
    MONTH = "MONTH"
    DAY = "DAY"
    CURRENT_TIMESTAMP = "CURRENT_TIMESTAMP"


COMPARISONS = {Function.EQ, Function.NE, Function.LT, Function.LE, Function.GT, Function.GE}
LIKE_ESCAPE = "\\"
BOOLEAN = ColumnType(TypeName.BOOLEAN)
INT = ColumnType(TypeName.INT)
BIGINT = ColumnType(TypeName.BIGINT)
DOUBLE = ColumnType(TypeName.DOUBLE)
STRING = ColumnType(TypeName.STRING)
DATE = ColumnType(TypeName.DATE)
TIMESTAMP = ColumnType(TypeName.TIMESTAMP)

_INT_DIGITS, _BIGINT_DIGITS = 10, 20
"""The digits that Spark gives whole numbers which meet a DECIMAL."""
_QUOTIENT_SCALE_MIN = 6
_MOMENTS = {TypeName.DATE, TypeName.TIMESTAMP}


@dataclass(frozen=True, slots=True)
class Operand:
    """The type of an argument, and its value if it is a literal. The type of a bare NULL is None."""

    type: ColumnType | None
    value: Value = None
    is_literal: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """The types that arguments are converted to, and that of the result."""

    arguments: tuple[ColumnType, ...]
    result: ColumnType


class UntypableError(ValueError):
    """The rules have no result for these operands; the text tells why."""


def signature(function: Function, operands: Sequence[Operand]) -> Signature:
    """Return how a function other than CAST is called; raise UntypableError if it cannot be."""
    least, most, rule = _RULES[function]
    if not least <= len(operands) <= (most or len(operands)):
        raise UntypableError(f"{function} does not take {len(operands)} arguments")
    return rule(function, operands)


def pattern_parts(pattern: str, escape: str) -> list[str | None]:
    """Split a pattern of LIKE: texts, "_" as an empty text, "%" as None. Raise UntypableError as Spark would."""
    if len(escape) != 1:
        raise UntypableError(f"the escape of LIKE is one character, not {escape!r}")
    parts: list[str | None] = []
    text, characters = "", iter(pattern)
    for character in characters:
        if character == escape:
            text += _escaped(next(characters, ""), escape)
        elif character in "%_":
            parts += [text] if text else []
            parts.append(None if character == "%" else "")
            text = ""
        else:
            text += character
    return [*parts, text] if text else parts


def _escaped(character: str, escape: str) -> str:
    if character not in {"%", "_", escape}:
        raise UntypableError(f"in a pattern of LIKE only %, _ and {escape} can follow {escape}")
    return character


def _texts(operands: Sequence[Operand]) -> str:
    return ", ".join(operand.type.text if operand.type else "NULL" for operand in operands)


def _refuse(function: Function, operands: Sequence[Operand]) -> UntypableError:
    return UntypableError(f"{function} of {_texts(operands)}")


def _known(operands: Sequence[Operand], otherwise: ColumnType) -> list[Operand]:
    """Return the operands with the type of the others for NULLs that have none."""
    found = next((operand.type for operand in operands if operand.type), otherwise)
    return [operand if operand.type else Operand(found) for operand in operands]


def _types(operands: Sequence[Operand]) -> list[ColumnType]:
    return [operand.type for operand in operands if operand.type]


def _compared(function: Function, operands: Sequence[Operand]) -> Signature:
    """Whole numbers and DECIMALs stay as they are: they are compared exactly."""
    types = _types(_known(operands, BOOLEAN))
    names = {kind.name for kind in types}
    if TypeName.ARRAY in names:
        raise _refuse(function, operands)
    if len(names) == 1:
        return Signature(tuple(types), BOOLEAN)
    if all(kind.is_numeric for kind in types):
        return Signature(tuple(DOUBLE if DOUBLE in types else kind for kind in types), BOOLEAN)
    if moment := _common_moment(operands):
        return Signature((moment,) * len(types), BOOLEAN)
    raise _refuse(function, operands)


def _common_moment(operands: Sequence[Operand]) -> ColumnType | None:
    """Return DATE or TIMESTAMP if all operands are one of them, or texts that are literals."""
    known = [operand for operand in operands if operand.type]
    moments = {kind.name for kind in _types(known) if kind.name in _MOMENTS}
    texts = [operand for operand in known if operand.type == STRING and operand.is_literal]
    if not moments or any(
        operand.type and operand.type.name not in moments for operand in known if operand not in texts
    ):
        return None
    return TIMESTAMP if TypeName.TIMESTAMP in moments else DATE


def _between(function: Function, operands: Sequence[Operand]) -> Signature:
    value, low, high = _known(operands, BOOLEAN)
    first, second = (_compared(function, pair).arguments for pair in ((value, low), (value, high)))
    kept = first[0] if first[0] == second[0] else value.type or BOOLEAN
    return Signature((kept, first[1], second[1]), BOOLEAN)


def _logical(function: Function, operands: Sequence[Operand]) -> Signature:
    if any(operand.type not in {None, BOOLEAN} for operand in operands):
        raise _refuse(function, operands)
    return Signature((BOOLEAN,) * len(operands), BOOLEAN)


def _null_test(_function: Function, operands: Sequence[Operand]) -> Signature:
    return Signature((operands[0].type or BOOLEAN,), BOOLEAN)


def _arithmetic(function: Function, operands: Sequence[Operand]) -> Signature:
    operands = _known(operands, INT)
    types = _types(operands)
    if not all(kind.is_numeric for kind in types):
        raise _refuse(function, operands)
    if DOUBLE in types:
        return Signature((DOUBLE, DOUBLE), DOUBLE)
    if not any(kind.name is TypeName.DECIMAL for kind in types):
        if function is Function.DIVIDE:
            return Signature((DOUBLE, DOUBLE), DOUBLE)
        common = BIGINT if BIGINT in types else INT
        return Signature((common, common), common)
    (digits, scale), (by_digits, by_scale) = map(_digits, operands)
    match function:
        case Function.MULTIPLY:
            result = digits + by_digits + 1, scale + by_scale
        case Function.DIVIDE:
            result_scale = max(_QUOTIENT_SCALE_MIN, scale + by_digits + 1)
            result = digits - scale + by_scale + result_scale, result_scale
        case _:
            result_scale = max(scale, by_scale)
            result = max(digits - scale, by_digits - by_scale) + result_scale + 1, result_scale
    found = _decimal(function, operands, result)
    return Signature((_decimal(function, operands, (digits, scale)), ColumnType.decimal(by_digits, by_scale)), found)


def _digits(operand: Operand) -> tuple[int, int]:
    """Return precision and scale of a number that is no DOUBLE; a literal needs the digits that it has."""
    kind = operand.type
    if kind is not None and kind.name is TypeName.DECIMAL:
        return kind.precision, kind.scale
    if operand.is_literal and isinstance(operand.value, int):
        return len(str(abs(operand.value))), 0
    return (_INT_DIGITS if kind == INT else _BIGINT_DIGITS), 0


def _decimal(function: Function, operands: Sequence[Operand], wanted: tuple[int, int]) -> ColumnType:
    if wanted[0] > DIGITS_MAX:
        raise UntypableError(
            f"{function} of {_texts(operands)} needs {wanted[0]} digits, more than {DIGITS_MAX}; cast to fewer digits"
        )
    return ColumnType.decimal(*wanted)


def _sign(function: Function, operands: Sequence[Operand]) -> Signature:
    found = _known(operands, DOUBLE)[0].type
    if found is None or not found.is_numeric:
        raise _refuse(function, operands)
    return Signature((found,), found)


def _coalesced(function: Function, operands: Sequence[Operand]) -> Signature:
    found = _common(function, _known(operands, BOOLEAN))
    return Signature((found,) * len(operands), found)


def _common(function: Function, operands: Sequence[Operand]) -> ColumnType:
    types = _types(operands)
    if len(set(types)) == 1:
        return types[0]
    if not all(kind.is_numeric for kind in types):
        if moment := _common_moment(operands):
            return moment
        raise _refuse(function, operands)
    if DOUBLE in types:
        return DOUBLE
    if any(kind.name is TypeName.DECIMAL for kind in types):
        digits = [_digits(Operand(kind)) for kind in types]
        scale = max(after for _, after in digits)
        return _decimal(function, operands, (max(all_ - after for all_, after in digits) + scale, scale))
    return BIGINT


def _like(function: Function, operands: Sequence[Operand]) -> Signature:
    value, pattern, *rest = operands
    escape = rest[0] if rest else Operand(STRING, LIKE_ESCAPE, is_literal=True)
    if value.type not in {None, STRING}:
        raise _refuse(function, operands)
    if not isinstance(pattern.value, str) or not isinstance(escape.value, str):
        raise UntypableError("the pattern and the escape of LIKE are literal texts")
    pattern_parts(pattern.value, escape.value)
    return Signature((STRING,) * len(operands), BOOLEAN)


def _length(function: Function, operands: Sequence[Operand]) -> Signature:
    found = operands[0].type or STRING
    if found.name not in {TypeName.STRING, TypeName.BINARY}:
        raise _refuse(function, operands)
    return Signature((found,), INT)


def _text(function: Function, operands: Sequence[Operand]) -> Signature:
    if operands[0].type not in {None, STRING}:
        raise _refuse(function, operands)
    return Signature((STRING,), STRING)


def _concatenated(function: Function, operands: Sequence[Operand]) -> Signature:
    types = set(_types(_known(operands, STRING)))
    found = types.pop()
    if types or found.name not in {TypeName.STRING, TypeName.BINARY}:
        raise _refuse(function, operands)
    return Signature((found,) * len(operands), found)


def _substring(function: Function, operands: Sequence[Operand]) -> Signature:
    if operands[0].type not in {None, STRING} or any(operand.type != INT for operand in operands[1:]):
        raise _refuse(function, operands)
    if any(operand.value is None for operand in operands[1:]):
        raise UntypableError("the position and the length of SUBSTRING are literal numbers")
    return Signature((STRING, *(INT for _ in operands[1:])), STRING)


def _date_part(function: Function, operands: Sequence[Operand]) -> Signature:
    found = operands[0].type or DATE
    if found.name not in _MOMENTS:
        raise _refuse(function, operands)
    return Signature((found,), INT)


def _clock(_function: Function, _operands: Sequence[Operand]) -> Signature:
    return Signature((), TIMESTAMP)


_Rule = Callable[[Function, Sequence[Operand]], Signature]
_RULES: dict[Function, tuple[int, int, _Rule]] = {
    **dict.fromkeys(COMPARISONS, (2, 2, _compared)),
    Function.AND: (2, 2, _logical),
    Function.OR: (2, 2, _logical),
    Function.NOT: (1, 1, _logical),
    Function.IS_NULL: (1, 1, _null_test),
    Function.IS_NOT_NULL: (1, 1, _null_test),
    Function.IN: (2, 0, _compared),
    Function.BETWEEN: (3, 3, _between),
    Function.ADD: (2, 2, _arithmetic),
    Function.SUBTRACT: (2, 2, _arithmetic),
    Function.MULTIPLY: (2, 2, _arithmetic),
    Function.DIVIDE: (2, 2, _arithmetic),
    Function.NEGATE: (1, 1, _sign),
    Function.ABS: (1, 1, _sign),
    Function.LIKE: (2, 3, _like),
    Function.LENGTH: (1, 1, _length),
    Function.LOWER: (1, 1, _text),
    Function.UPPER: (1, 1, _text),
    Function.TRIM: (1, 1, _text),
    Function.CONCAT: (1, 0, _concatenated),
    Function.SUBSTRING: (2, 3, _substring),
    Function.COALESCE: (1, 0, _coalesced),
    Function.YEAR: (1, 1, _date_part),
    Function.MONTH: (1, 1, _date_part),
    Function.DAY: (1, 1, _date_part),
    Function.CURRENT_TIMESTAMP: (0, 0, _clock),
}
"""The fewest and the most arguments (0: any number), and the rule."""
