"""Expressions: resolved or refused by name, written as SQL, evaluated on a row and on batches alike.

That each function gives what Spark gives is shown by `test_expressions_on_spark`.
"""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.engine.schema_change.evaluation import compiled, evaluate_batch, evaluate_row
from catalog.engine.schema_change.expressions import (
    Call,
    ColumnRef,
    Expression,
    Function,
    Literal,
    Name,
    RawCall,
    RawExpression,
    RawLiteral,
    columns_of,
    expression_text,
    is_constant,
    resolve,
    substitute,
)
from catalog.engine.schema_change.types import ColumnType, Value
from catalog.errors.tables import ExpressionFailedError, UnknownColumnError, UnsupportedExpressionError

F = Function
TYPES = {
    "i": "INT",
    "g": "BIGINT",
    "x": "DOUBLE",
    "s": "STRING",
    "v": "BINARY",
    "d": "DATE",
    "t": "TIMESTAMP",
    "m": "DECIMAL(10,2)",
    "w": "DECIMAL(18,2)",
    "b": "BOOLEAN",
    "a": "ARRAY<INT>",
    "order": "INT",
    "Two Words": "INT",
}
COLUMNS = {name: (number, ColumnType.parse(text)) for number, (name, text) in enumerate(TYPES.items(), 2)}
NAMES = {number: name for name, (number, _) in COLUMNS.items()}
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
i, g, x, s, v, d, t, m, w, b, a, order, words = map(Name, TYPES)
INT, BIGINT, DOUBLE, BOOLEAN = map(ColumnType.parse, ("INT", "BIGINT", "DOUBLE", "BOOLEAN"))


def call(function: Function, *arguments: RawExpression | Value, kind: str | None = None) -> RawExpression:
    raw = (one if isinstance(one, Name | RawLiteral | RawCall) else RawLiteral(one) for one in arguments)
    return RawCall(function, tuple(raw), ColumnType.parse(kind) if kind else None)


def typed(raw: RawExpression | Value, wanted: str | None = None) -> Expression:
    raw = raw if isinstance(raw, Name | RawLiteral | RawCall) else RawLiteral(raw)
    return resolve(raw, COLUMNS, wanted=ColumnType.parse(wanted) if wanted else None)


def told(raw: RawExpression) -> str:
    return expression_text(typed(raw), NAMES)


def valued(raw: RawExpression, **row: Value) -> Value:
    return evaluate_row(typed(raw), {COLUMNS[name][0]: value for name, value in row.items()})


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (call(F.AND, call(F.GT, m, 0), call(F.IS_NOT_NULL, s)), "m > 0 AND s IS NOT NULL"),
        (call(F.AND, call(F.OR, b, b), call(F.NOT, call(F.AND, b, b))), "(b OR b) AND NOT (b AND b)"),
        (call(F.AND, b, b, b), "b AND b AND b"),
        (call(F.AND, b, call(F.AND, b, b)), "b AND (b AND b)"),
        (call(F.SUBTRACT, i, call(F.SUBTRACT, g, -1)), "i - (g - -1)"),
        (call(F.MULTIPLY, call(F.ADD, i, 1), 2), "(i + 1) * 2"),
        (call(F.NEGATE, call(F.NEGATE, i)), "-(-i)"),
        (call(F.NEGATE, 2**31), "-2147483648"),
        (call(F.EQ, call(F.EQ, i, 1), b), "(i = 1) = b"),
        (call(F.IN, s, "it's", "\\"), "s IN ('it\\'s', '\\\\')"),
        (call(F.BETWEEN, d, "2020-01-01", t), "d BETWEEN DATE '2020-01-01' AND t"),
        (call(F.LIKE, s, "a!%%", "!"), "s LIKE 'a!%%' ESCAPE '!'"),
        (call(F.NOT, call(F.LIKE, s, "%")), "NOT s LIKE '%'"),
        (call(F.CAST, s, kind="DECIMAL(5,2)"), "CAST(s AS DECIMAL(5,2))"),
        (call(F.COALESCE, order, words, None), "coalesce(`order`, `Two Words`, NULL)"),
        (call(F.EQ, g, RawLiteral(5, BIGINT)), "g = 5L"),
        (call(F.LT, x, 1e300), "x < 1e+300"),
        (call(F.LT, x, -0.5), "x < -0.5D"),
        (call(F.LT, x, float("-inf")), "x < CAST('-Infinity' AS DOUBLE)"),
        (call(F.EQ, v, b"\x0a\xff"), "v = X'0AFF'"),
        (call(F.EQ, b, True), "b = TRUE"),  # noqa: FBT003 - a literal
        (call(F.EQ, m, Decimal("9.90")), "m = 9.90"),
        (call(F.EQ, m, Decimal(9)), "m = CAST(9 AS DECIMAL(1,0))"),
        (
            call(F.EQ, t, RawLiteral("2020-01-01 01:00:00.5+01:00", ColumnType.parse("TIMESTAMP"))),
            "t = TIMESTAMP '2020-01-01 00:00:00.500000+00:00'",
        ),
    ],
)
def test_an_expression_is_written_as_sql(raw: RawExpression, text: str) -> None:
    assert told(raw) == text


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (call(F.ADD, i, i), "INT"),
        (call(F.ADD, i, g), "BIGINT"),
        (call(F.ADD, m, x), "DOUBLE"),
        (call(F.ADD, m, 1), "DECIMAL(11,2)"),
        (call(F.MULTIPLY, m, 10), "DECIMAL(13,2)"),
        (call(F.DIVIDE, i, i), "DOUBLE"),
        (call(F.DIVIDE, m, 2), "DECIMAL(14,6)"),
        (call(F.COALESCE, m, 0), "DECIMAL(12,2)"),
        (call(F.COALESCE, d, t), "TIMESTAMP"),
        (call(F.COALESCE, a, None), "ARRAY<INT>"),
        (call(F.CONCAT, v, v), "BINARY"),
        (call(F.LENGTH, v), "INT"),
        (RawLiteral(2**31), "BIGINT"),
        (RawLiteral(-(2**63)), "BIGINT"),
        (call(F.NEGATE, 2**63), "BIGINT"),
        (RawLiteral(Decimal("0.05")), "DECIMAL(2,2)"),
        (RawLiteral(None), "BOOLEAN"),
        (call(F.CAST, None, kind="DATE"), "DATE"),
    ],
)
def test_types_of_results_are_sparks(raw: RawExpression, kind: str) -> None:
    assert typed(raw).type.text == kind


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (call(F.EQ, s, 1), "EQ of STRING, INT"),
        (call(F.EQ, a, a), "EQ of ARRAY<INT>, ARRAY<INT>"),
        (call(F.LT, d, s), "LT of DATE, STRING"),
        (call(F.LT, d, "yesterday"), "'yesterday' is no date; write it as 2026-01-31"),
        (call(F.AND, b, i), "AND of BOOLEAN, INT"),
        (call(F.ADD, d, 1), "ADD of DATE, INT"),
        (call(F.ADD, w, 1), "ADD of DECIMAL(18,2), INT needs 19 digits, more than 18; cast to fewer digits"),
        (call(F.ADD, m, g), "ADD of DECIMAL(10,2), BIGINT needs 23 digits, more than 18; cast to fewer digits"),
        (call(F.NEGATE, s), "NEGATE of STRING"),
        (call(F.NEGATE, True), "NEGATE of BOOLEAN"),  # noqa: FBT003 - a literal
        (call(F.LIKE, s, s), "the pattern and the escape of LIKE are literal texts"),
        (call(F.LIKE, i, "1%"), "LIKE of INT, STRING"),
        (call(F.LIKE, s, "a\\b"), "in a pattern of LIKE only %, _ and \\ can follow \\"),
        (call(F.LIKE, s, "a\\"), "in a pattern of LIKE only %, _ and \\ can follow \\"),
        (call(F.LIKE, s, "a", "!!"), "the escape of LIKE is one character, not '!!'"),
        (call(F.SUBSTRING, s, i), "the position and the length of SUBSTRING are literal numbers"),
        (call(F.SUBSTRING, s, g), "SUBSTRING of STRING, BIGINT"),
        (call(F.UPPER, i), "UPPER of INT"),
        (call(F.LENGTH, i), "LENGTH of INT"),
        (call(F.CONCAT, s, i), "CONCAT of STRING, INT"),
        (call(F.COALESCE, s, i), "COALESCE of STRING, INT"),
        (call(F.YEAR, s), "YEAR of STRING"),
        (call(F.NOT, b, b), "NOT does not take 2 arguments"),
        (call(F.CAST, s), "CAST takes one argument and a type"),
        (call(F.CAST, x, kind="STRING"), "CAST of DOUBLE to STRING"),
        (call(F.CAST, x, kind="DECIMAL(4,2)"), "CAST of DOUBLE to DECIMAL(4,2)"),
        (call(F.CAST, t, kind="BIGINT"), "CAST of TIMESTAMP to BIGINT"),
        (call(F.CURRENT_TIMESTAMP), "current_timestamp() is allowed in defaults only"),
        (RawLiteral(2**63), "the number 9223372036854775808 is beyond BIGINT"),
        (RawLiteral(Decimal("1E-19")), "the number 1E-19 needs 19 digits, more than 18"),
        (RawLiteral([1, "a"]), "the elements of an ARRAY are of one type"),
    ],
)
def test_all_else_is_refused_by_name(raw: RawExpression, found: str) -> None:
    with pytest.raises(UnsupportedExpressionError) as raised:
        typed(raw)
    assert raised.value.found == found
    assert pickle.loads(pickle.dumps(raised.value)).expression == raised.value.expression  # noqa: S301 - its own


def test_names_are_found_in_any_case() -> None:
    assert typed(Name("TWO words")) == ColumnRef(COLUMNS["Two Words"][0], INT)
    with pytest.raises(UnknownColumnError, match="did you mean two words") as raised:
        typed(call(F.IS_NULL, Name("two_words")))
    assert raised.value.name == "two_words"


@pytest.mark.parametrize(
    ("raw", "wanted", "expression"),
    [
        (RawLiteral(0), "DECIMAL(10,2)", Literal(Decimal("0.00"), ColumnType.parse("DECIMAL(10,2)"))),
        (RawLiteral(1), "DOUBLE", Literal(1.0, DOUBLE)),
        (RawLiteral(Decimal("0.5")), "DOUBLE", Literal(0.5, DOUBLE)),
        (RawLiteral(Decimal("5.0")), "INT", Literal(5, INT)),
        (RawLiteral(7, BIGINT), "INT", Literal(7, INT)),
        (RawLiteral("2026-01-31"), "DATE", Literal(date(2026, 1, 31), ColumnType.parse("DATE"))),
        (RawLiteral("2026-01-31 12:00"), "TIMESTAMP", Literal(NOW, ColumnType.parse("TIMESTAMP"))),
        (RawLiteral([1]), "ARRAY<BIGINT>", Literal([1], ColumnType.parse("ARRAY<BIGINT>"))),
        (RawLiteral(None), "BINARY", Literal(None, ColumnType.parse("BINARY"))),
        (i, "INT", ColumnRef(2, INT)),
        (i, "BIGINT", Call(F.CAST, (ColumnRef(2, INT),), BIGINT)),
        (m, "DECIMAL(12,4)", Call(F.CAST, (ColumnRef(9, COLUMNS["m"][1]),), ColumnType.parse("DECIMAL(12,4)"))),
    ],
)
def test_a_value_is_widened_to_the_type_that_is_wanted(raw: RawExpression, wanted: str, expression: Expression) -> None:
    found = typed(raw, wanted)
    assert found == expression
    assert repr(found) == repr(expression)


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (g, "INT"),
        (m, "DECIMAL(9,2)"),
        (m, "DECIMAL(11,4)"),
        (i, "DECIMAL(11,2)"),
        (s, "DATE"),
        (RawLiteral("5"), "DECIMAL(5,2)"),
        (RawLiteral("5"), "INT"),
        (RawLiteral(2**31), "INT"),
        (RawLiteral(0.5), "DECIMAL(5,2)"),
        (RawLiteral(Decimal("0.005")), "DECIMAL(5,2)"),
        (RawLiteral(1), "STRING"),
        (RawLiteral(1), "BOOLEAN"),
    ],
)
def test_a_value_that_may_not_fit_is_refused(raw: RawExpression, wanted: str) -> None:
    with pytest.raises(UnsupportedExpressionError):
        typed(raw, wanted)


@given(
    left=st.none() | st.integers(-(2**31), 2**31 - 1),
    right=st.none() | st.integers(-5, 5),
    factor=st.sampled_from([F.ADD, F.SUBTRACT, F.MULTIPLY]),
)
def test_numbers_are_computed_exactly_or_not_at_all(left: int | None, right: int | None, factor: Function) -> None:
    exact = {F.ADD: int.__add__, F.SUBTRACT: int.__sub__, F.MULTIPLY: int.__mul__}[factor]
    expected = None if left is None or right is None else exact(left, right)
    raw = call(factor, i, order)
    if expected is None or -(2**31) <= expected < 2**31:
        assert valued(raw, i=left, order=right) == expected
    else:
        with pytest.raises(ExpressionFailedError, match="overflow"):
            valued(raw, i=left, order=right)


@given(
    rows=st.lists(
        st.tuples(st.none() | st.integers(-3, 3), st.none() | st.booleans(), st.none() | st.text(max_size=4))
    ),
    raw=st.sampled_from(
        [
            call(F.AND, call(F.NE, i, 0), call(F.GT, call(F.DIVIDE, 6, i), 2.0)),
            call(F.OR, call(F.OR, b, call(F.EQ, i, 0)), call(F.GT, call(F.DIVIDE, 6, i), 2.0)),
            call(F.COALESCE, call(F.CAST, b, kind="INT"), call(F.ADD, i, 1)),
            call(F.IN, i, 1, 2, None),
            call(F.BETWEEN, i, -1, call(F.LENGTH, s)),
            call(F.CONCAT, call(F.UPPER, s), call(F.SUBSTRING, s, -2, 1)),
            call(F.LIKE, s, "%a_"),
            call(F.MULTIPLY, call(F.CAST, i, kind="DECIMAL(5,2)"), Decimal("0.5")),
        ]
    ),
)
def test_a_batch_gives_what_its_rows_give(
    rows: list[tuple[int | None, bool | None, str | None]], raw: RawExpression
) -> None:
    expression, numbers = typed(raw), [COLUMNS[name][0] for name in "ibs"]
    columns = {
        number: pa.array([row[place] for row in rows], COLUMNS[NAMES[number]][1].arrow)
        for place, number in enumerate(numbers)
    }
    found = evaluate_batch(expression, columns, len(rows))
    assert found.type == expression.type.arrow
    assert found.to_pylist() == [evaluate_row(expression, dict(zip(numbers, row, strict=True))) for row in rows]


def test_an_operand_that_is_not_needed_does_not_fail() -> None:
    """As in Spark, on the rows where the first operand decides."""
    inverse = call(F.GT, call(F.DIVIDE, 1, i), 0)
    batch = {2: pa.array([0, 1, None, -1], pa.int32())}
    guarded = evaluate_batch(typed(call(F.AND, call(F.NE, i, 0), inverse)), batch, 4)
    assert guarded.to_pylist() == [False, True, None, False]
    assert evaluate_batch(typed(call(F.OR, call(F.EQ, i, 0), inverse)), batch, 4).to_pylist() == [
        True,
        True,
        None,
        False,
    ]
    assert valued(call(F.AND, False, call(F.GT, call(F.DIVIDE, 1, 0), 1))) is False  # noqa: FBT003 - a literal
    assert valued(call(F.COALESCE, i, call(F.CAST, "no number", kind="INT")), i=3) == 3
    assert valued(call(F.ADD, i, call(F.CAST, s, kind="INT")), i=None, s="no number") is None
    assert valued(call(F.DIVIDE, i, 0), i=None) is None
    with pytest.raises(ExpressionFailedError, match="divide by zero"):
        valued(call(F.OR, call(F.IS_NULL, i), inverse), i=0)


@pytest.mark.parametrize(
    ("raw", "row", "found"),
    [
        (call(F.DIVIDE, i, 0), {"i": 1}, "divide by zero"),
        (call(F.DIVIDE, m, 0), {"m": Decimal(1)}, "divide by zero"),
        (call(F.ABS, i), {"i": -(2**31)}, "overflow"),
        (call(F.CAST, s, kind="INT"), {"s": "ten"}, "the text 'ten' is no INT"),
        (call(F.CAST, g, kind="INT"), {"g": 2**31}, "2147483648"),
        (call(F.CAST, m, kind="DECIMAL(3,1)"), {"m": Decimal("99.95")}, "precision"),
    ],
)
def test_a_row_that_fails_says_why(raw: RawExpression, row: dict[str, Value], found: str) -> None:
    with pytest.raises(ExpressionFailedError) as raised:
        valued(raw, **row)
    assert found in raised.value.found


def test_constants_and_the_clock() -> None:
    now = resolve(call(F.CURRENT_TIMESTAMP), COLUMNS, clock=True)
    assert evaluate_row(now, {}, NOW) == NOW
    assert compiled(now)({}, 2, NOW).to_pylist() == [NOW, NOW]
    assert not is_constant(now)
    with pytest.raises(TypeError, match="time of current_timestamp"):
        evaluate_row(now, {})
    constant = typed(call(F.ADD, 1, call(F.LENGTH, "ab")))
    assert is_constant(constant)
    assert evaluate_batch(constant, {}, 3).to_pylist() == [3, 3, 3]
    assert len(evaluate_batch(constant, {}, 0)) == 0
    assert evaluate_row(typed([1, 2], "ARRAY<BIGINT>"), {}) == [1, 2]
    assert not is_constant(typed(i))


def test_values_of_a_row_are_canonical() -> None:
    assert repr(valued(call(F.COALESCE, t, None), t=NOW)) == repr(NOW)
    assert repr(valued(call(F.ADD, m, 1), m=Decimal("1.50"))) == repr(Decimal("2.50"))
    assert valued(a, a=[1, 2]) == [1, 2]


def test_columns_of_an_expression_can_be_replaced() -> None:
    sum_of_columns = typed(call(F.GT, call(F.ADD, i, order), 0))
    assert columns_of(sum_of_columns) == {2, COLUMNS["order"][0]}
    assert substitute(sum_of_columns, {99: 3}) is sum_of_columns
    moved = substitute(sum_of_columns, {2: 70})
    assert columns_of(moved) == {70, COLUMNS["order"][0]}
    assert expression_text(moved, NAMES) == "`column 70` + `order` > 0"
    constant = substitute(sum_of_columns, {2: Literal(5, INT), COLUMNS["order"][0]: Literal(-5, INT)})
    assert evaluate_row(constant, {}) is False


def test_types_are_found_anew_where_a_replaced_column_has_another() -> None:
    """So that a check goes on when its column was widened."""
    widened = substitute(typed(call(F.ADD, i, 2**31 - 1)), {2: ColumnRef(2, BIGINT)})
    assert widened.type == BIGINT
    assert evaluate_row(widened, {2: 1}) == 2**31
    with pytest.raises(UnsupportedExpressionError, match="ADD of STRING, INT"):
        substitute(widened, {2: ColumnRef(2, ColumnType.parse("STRING"))})
    assert substitute(typed(call(F.CAST, i, kind="BIGINT")), {2: ColumnRef(2, BIGINT)}) == ColumnRef(2, BIGINT)
