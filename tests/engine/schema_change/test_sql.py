"""SQL text becomes statement values; whatever is not read is refused by name, and nothing is ignored."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catalog.engine.schema_change.expressions import Name, RawCall, RawExpression, RawLiteral
from catalog.engine.schema_change.functions import Function
from catalog.engine.schema_change.sql import parse_expression, parse_statement
from catalog.engine.schema_change.statements import (
    AddColumns,
    AddConstraint,
    ChangeType,
    CheckDefinition,
    ColumnDefinition,
    ConstraintDefinition,
    CreateIndex,
    CreateTable,
    DropColumns,
    DropConstraint,
    DropIndex,
    DropNotNull,
    DropTable,
    ForeignKeyDefinition,
    PrimaryKeyDefinition,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNotNull,
    Statement,
    UniqueDefinition,
)
from catalog.engine.schema_change.types import ColumnType
from catalog.errors.base import CatalogError
from catalog.errors.tables import (
    StatementSyntaxError,
    UnsupportedExpressionError,
    UnsupportedStatementError,
    UnsupportedTypeError,
)

INT, BIGINT, STRING = map(ColumnType.parse, ("INT", "BIGINT", "STRING"))
TIMESTAMP, MONEY = map(ColumnType.parse, ("TIMESTAMP", "DECIMAL(10,2)"))
A, B = Name("a"), Name("b")
ONE, TWO = RawLiteral(1), RawLiteral(2)


def call(function: str, *arguments: RawExpression) -> RawCall:
    return RawCall(Function(function), arguments)


POSITIVE = call("GT", A, RawLiteral(0))


# Statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE t (a INT)", CreateTable("t", (ColumnDefinition("a", INT),))),
        ("CREATE TABLE IF NOT EXISTS s.t (a INT)", CreateTable("s.t", (ColumnDefinition("a", INT),), (), True)),  # noqa: FBT003
        ("DROP TABLE t", DropTable("t")),
        ("DROP TABLE IF EXISTS s.t", DropTable("s.t", if_exists=True)),
        ("ALTER TABLE t RENAME TO u", RenameTable("t", "u")),
        ("ALTER TABLE s.t RENAME TO s.u", RenameTable("s.t", "s.u")),
        ("ALTER TABLE t RENAME COLUMN a TO b", RenameColumn("t", "a", "b")),
        ("ALTER TABLE t DROP COLUMN a", DropColumns("t", ("a",))),
        ("ALTER TABLE t DROP COLUMN a, b", DropColumns("t", ("a", "b"))),
        ("ALTER TABLE t DROP COLUMNS (a, b)", DropColumns("t", ("a", "b"))),
        ("ALTER TABLE t DROP COLUMN IF EXISTS a", DropColumns("t", ("a",), if_exists=True)),
        ("ALTER TABLE t DROP COLUMNS IF EXISTS (a, b)", DropColumns("t", ("a", "b"), if_exists=True)),
        ("ALTER TABLE t ALTER COLUMN a SET DEFAULT 1", SetDefault("t", "a", ONE)),
        ("ALTER TABLE t ALTER COLUMN a SET DEFAULT NULL", SetDefault("t", "a", RawLiteral(None))),
        ("ALTER TABLE t ALTER COLUMN a DROP DEFAULT", SetDefault("t", "a", None)),
        ("ALTER TABLE t ALTER COLUMN a SET NOT NULL", SetNotNull("t", "a")),
        ("ALTER TABLE t ALTER COLUMN a DROP NOT NULL", DropNotNull("t", "a")),
        ("ALTER TABLE t ALTER COLUMN a TYPE BIGINT", ChangeType("t", "a", BIGINT)),
        (
            "ALTER TABLE t ALTER COLUMN a TYPE DECIMAL(10, 2) USING a + 1",
            ChangeType("t", "a", MONEY, call("ADD", A, ONE)),
        ),
        ("ALTER TABLE t ALTER COLUMN a TYPE STRING USING (lower(a))", ChangeType("t", "a", STRING, call("LOWER", A))),
        ("ALTER TABLE t DROP CONSTRAINT n", DropConstraint("t", "n")),
        ("ALTER TABLE t DROP CONSTRAINT IF EXISTS n", DropConstraint("t", "n", if_exists=True)),
        ("CREATE INDEX n ON t (a)", CreateIndex("t", "n", ("a",))),
        ("CREATE INDEX n ON TABLE s.t (a, b)", CreateIndex("s.t", "n", ("a", "b"))),
        ("CREATE UNIQUE INDEX n ON t (a) INCLUDE (b, c)", CreateIndex("t", "n", ("a",), ("b", "c"), unique=True)),
        ("CREATE INDEX IF NOT EXISTS n ON t (a)", CreateIndex("t", "n", ("a",), if_not_exists=True)),
        ("DROP INDEX n ON t", DropIndex("t", "n")),
        ("DROP INDEX n ON TABLE s.t", DropIndex("s.t", "n")),
        ("DROP INDEX IF EXISTS n ON t", DropIndex("t", "n", if_exists=True)),
        ("DROP INDEX IF EXISTS n ON TABLE s.t", DropIndex("s.t", "n", if_exists=True)),
    ],
)
def test_each_form_of_statement_is_read(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PRIMARY KEY (a)", PrimaryKeyDefinition(("a",))),
        ("CONSTRAINT n PRIMARY KEY (a, b)", PrimaryKeyDefinition(("a", "b"), "n")),
        ("UNIQUE (a, b)", UniqueDefinition(("a", "b"))),
        ("CONSTRAINT n UNIQUE (a)", UniqueDefinition(("a",), "n")),
        ("CHECK (a > 0)", CheckDefinition(POSITIVE)),
        ("CONSTRAINT n CHECK ((a > 0))", CheckDefinition(POSITIVE, "n")),
        ("FOREIGN KEY (a) REFERENCES u", ForeignKeyDefinition(("a",), "u")),
        (
            "CONSTRAINT n FOREIGN KEY (a, b) REFERENCES s.u (x, y)",
            ForeignKeyDefinition(("a", "b"), "s.u", ("x", "y"), "n"),
        ),
        ("FOREIGN KEY (a) REFERENCES u (x) ON DELETE RESTRICT", ForeignKeyDefinition(("a",), "u", ("x",))),
        ("FOREIGN KEY (a) REFERENCES u ON UPDATE NO ACTION ON DELETE NO ACTION", ForeignKeyDefinition(("a",), "u")),
    ],
)
def test_constraints_stand_in_a_new_table_or_are_added(text: str, expected: ConstraintDefinition) -> None:
    assert parse_statement(f"ALTER TABLE t ADD {text}") == AddConstraint("t", expected)
    columns = (ColumnDefinition("a", INT), ColumnDefinition("b", INT))
    assert parse_statement(f"CREATE TABLE t (a INT, {text}, b INT)") == CreateTable("t", columns, (expected,))


@pytest.mark.parametrize(
    ("text", "column", "constraints"),
    [
        ("a INT NOT NULL", ColumnDefinition("a", INT, not_null=True), ()),
        ("a INT DEFAULT 1", ColumnDefinition("a", INT, default=ONE), ()),
        ("a INT DEFAULT (1) NOT NULL", ColumnDefinition("a", INT, not_null=True, default=ONE), ()),
        ("a INT NOT NULL DEFAULT 1 + 1", ColumnDefinition("a", INT, not_null=True, default=call("ADD", ONE, ONE)), ()),
        ("a BOOLEAN DEFAULT NULL IS NOT NULL NOT NULL", None, ()),
        ("a INT GENERATED ALWAYS AS (b + 1)", ColumnDefinition("a", INT, generated=call("ADD", B, ONE)), ()),
        ("a INT PRIMARY KEY", ColumnDefinition("a", INT), (PrimaryKeyDefinition(("a",)),)),
        ("a INT CONSTRAINT n PRIMARY KEY", ColumnDefinition("a", INT), (PrimaryKeyDefinition(("a",), "n"),)),
        ("a INT UNIQUE", ColumnDefinition("a", INT), (UniqueDefinition(("a",)),)),
        ("a INT CHECK (a > 0)", ColumnDefinition("a", INT), (CheckDefinition(POSITIVE),)),
        ("a INT REFERENCES u (x)", ColumnDefinition("a", INT), (ForeignKeyDefinition(("a",), "u", ("x",)),)),
        (
            "a INT DEFAULT 1 CONSTRAINT n UNIQUE REFERENCES u ON DELETE RESTRICT CHECK (a > 0) NOT NULL",
            ColumnDefinition("a", INT, not_null=True, default=ONE),
            (UniqueDefinition(("a",), "n"), ForeignKeyDefinition(("a",), "u"), CheckDefinition(POSITIVE)),
        ),
        ("a ARRAY<DECIMAL(10, 2)>", ColumnDefinition("a", ColumnType.parse("ARRAY<DECIMAL(10,2)>")), ()),
        ("a string default 'x'", ColumnDefinition("a", STRING, default=RawLiteral("x")), ()),
        ("a INT DEFAULT comment", ColumnDefinition("a", INT, default=Name("comment")), ()),
        ("a INT DEFAULT 1 + first", ColumnDefinition("a", INT, default=call("ADD", ONE, Name("first"))), ()),
        (
            "a TIMESTAMP DEFAULT current_timestamp()",
            ColumnDefinition("a", TIMESTAMP, default=call("CURRENT_TIMESTAMP")),
            (),
        ),
    ],
)
def test_columns_are_read_in_a_new_table_and_where_they_are_added(
    text: str, column: ColumnDefinition | None, constraints: tuple[ConstraintDefinition, ...]
) -> None:
    if column is None:
        default = call("IS_NOT_NULL", RawLiteral(None))
        column = ColumnDefinition("a", ColumnType.parse("BOOLEAN"), not_null=True, default=default)
    other = ColumnDefinition("z", INT)
    assert parse_statement(f"CREATE TABLE t ({text}, z INT)") == CreateTable("t", (column, other), constraints)
    assert parse_statement(f"ALTER TABLE t ADD COLUMN {text}") == AddColumns("t", (column,), constraints)
    assert parse_statement(f"ALTER TABLE t ADD COLUMN ({text})") == AddColumns("t", (column,), constraints)
    assert parse_statement(f"ALTER TABLE t ADD COLUMNS (z INT, {text})") == AddColumns(
        "t", (other, column), constraints
    )
    assert parse_statement(f"ALTER TABLE t ADD COLUMNS {text}, z INT") == AddColumns("t", (column, other), constraints)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b INT USING (a + 1)", ColumnDefinition("b", INT, fill=call("ADD", A, ONE))),
        ("b INT NOT NULL DEFAULT 2 USING (a)", ColumnDefinition("b", INT, not_null=True, default=TWO, fill=A)),
        ("b INT USING a NOT NULL DEFAULT 2", ColumnDefinition("b", INT, not_null=True, default=TWO, fill=A)),
    ],
)
def test_an_added_column_may_be_filled(text: str, expected: ColumnDefinition) -> None:
    """USING is ours: it gives the rows that are there a value; a new table has none, and refuses it."""
    assert parse_statement(f"ALTER TABLE t ADD COLUMN {text}") == AddColumns("t", (expected,))
    with pytest.raises(UnsupportedStatementError, match="USING"):
        parse_statement(f"CREATE TABLE t (a INT, {text})")


# Odd texts


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE t;",
        "  \n\tDROP\n TABLE\r\n t \n ; \n",
        "drop Table t",
        "DROP TABLE `t`",
        "/* a; b */ DROP /* /* nested */ ' */ TABLE -- TABLE u;\n t -- the end;",
        "DROP TABLE t ; -- nothing follows",
    ],
)
def test_case_space_and_comments_change_nothing(text: str) -> None:
    assert parse_statement(text) == DropTable("t")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("`order`", "order"),
        ("`check`", "check"),
        ("`a``b`", "a`b"),
        ("`a b;--c`", "a b;--c"),
        ("`PRIMARY KEY`", "PRIMARY KEY"),
        ("`a.b`", "a.b"),
        ("größe", "größe"),
        ("表", "表"),
        ("`😀`", "😀"),
        ("Mixed_1", "Mixed_1"),
        ("1a", "1a"),
        ("key", "key"),
        ("index", "index"),
        ("date", "date"),
        ("comment", "comment"),
        ("to", "to"),
        ("column", "column"),
    ],
)
def test_names_stay_as_written(written: str, name: str) -> None:
    read = parse_statement(f"CREATE TABLE t ({written} INT DEFAULT 1, CHECK ({written} > 0), UNIQUE ({written}))")
    check = CheckDefinition(call("GT", Name(name), RawLiteral(0)))
    column = ColumnDefinition(name, INT, default=ONE)
    assert read == CreateTable("t", (column,), (check, UniqueDefinition((name,))))
    assert parse_statement(f"ALTER TABLE t RENAME COLUMN {written} TO {written}") == RenameColumn("t", name, name)


def test_words_of_the_grammar_in_texts_and_names_are_no_grammar() -> None:
    text = "CREATE TABLE `if` (a STRING DEFAULT 'x); NOT NULL, /* -- `' NOT NULL, `not null` STRING DEFAULT \"a;'b\")"
    columns = (
        ColumnDefinition("a", STRING, not_null=True, default=RawLiteral("x); NOT NULL, /* -- `")),
        ColumnDefinition("not null", STRING, default=RawLiteral("a;'b")),
    )
    assert parse_statement(text) == CreateTable("if", columns)


def test_a_keyword_of_two_words_may_hold_a_comment() -> None:
    expected = AddConstraint("t", PrimaryKeyDefinition(("a",)))
    assert parse_statement("ALTER TABLE t ADD PRIMARY /* and */ KEY (a)") == expected
    assert parse_statement("ALTER TABLE t ADD primary\n  key (a)") == expected


# Refused statements


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("CREATE TABLE t (a INT) USING delta", "USING delta at line 1, column 24"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (a)", "PARTITIONED BY at"),
        ("CREATE TABLE t (a INT) CLUSTER BY (a)", "CLUSTER BY at"),
        ("CREATE TABLE t (a INT) CLUSTERED BY (a) INTO 4 BUCKETS", "CLUSTERED BY at"),
        ("CREATE TABLE t (a INT) OPTIONS (a = 1)", "OPTIONS at"),
        ("CREATE TABLE t (a INT) LOCATION 'x'", "LOCATION at"),
        ("CREATE TABLE t (a INT) TBLPROPERTIES ('a' = 'b')", "TBLPROPERTIES at"),
        ("CREATE TABLE t (a INT) COMMENT 'x'", "COMMENT at"),
        ("CREATE TABLE t (a INT) AS SELECT 1", "AS SELECT at"),
        ("CREATE TABLE t AS SELECT 1", "AS SELECT at"),
        ("CREATE TABLE t LIKE u", "LIKE u at"),
        ("CREATE TEMPORARY TABLE t (a INT)", "CREATE TEMPORARY at"),
        ("CREATE EXTERNAL TABLE t (a INT)", "CREATE EXTERNAL at"),
        ("CREATE OR REPLACE TABLE t (a INT)", "CREATE OR REPLACE at"),
        ("CREATE VIEW v AS SELECT 1", "CREATE VIEW at"),
        ("CREATE TABLE t (PRIMARY KEY (a))", "the table t without columns"),
        ("CREATE TABLE t (a INT COMMENT 'x')", "COMMENT at"),
        ("CREATE TABLE t (a INT DEFAULT 1 COMMENT 'x')", "COMMENT at"),
        ("CREATE TABLE t (a STRING COLLATE UTF8_LCASE)", "COLLATE UTF8_LCASE at"),
        ("CREATE TABLE t (a INT NULL)", "NULL at"),
        ("CREATE TABLE t (a INT GENERATED ALWAYS AS IDENTITY)", "GENERATED ALWAYS AS IDENTITY at"),
        ("CREATE TABLE t (a INT GENERATED BY DEFAULT AS IDENTITY)", "GENERATED BY DEFAULT AS IDENTITY at"),
        ("CREATE TABLE t (a INT GENERATED BY DEFAULT AS (b))", "GENERATED BY DEFAULT at"),
        ("CREATE TABLE t (a INT GENERATED ALWAYS AS (b) STORED)", "STORED at"),
        ("CREATE TABLE t (a INT AS (b))", "AS at"),
        ("CREATE TABLE t (a INT UNSIGNED)", "UNSIGNED at"),
        ("CREATE TABLE t (a TIMESTAMP WITHOUT TIME ZONE)", "WITHOUT TIME ZONE at"),
        ("CREATE TABLE t (a INT UNIQUE NOT ENFORCED)", "NOT ENFORCED at"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED)", "NOT ENFORCED at"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a) RELY)", "RELY at"),
        ("CREATE TABLE t (a INT PRIMARY KEY DESC)", "DESC at"),
        ("CREATE TABLE t (a INT, UNIQUE KEY (a))", "KEY at"),
        ("CREATE TABLE t (a INT, UNIQUE NULLS NOT DISTINCT (a))", "NULLS NOT at"),
        ("CREATE TABLE t (a INT CONSTRAINT n NOT NULL)", "NOT NULL at"),
        ("CREATE TABLE t (a INT NOT NULL NOT NULL)", "NOT NULL at line 1, column 32, the second of the column a"),
        ("CREATE TABLE t (a INT DEFAULT 1 DEFAULT 2)", "DEFAULT at line 1, column 33, the second of the column a"),
        ("CREATE TABLE t (a INT DEFAULT 1 GENERATED ALWAYS AS (b))", "DEFAULT or USING of the column a"),
        ("ALTER TABLE t ADD COLUMN a INT GENERATED ALWAYS AS (b) USING (c)", "DEFAULT or USING of the column a"),
        ("CREATE TABLE t (a INT REFERENCES u ON DELETE CASCADE)", "ON DELETE CASCADE at"),
        ("CREATE TABLE t (a INT REFERENCES u ON DELETE SET NULL)", "ON DELETE SET NULL at"),
        ("CREATE TABLE t (a INT REFERENCES u ON UPDATE CASCADE)", "ON UPDATE CASCADE at"),
        ("CREATE TABLE t (a INT REFERENCES u MATCH FULL)", "MATCH FULL at"),
        ("CREATE TABLE t (a INT REFERENCES u DEFERRABLE)", "DEFERRABLE at"),
        ("CREATE TABLE a.b.c (a INT)", "the name a.b.c; a table is named by"),
        ("CREATE TABLE `a.b` (a INT)", "the name `a.b`; no point stands"),
        ("DROP TABLE t PURGE", "PURGE at"),
        ("DROP TABLE t CASCADE", "CASCADE at"),
        ("DROP VIEW t", "DROP VIEW at"),
        (
            "ALTER TABLE IF EXISTS t RENAME TO u",
            "IF EXISTS at line 1, column 13, where the name of a table is expected",
        ),
        ("ALTER TABLE ONLY t RENAME TO u", "t RENAME at"),
        ("ALTER TABLE t RENAME a TO b", "RENAME a at"),
        ("ALTER TABLE t RENAME COLUMN IF EXISTS a TO b", "IF EXISTS at"),
        ("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')", "SET TBLPROPERTIES at"),
        ("ALTER TABLE t ADD a INT", "a INT at line 1, column 19, where COLUMN or a constraint is expected"),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT", "IF NOT EXISTS at"),
        ("ALTER TABLE t ADD COLUMN a INT AFTER b", "AFTER b at"),
        ("ALTER TABLE t ADD COLUMN a INT DEFAULT 1 FIRST", "FIRST at"),
        ("ALTER TABLE t ADD CONSTRAINT n CHECK (a > 0) NOT VALID", "NOT VALID at"),
        ("ALTER TABLE t ADD CONSTRAINT n UNIQUE (a) CHECK (a > 0)", "CHECK at"),
        ("ALTER TABLE t DROP COLUMN a CASCADE", "CASCADE at"),
        ("ALTER TABLE t DROP CONSTRAINT n CASCADE", "CASCADE at"),
        ("ALTER TABLE t DROP PRIMARY KEY", "DROP PRIMARY KEY at"),
        ("ALTER TABLE t ALTER COLUMN a COMMENT 'x'", "COMMENT at"),
        ("ALTER TABLE t ALTER COLUMN a SET DATA TYPE INT", "SET DATA TYPE at"),
        ("ALTER TABLE t ALTER COLUMN a TYPE STRING COLLATE x", "COLLATE x at"),
        ("ALTER TABLE t CHANGE COLUMN a b INT", "CHANGE COLUMN at"),
        ("CREATE INDEX n ON t (a DESC)", "DESC at"),
        ("CREATE INDEX n ON t (a ASC)", "ASC at"),
        ("CREATE INDEX n ON t (a NULLS FIRST)", "NULLS FIRST at"),
        ("CREATE INDEX n ON t USING btree (a)", "USING btree at"),
        ("CREATE INDEX n ON t (a) WHERE a > 0", "WHERE a at"),
        ("CREATE INDEX n ON t (a) OPTIONS (x = 1)", "OPTIONS at"),
        ("CREATE INDEX CONCURRENTLY n ON t (a)", "n ON at"),
        ("INSERT INTO t VALUES (1)", "INSERT INTO at line 1, column 1"),
        ("UPDATE t SET a = 1", "UPDATE t at"),
        ("DELETE FROM t", "DELETE FROM at"),
        ("MERGE INTO t USING u ON TRUE", "MERGE INTO at"),
        ("SELECT 1", "SELECT at"),
        ("SHOW TABLES", "SHOW TABLES at"),
        ("EXPLAIN DROP TABLE t", "EXPLAIN DROP at"),
        ("COMMENT ON TABLE t IS 'x'", "COMMENT ON at"),
        ("TRUNCATE TABLE t", "TRUNCATE TABLE at"),
        ("DROP TABLE t; DROP TABLE u", "more behind the first semicolon, at line 1, column 15; run one statement"),
        ("DROP TABLE t;;", "more behind the first semicolon"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(text: str, found: str) -> None:
    with pytest.raises(UnsupportedStatementError) as refused:
        parse_statement(text)
    assert found in refused.value.what
    assert pickle.loads(pickle.dumps(refused.value)).what == refused.value.what  # noqa: S301


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "it is empty"),
        (" -- nothing\n", "it is empty"),
        (";", "it is empty"),
        ("DROP TABLE", "it ends where the name of a table is expected"),
        ("DROP TABLE 't'", "'t' at line 1, column 12, where the name of a table is expected"),
        ("DROP TABLE ``", "`` at line 1, column 12, where the name of a table is expected"),
        ("DROP TABLE s.", "it ends where the name of a table is expected"),
        ("DROP TABLE a, b", ", at line 1, column 13, where the end of the statement is expected"),
        ("DROP INDEX n", "it ends where ON is expected"),
        ("DROP INDEX s.n ON t", ". at line 1, column 13, where ON is expected"),
        ("CREATE TABLE t", "it ends where ( is expected"),
        ("CREATE TABLE t ()", ") at line 1, column 17, where the name of a column is expected"),
        ("CREATE TABLE t (a INT,)", ") at line 1, column 23, where the name of a column is expected"),
        ("CREATE TABLE t (a INT", "it ends where a comma or ) is expected"),
        ("CREATE TABLE t (a)", ") at line 1, column 18, where a type is expected"),
        ("CREATE TABLE t (a INT DEFAULT)", ") at line 1, column 30, where the expression of DEFAULT is expected"),
        ("CREATE TABLE t (a INT DEFAULT NOT NULL)", "DEFAULT has no expression, at line 1, column 31"),
        ("CREATE TABLE t (a INT CHECK (a > 0)", "it ends where a comma or ) is expected"),
        ("CREATE TABLE t (a INT, CHECK ((a > 0)", "the parenthesis at line 1, column 30 is not closed"),
        ("CREATE TABLE t (a INT)\n)", ") at line 2, column 1, where the end of the statement is expected"),
        ("ALTER TABLE t ADD CONSTRAINT CHECK (a > 0)", "the name of a constraint is expected; write `CHECK` as a name"),
        ("ALTER TABLE t ADD COLUMN a INT, ADD COLUMN b INT", "ADD at line 1, column 33, where the name of a column is"),
        ("ALTER TABLE t ADD CONSTRAINT n FOREIGN KEY (a)", "it ends where REFERENCES is expected"),
        ("CREATE INDEX ON t (a)", "ON at line 1, column 14, where the name of an index is expected"),
        ("CREATE INDEX n ON t (lower(a))", "( at line 1, column 27, where a comma or ) is expected"),
        ("DROP TABLE `t", "has no end at line 1, column 12"),
        ("CREATE TABLE t (\n  a STRING DEFAULT 'x)", "has no end at line 2, column 20"),
        ("DROP TABLE t /* `x` 'y'", "has no end at line 1, column 14"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, found: str) -> None:
    with pytest.raises(StatementSyntaxError) as refused:
        parse_statement(text)
    assert found in refused.value.what
    assert refused.value.next == "correct it; `docs/tables.md` lists the forms of statements"


def test_a_refusal_shows_the_statement_and_is_never_long() -> None:
    with pytest.raises(UnsupportedStatementError) as refused:
        parse_statement("CREATE TABLE t (a INT)\n  PARTITIONED BY (a)")
    assert str(refused.value) == (
        "not supported: PARTITIONED BY at line 2, column 3, where the end of the statement is expected\n"
        "why:  the statement is CREATE TABLE t (a INT); PARTITIONED BY (a)\n"
        "next: use CREATE, DROP or ALTER TABLE, CREATE or DROP INDEX in the forms that `docs/tables.md` lists; rows "
        "are written by transactions and by `append`, `upsert` and `delete`"
    )
    with pytest.raises(UnsupportedStatementError) as refused:
        parse_statement("CREATE TABLE t (a INT) PARTITIONED BY (" + "a, " * 10_000 + "a)")
    assert len(refused.value.why) < 600


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("VARCHAR(5)", "use STRING instead"),
        ("STRUCT<a: INT>", "STRUCT"),
        ("DECIMAL(10 2)", "DECIMAL(10 2) is no type"),
        ("DECIMAL(40, 2)", "18 digits"),
        ("DECIMAL(" + "9" * 5000 + ")", "it cannot be read"),
        ("ARRAY<INT", "it cannot be read"),
        ("`INT`", "it cannot be read"),
        ("'INT'", "it cannot be read"),
    ],
)
def test_types_are_judged_by_the_type_of_columns(text: str, found: str) -> None:
    for statement in (f"CREATE TABLE t (a {text})", f"ALTER TABLE t ALTER COLUMN a TYPE {text}"):
        with pytest.raises(UnsupportedTypeError) as refused:
            parse_statement(statement)
        assert found in refused.value.what


def test_a_refused_expression_is_shown_alone() -> None:
    with pytest.raises(UnsupportedExpressionError) as refused:
        parse_statement("CREATE TABLE t (\n  a INT,\n  CHECK (a > nvl(b, 1))\n)")
    assert refused.value.expression == "a > nvl(b, 1)"
    assert refused.value.found == "the function nvl at line 3, column 14"


def test_sqlglot_is_loaded_by_the_first_text_only() -> None:
    """It takes half a second, which a process that reads no SQL does not spend."""
    program = (
        "import sys; from catalog.engine.schema_change.sql import parse_statement; assert 'sqlglot' not in sys.modules;"
        "parse_statement('DROP TABLE t'); assert 'sqlglot' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# Token soup

WORDS = """
    CREATE DROP ALTER TABLE INDEX UNIQUE IF NOT EXISTS ADD COLUMN COLUMNS RENAME TO SET DEFAULT NULL TYPE USING KEY
    CONSTRAINT PRIMARY FOREIGN REFERENCES CHECK ON DELETE RESTRICT INCLUDE GENERATED ALWAYS AS AND OR IN IS LIKE ESCAPE
    BETWEEN CAST INT DECIMAL ARRAY DATE TIMESTAMP TRUE lower coalesce concat trim substring year current_timestamp nvl
    CASE WHEN END INTERVAL SELECT SHOW a b `c` `` `d.e` 1 2.5 1e3 1L 1.5BD ² 'x' '\\' "y" X'1F' r'z' ( ) ( ) , , . ;
    lower( coalesce( year( cast( + - * / < > = <> || % ! :: ? @ $ { } [ ] -> => \\ ~ /* */ -- \ufeff \0 é 😀 ' ` "
"""


@settings(max_examples=400, deadline=None)
@example(["a", "IN", "1"])
@given(st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=25))
def test_soup_of_tokens_is_read_or_refused(words: list[str]) -> None:
    for begin in ("", "ALTER TABLE t ADD COLUMN a INT DEFAULT", "CREATE TABLE t (a INT, CHECK ("):
        text = " ".join((begin, *words))
        for parse in (parse_statement, parse_expression):
            try:
                parse(text)
            except CatalogError as refused:
                assert refused.what  # noqa: PT017 - either is right


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_statement, parse_expression):
        try:
            parse(text)
        except CatalogError as refused:
            assert refused.what  # noqa: PT017 - either is right
