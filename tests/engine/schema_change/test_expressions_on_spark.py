"""Each function, on generated values, gives what Spark SQL gives in ANSI mode, and fails where Spark fails.

All expressions of a function are columns of one query, over the text that `expression_text` writes. Where a row may
fail, the query asks for Spark's `try_…`, which is NULL for such a row.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

from catalog.engine.schema_change.evaluation import evaluate_batch, evaluate_row
from catalog.engine.schema_change.expressions import (
    Call,
    Expression,
    Function,
    Name,
    RawCall,
    RawExpression,
    RawLiteral,
    columns_of,
    expression_text,
    resolve,
)
from catalog.engine.schema_change.functions import COMPARISONS
from catalog.engine.schema_change.types import ColumnType, TypeName, Value
from catalog.errors.tables import ExpressionFailedError
from tests.engine.spark.conftest import spark

__all__ = ["spark"]

pytestmark = pytest.mark.spark

ROWS = 300
NULL_SHARE = 0.1
INT_END, BIGINT_END = 2**31, 2**63
TYPES = {
    **dict.fromkeys("bc", "BOOLEAN"),
    **dict.fromkeys("ij", "INT"),
    **dict.fromkeys("gn", "BIGINT"),
    **dict.fromkeys("xy", "DOUBLE"),
    **dict.fromkeys("spq", "STRING"),
    **dict.fromkeys("vw", "BINARY"),
    **dict.fromkeys("de", "DATE"),
    **dict.fromkeys("tu", "TIMESTAMP"),
    "m": "DECIMAL(10,2)",
    "k": "DECIMAL(4,2)",
    "o": "DECIMAL(18,8)",
}
COLUMNS = {name: (number, ColumnType.parse(text)) for number, (name, text) in enumerate(TYPES.items(), 2)}
NAMES = {number: name for name, (number, _) in COLUMNS.items()}
NUMERALS = COLUMNS["q"][0]
"""The column whose texts may be numbers, dates and the like."""
CHARACTERS = "aAbzZ09 _%\\.*'\"\n\t\x00\x7fäßÉİ\u0131Σ\u03c3ς\u017fǅŉﬁ€ŁÅ漢𝔸😀e\u0301"
TEXTS = (
    *(
        "1",
        "-1",
        "+7",
        " 12 ",
        "\t3\n",
        "0012",
        "",
        "-",
        "1.5",
        ".5",
        "5.",
        "1e3",
        "-2.5E-2",
        "1_0",
        "0x1F",
        "abc",
        "1 2",
    ),
    *("2147483647", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808", "99.995", "0.004999"),
    *("true", "F", " yes", "N", "1d", "2.5f", "NaN", "-Infinity", "inf", "\x7f4", "12345678.123456789", "20200101"),
    *("2020-02-29", "2021-02-29", "2020-2-3", "2020", "2020-05", " 2020-01-01 ", "2020-01-01T12", "2020-01-01 x"),
    *("2020-13-01", "2020-01-01 12:34", "2020-01-01 12:34:56", "2020-01-01T12:34:56.5Z", "2020-01-01 24:00:00"),
    *("2020-01-01 12:34:56.123456+01:30", "1969-12-31 23:59:59.999999 UTC"),
)
OUR_FAILURES = {"2020-01-01T12"}
"""Texts that only Spark reads as a timestamp, as `casts` documents."""
F = Function
Argument = RawExpression | Value
Row = dict[int, Value]


def call(function: Function, *arguments: Argument, kind: str | None = None) -> RawExpression:
    raw = (one if isinstance(one, Name | RawLiteral | RawCall) else RawLiteral(one) for one in arguments)
    return RawCall(function, tuple(raw), ColumnType.parse(kind) if kind else None)


def calls(function: Function, *all_arguments: tuple[Argument, ...]) -> list[RawExpression]:
    return [call(function, *arguments) for arguments in all_arguments]


def casts(argument: str, *kinds: str) -> list[RawExpression]:
    return [call(F.CAST, Name(argument), kind=kind) for kind in kinds]


b, c, i, j, g, n, x, y, s, p, q, v, w, d, e, t, u, m, k, o = map(Name, TYPES)
PAIRS: list[tuple[Argument, ...]] = [
    *((b, c), (i, j), (i, g), (g, n), (x, y), (i, x), (g, x), (m, x), (s, p), (v, w), (d, e), (t, u), (d, t), (m, k)),
    *((m, o), (m, i), (k, g), (k, 12), (k, Decimal("1.5")), (i, 1), (x, 1), (x, Decimal("0.1")), (d, "2020-01-01")),
    *((t, "2020-01-01"), (s, "a"), (i, None), (x, math.nan)),
]
PRODUCTS: list[tuple[Argument, ...]] = [
    *((i, j), (i, g), (g, n), (x, y), (i, x), (g, x), (m, x), (k, k), (m, k), (m, 3), (k, Decimal("0.005")), (i, 1)),
    *((g, 1), (2, i), (i, None)),
]
PLACES: list[tuple[Argument, ...]] = [
    *((1,), (0,), (3,), (-2,), (-9,), (1, 2), (0, 2), (2, 3), (-3, 2), (-9, 8), (-9, 2), (2, 0), (2, -1)),
    *((2, INT_END - 1), (-2, INT_END - 1), (INT_END - 1, 1)),
]
PATTERNS = [
    "",
    "%",
    "_",
    "a%",
    "%a",
    "%a%",
    "_a%",
    "a_b",
    "%\\%%",
    "\\_%",
    "a%b%",
    "%\n%",
    "__",
    "%.%",
    "%\\\\%",
    "ä%",
    "%😀",
]
INVERSE = call(F.GT, call(F.DIVIDE, 1, i), 0.1)
"""It fails where i is 0."""
CASES: dict[Function, list[RawExpression]] = {
    **{function: calls(function, *PAIRS) for function in COMPARISONS},
    F.AND: calls(F.AND, (b, c), (b, None), (call(F.NE, i, 0), INVERSE)),
    F.OR: calls(F.OR, (b, c), (b, None), (call(F.EQ, i, 0), INVERSE)),
    F.NOT: calls(F.NOT, (b,), (call(F.GT, x, y),)),
    F.IS_NULL: [call(F.IS_NULL, Name(name)) for name in TYPES],
    F.IS_NOT_NULL: [call(F.IS_NOT_NULL, Name(name)) for name in TYPES],
    F.IN: [
        *calls(F.IN, (i, 1, -1, 0), (i, 1, None), (i, j, g), (x, 0, math.nan), (s, "a", "", "ß"), (v, b"", b"a")),
        *calls(F.IN, (k, 1, Decimal("0.50")), (d, "2020-02-29", "1970-01-01"), (m, i, x), (m, 10**10, k), (b, b)),
    ],
    F.BETWEEN: [
        *calls(F.BETWEEN, (i, j, g), (x, -1, y), (d, "1999-12-31", e), (s, "A", p), (m, 0, o), (t, d, None)),
    ],
    F.ADD: calls(F.ADD, *PRODUCTS, (m, i)),
    F.SUBTRACT: calls(F.SUBTRACT, *PRODUCTS, (m, i)),
    F.MULTIPLY: calls(F.MULTIPLY, *PRODUCTS),
    F.DIVIDE: [
        *calls(F.DIVIDE, (i, j), (g, n), (x, y), (i, x), (m, x), (k, k), (m, 3), (m, 7), (k, Decimal("0.3")), (100, k)),
    ],
    F.NEGATE: calls(F.NEGATE, (i,), (g,), (x,), (m,), (o,)),
    F.ABS: calls(F.ABS, (i,), (g,), (x,), (m,), (o,)),
    F.LIKE: [*(call(F.LIKE, s, one) for one in PATTERNS), *calls(F.LIKE, (s, "%!%%", "!"), (s, "_%%_", "%"))],
    F.LENGTH: calls(F.LENGTH, (s,), (v,), (q,)),
    F.LOWER: calls(F.LOWER, (s,), (q,)),
    F.UPPER: calls(F.UPPER, (s,), (q,)),
    F.TRIM: calls(F.TRIM, (s,), (q,)),
    F.CONCAT: calls(F.CONCAT, (s,), (s, p, "-"), (v, w), (s, None)),
    F.SUBSTRING: [call(F.SUBSTRING, s, *places) for places in PLACES],
    F.COALESCE: calls(F.COALESCE, (i, g), (s, p, "none"), (m, k, 0), (i, x), (d, t), (b, None, c), (v, w)),
    F.CAST: [
        *casts("b", "INT", "BIGINT", "STRING"),
        *casts("i", "BOOLEAN", "BIGINT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(18,4)", "STRING"),
        *casts("g", "BOOLEAN", "INT", "DOUBLE", "DECIMAL(18,0)", "DECIMAL(18,9)", "STRING"),
        *casts("x", "INT", "BIGINT"),
        *casts("m", "INT", "BIGINT", "DOUBLE", "DECIMAL(4,1)", "DECIMAL(18,6)", "DECIMAL(9,0)", "STRING"),
        *casts("o", "INT", "DOUBLE", "DECIMAL(12,3)", "STRING"),
        *casts("d", "TIMESTAMP", "STRING"),
        *casts("t", "DATE", "STRING"),
        *casts("q", "BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)", "DATE", "TIMESTAMP", "BINARY"),
    ],
    F.YEAR: calls(F.YEAR, (d,), (t,)),
    F.MONTH: calls(F.MONTH, (d,), (t,)),
    F.DAY: calls(F.DAY, (d,), (t,)),
}
TRIED = {F.ADD: "try_add", F.SUBTRACT: "try_subtract", F.MULTIPLY: "try_multiply", F.DIVIDE: "try_divide"}
LOWEST = {"INT": "-2147483648", "BIGINT": "-9223372036854775808L"}


@pytest.mark.parametrize("function", [function for function in Function if function is not F.CURRENT_TIMESTAMP])
def test_a_function_gives_what_spark_gives(ansi_session: SparkSession, function: Function) -> None:
    """On all rows, one by one and as a batch; where Spark fails, this fails too."""
    rows = generated_rows(random.Random(function))  # noqa: S311 - the same rows in every run
    expressions = [resolve(raw, COLUMNS) for raw in CASES[function]]
    table = pa.table({name: column(rows, number) for number, name in NAMES.items()})
    selected = [f"{tried(one)} AS r{number}" for number, one in enumerate(expressions)]
    answers = ansi_session.createDataFrame(table).selectExpr(*selected).toArrow()
    differences = [
        f"{expression_text(one, NAMES)} of {shown(one, row)}: {ours!r}, and in Spark {theirs!r}"
        for one, answer in zip(expressions, answers.columns, strict=True)
        for row, ours, theirs in zip(rows, evaluated(one, rows), answer.to_pylist(), strict=True)
        if not same(ours, theirs) and not (one.type.text == "TIMESTAMP" and row[NUMERALS] in OUR_FAILURES)
    ]
    assert not differences, "\n".join([f"{len(differences)} differences:", *differences[:20]])
    assert answers.schema.types == [one.type.arrow for one in expressions]


def test_spark_is_in_ansi_mode(ansi_session: SparkSession) -> None:
    """The session that the others compare with fails where a row fails."""
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        ansi_session.sql("SELECT 1 / 0").collect()


@pytest.fixture(scope="module")
def ansi_session(spark: SparkSession) -> Iterator[SparkSession]:
    settings = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def tried(expression: Expression) -> str:
    """The text of an expression, with NULL for a row that fails."""
    text = expression_text(expression, NAMES)
    if not isinstance(expression, Call):
        return text
    inside = [expression_text(one, NAMES) for one in expression.arguments]
    match expression.function:
        case F.CAST:
            return f"try_{text}"
        case F.NEGATE | F.ABS if expression.type.text in LOWEST:
            return f"if({inside[0]} = {LOWEST[expression.type.text]}, NULL, {text})"
        case function if function in TRIED:
            return f"{TRIED[function]}({', '.join(inside)})"
        case _:
            return text


def evaluated(expression: Expression, rows: list[Row]) -> list[Value]:
    """The values of all rows, NULL where one fails; those that do not are evaluated once more, as one batch."""
    values: dict[int, Value] = {}
    for number, row in enumerate(rows):
        with suppress(ExpressionFailedError):
            values[number] = evaluate_row(expression, row)
    whole = [rows[number] for number in values]
    batch = evaluate_batch(expression, {number: column(whole, number) for number in NAMES}, len(whole))
    assert batch.type == expression.type.arrow
    assert all(map(same, values.values(), batch.to_pylist()))
    return [values.get(number) for number in range(len(rows))]


def same(ours: Value, theirs: Value) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return repr(ours) == repr(theirs)  # tells zeros apart, and no NaN
    return type(ours) is type(theirs) and ours == theirs


def shown(expression: Expression, row: Row) -> str:
    return ", ".join(f"{NAMES[number]} = {row[number]!r}" for number in sorted(columns_of(expression)))


def column(rows: list[Row], number: int) -> pa.Array:
    return pa.array([row[number] for row in rows], COLUMNS[NAMES[number]][1].arrow)


def generated_rows(chance: random.Random) -> list[Row]:
    return [
        {
            number: None if chance.random() < NULL_SHARE else value(chance, kind, name)
            for name, (number, kind) in COLUMNS.items()
        }
        for _ in range(ROWS)
    ]


def value(chance: random.Random, kind: ColumnType, name: str) -> Value:
    if name == "q":
        return chance.choice(TEXTS)
    return MAKERS[kind.name](chance, kind)


def whole_number(chance: random.Random, kind: ColumnType) -> Value:
    end = INT_END if kind.name is TypeName.INT else BIGINT_END
    edges = [0, 1, -1, 2, 10, end - 1, -end, end // 2, 2**53 % end, 2**53 % end + 1]
    return chance.choice([*edges, chance.randrange(-end, end), chance.randrange(-20, 20)])


def decimal(chance: random.Random, kind: ColumnType) -> Value:
    end = 10**kind.precision
    return kind.from_stored(chance.choice([0, 1, -1, end - 1, 1 - end, 50, chance.randrange(1 - end, end)]))


def double(chance: random.Random, _kind: ColumnType) -> Value:
    edges = [0.0, -0.0, 1.0, -1.5, 0.1, 0.5, math.nan, math.inf, -math.inf, 1e300, 5e-324, 2.0**53, 2.0**63, -(2.0**63)]
    near_int = [2147483647.9, -2147483648.9, 2147483648.0, 9.223372036854775e18]
    return chance.choice([*edges, *near_int, chance.uniform(-100, 100)])


def text(chance: random.Random, _kind: ColumnType) -> Value:
    return "".join(chance.choices(CHARACTERS, k=chance.randrange(7)))


def moment(chance: random.Random, _kind: ColumnType) -> datetime:
    edges = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)]
    near = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(-(10**16), 10**15))
    return chance.choice([*edges, near, near.replace(microsecond=0), near.replace(microsecond=500_000)])


def day(chance: random.Random, kind: ColumnType) -> Value:
    return chance.choice([moment(chance, kind).date(), date(2020, 2, 29), date(2020, 1, 1)])


MAKERS: dict[TypeName, Callable[[random.Random, ColumnType], Value]] = {
    TypeName.BOOLEAN: lambda chance, _kind: chance.choice([True, False]),
    TypeName.INT: whole_number,
    TypeName.BIGINT: whole_number,
    TypeName.DOUBLE: double,
    TypeName.STRING: text,
    TypeName.BINARY: lambda chance, _kind: chance.randbytes(chance.randrange(3)),
    TypeName.DATE: day,
    TypeName.TIMESTAMP: moment,
    TypeName.DECIMAL: decimal,
}
