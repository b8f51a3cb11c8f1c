"""Expressions of SQL text become raw expressions; what Spark might read otherwise, or we not at all, is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from catalog.engine.schema_change.expressions import Name, RawCall, RawExpression, RawLiteral
from catalog.engine.schema_change.functions import Function
from catalog.engine.schema_change.sql import parse_expression
from catalog.engine.schema_change.types import ColumnType
from catalog.errors.tables import UnsupportedExpressionError, UnsupportedTypeError

INT, BIGINT, DOUBLE = map(ColumnType.parse, ("INT", "BIGINT", "DOUBLE"))
DATE, TIMESTAMP, MONEY = map(ColumnType.parse, ("DATE", "TIMESTAMP", "DECIMAL(10,2)"))
A, B, C = Name("a"), Name("b"), Name("c")
ONE, TWO = RawLiteral(1), RawLiteral(2)


def call(function: str, *arguments: RawExpression, of: ColumnType | None = None) -> RawCall:
    return RawCall(Function(function), arguments, of)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("`a b`", Name("a b")),
        ("1", ONE),
        ("-1", RawLiteral(-1)),
        ("1.50", RawLiteral(Decimal("1.50"))),
        ("- 1.5", RawLiteral(Decimal("-1.5"))),
        ("1e3", RawLiteral(1000.0)),
        ("9" * 50, RawLiteral(int("9" * 50))),
        ("1." + "9" * 50, RawLiteral(Decimal("1." + "9" * 50))),
        ("-1." + "9" * 50, RawLiteral(Decimal("-1." + "9" * 50))),
        ("1L", RawLiteral(1, BIGINT)),
        ("-9223372036854775808L", RawLiteral(-(2**63), BIGINT)),
        ("2D", RawLiteral(2.0, DOUBLE)),
        ("1.5BD", RawLiteral(Decimal("1.5"), ColumnType.parse("DECIMAL(2,1)"))),
        ("'a;b'", RawLiteral("a;b")),
        (r"'it\'s\n\\'", RawLiteral("it's\n\\")),
        ('"text"', RawLiteral("text")),
        ("''", RawLiteral("")),
        ("X'1fA0'", RawLiteral(b"\x1f\xa0")),
        ("TRUE", RawLiteral(value=True)),
        ("false", RawLiteral(value=False)),
        ("NULL", RawLiteral(None)),
        ("DATE '2026-01-31'", RawLiteral(date(2026, 1, 31), DATE)),
        ("TIMESTAMP '2026-01-31 12:00:00Z'", RawLiteral(datetime(2026, 1, 31, 12, tzinfo=UTC), TIMESTAMP)),
        ("a = 1", call("EQ", A, ONE)),
        ("a == 1", call("EQ", A, ONE)),
        ("a <> 1", call("NE", A, ONE)),
        ("a != 1", call("NE", A, ONE)),
        ("a < 1", call("LT", A, ONE)),
        ("a <= 1", call("LE", A, ONE)),
        ("a > 1", call("GT", A, ONE)),
        ("a >= 1", call("GE", A, ONE)),
        ("a AND b OR NOT c", call("OR", call("AND", A, B), call("NOT", C))),
        ("a AND (b OR c)", call("AND", A, call("OR", B, C))),
        ("!a", call("NOT", A)),
        ("NOT a = b", call("NOT", call("EQ", A, B))),
        ("a IS NULL", call("IS_NULL", A)),
        ("a IS NOT NULL", call("IS_NOT_NULL", A)),
        ("a IN (1, 2)", call("IN", A, ONE, TWO)),
        ("a NOT IN (1)", call("NOT", call("IN", A, ONE))),
        ("a BETWEEN 1 AND 2 AND b", call("AND", call("BETWEEN", A, ONE, TWO), B)),
        ("a NOT BETWEEN 1 AND 2", call("NOT", call("BETWEEN", A, ONE, TWO))),
        ("a LIKE 'x%'", call("LIKE", A, RawLiteral("x%"))),
        ("a NOT LIKE b", call("NOT", call("LIKE", A, B))),
        ("a LIKE b ESCAPE '!'", call("LIKE", A, B, RawLiteral("!"))),
        ("a NOT LIKE b ESCAPE '!'", call("NOT", call("LIKE", A, B, RawLiteral("!")))),
        ("a + b - c", call("SUBTRACT", call("ADD", A, B), C)),
        ("a + b * c / 2", call("ADD", A, call("DIVIDE", call("MULTIPLY", B, C), TWO))),
        ("-a", call("NEGATE", A)),
        ("a - -1", call("SUBTRACT", A, RawLiteral(-1))),
        ("length(a)", call("LENGTH", A)),
        ("LOWER(upper(Trim(a)))", call("LOWER", call("UPPER", call("TRIM", A)))),
        ("concat(a, b, 'x')", call("CONCAT", A, B, RawLiteral("x"))),
        ("a || b || c", call("CONCAT", call("CONCAT", A, B), C)),
        ("substring(a, 1)", call("SUBSTRING", A, ONE)),
        ("substring(a, 1, 2)", call("SUBSTRING", A, ONE, TWO)),
        ("coalesce(a, b, 1)", call("COALESCE", A, B, ONE)),
        ("abs(a)", call("ABS", A)),
        ("CAST(a AS DECIMAL(10, 2))", call("CAST", A, of=MONEY)),
        ("cast(a as integer)", call("CAST", A, of=INT)),
        ("cast(a as long)", call("CAST", A, of=BIGINT)),
        ("cast(a as array<string>)", call("CAST", A, of=ColumnType.parse("ARRAY<STRING>"))),
        ("cast(cast('1' as timestamp) as date)", call("CAST", call("CAST", RawLiteral("1"), of=TIMESTAMP), of=DATE)),
        ("CAST(1 AS BIGINT)", call("CAST", ONE, of=BIGINT)),
        ("year(a) + month(b) + day(c)", call("ADD", call("ADD", call("YEAR", A), call("MONTH", B)), call("DAY", C))),
        ("current_timestamp()", call("CURRENT_TIMESTAMP")),
        ("current_timestamp", call("CURRENT_TIMESTAMP")),
        ("((a))", A),
        (" a -- b\n /* c */ ", A),
        ("show > date", call("GT", Name("show"), Name("date"))),
        ("length = year", call("EQ", Name("length"), Name("year"))),
    ],
)
def test_each_function_and_literal_is_read(text: str, expected: RawExpression) -> None:
    read = parse_expression(text)
    assert read == expected
    assert repr(read) == repr(expected), "1, 1.0, TRUE and 1.00 are equal, and not the same"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "it is empty"),
        ("nvl(a, b)", "the function nvl at line 1, column 1"),
        ("a = substr(b, 1)", "the function substr at line 1, column 5"),
        ("`lower`(a)", "the function lower at"),
        ("now()", "the function now"),
        ("try_cast(a AS INT)", "the function try_cast"),
        ("int(a)", "the function int"),
        ("array(1, 2)", "the function array"),
        ("count(*)", "the function count"),
        ("if(a, b, c)", "the function if"),
        ("a % 2", "% at line 1, column 3"),
        ("a <=> b", "<=> at"),
        ("a::INT", ":: at"),
        ("a[0]", "[ at"),
        ("a & b", "& at"),
        ("a >> b", "SHIFTRIGHT"),
        (":a", ": at"),
        ("?", "? at"),
        ("@a", "@ at"),
        ("a -> b", "-> at"),
        ("t.a", "write a column without its table"),
        (".5", "a number with a digit before the point"),
        ("+a", "a sign +; leave it out"),
        ("a + +1", "a sign +; leave it out"),
        ("a DIV b", "DIV"),
        ("a IS TRUE", "IS TRUE"),
        ("a IS NOT UNKNOWN", "UNKNOWN at line 1, column 10"),
        ("a IS DISTINCT FROM b", "IS DISTINCT FROM"),
        ("a IN ()", "which lacks an argument"),
        ("a IN b", "field of"),
        ("a IN (1,)", "a comma without an argument"),
        ("coalesce(,a)", "a comma without an argument"),
        ("a IN (SELECT b)", "query of"),
        ("a BETWEEN SYMMETRIC 1 AND 2", "symmetric of"),
        ("a ILIKE 'x'", "ILIKE before a text"),
        ("a ILIKE b", "ILIKE"),
        ("a LIKE ANY ('x')", "the function ANY"),
        ("a RLIKE b", "RLIKE"),
        ("length(DISTINCT a)", "DISTINCT"),
        ("trim(BOTH FROM a)", "position of"),
        ("trim(a, b)", "expression of"),
        ("substring(a)", "which lacks an argument"),
        ("year()", "which lacks an argument"),
        ("IF a", "IF at line 1, column 1"),
        ("substring(a FROM 1)", "FROM at line 1, column 13"),
        ("current_timestamp(3)", "this of"),
        ("lower(a, b)", "it cannot be read near )"),
        ("concat()", "it cannot be read near )"),
        ("a +", "it cannot be read near + at line 1, column 3"),
        ("a AND\n  b c", "it cannot be read near c at line 2, column 5"),
        ("(a", "it cannot be read"),
        ("a AS b", "there is no B"),
        ("a AS INT", "AS at line 1, column 3"),
        ("CAST(a AS TIMESTAMP WITHOUT TIME ZONE)", "AS at line 1, column 8"),
        ("CASE WHEN a THEN 1 END", "CASE at line 1, column 1"),
        ("(a, b)", "(a, b)"),
        ("()", "()"),
        ("a; b", "; at"),
        ("INTERVAL 1 DAY", "INTERVAL"),
        ("INT '5'", "INT before a text"),
        ("DATE '2026-02-30'", "2026-02-30 is no DATE"),
        ("TIMESTAMP '2026-01-31 12:00:00'", "has no zone"),
        ("'it''s'", "two texts side by side; write a quote as \\' and join texts by concat"),
        ("'a' 'b'", "two texts side by side"),
        ("r'a'", "r'a' at"),
        ("0x1F", "0x1F; write bytes as X'1F'"),
        ("X'1'", "needs two digits for each byte"),
        ("1e400", "which no DOUBLE holds"),
        ("9" * 101, "a number of 101 digits"),
        ("9223372036854775808L", "out of the range of BIGINT"),
        ("a = b = c", "operators in a row; write parentheses"),
        ("a = b IN (TRUE)", "operators in a row; write parentheses"),
        ("a LIKE b = c", "operators in a row; write parentheses"),
        ("a = NOT b", "operators in a row; write parentheses"),
        ("a || b + c", "operators in a row; write parentheses"),
        ("'x", "has no end at line 1, column 1"),
        ("(" * 5000 + "a" + ")" * 5000, "nested too deeply"),
        ("NOT " * 5000 + "a", "nested too deeply"),
        (" AND ".join(["a"] * 5000), "nested"),
        (" AND ".join(["a"] * 103), "nested more than 100 levels deep"),
        ("``", "the name ``"),
    ],
)
def test_expressions_beyond_the_list_are_refused(text: str, found: str) -> None:
    with pytest.raises((UnsupportedExpressionError, UnsupportedTypeError)) as refused:
        parse_expression(text)
    assert found in refused.value.what


def test_a_cast_is_refused_with_the_type_as_written() -> None:
    with pytest.raises(UnsupportedTypeError, match=r"varchar\(3\) is no type of a column: use STRING instead"):
        parse_expression("cast(a as varchar(3))")
