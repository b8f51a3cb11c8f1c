"""Statements of SQL as text: what is one, what it names, and that only those which read are let through."""

from __future__ import annotations

import pickle
import re

import pytest

from catalog.engine.spark.sql_statement import is_blank, parse_statement, split_statements
from catalog.errors import CatalogError, StatementError, StatementRefusedError

READING = [
    "SELECT 1",
    "  select 1 ; ",
    "-- first\nSELECT 1",
    "/* a /* nested */ comment */ SELECT 1",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "FROM role SELECT name",
    "FROM role |> WHERE name = 'DELETE FROM role'",
    "(SELECT 1) UNION (SELECT 2)",
    "VALUES (1), (2)",
    "TABLE role",
    "SHOW TABLES",
    "DESCRIBE role",
    "EXPLAIN SELECT 1",
    "WITH x AS (SELECT 'INSERT INTO role' AS t) SELECT t FROM x -- MERGE INTO role",
    "WITH x AS (SELECT 1 AS `delete`) SELECT `delete` FROM x",
    "SELECT /*+ BROADCAST(r) */ r.name FROM role r JOIN item USING (id)",
    "SELECT transform(array(1), x -> x + 1)",
    "SELECT 'reflect(', `using` FROM role -- USING 'x'",
    "EXPLAIN FORMATTED SELECT 1",
]
WRITING = {
    "INSERT INTO role VALUES (1)": "INSERT",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT 1": "INSERT",
    "WITH x AS (SELECT 1) INSERT INTO role SELECT * FROM x": "INSERT",
    "WITH x AS (SELECT 1) /* now */ insert\noverwrite DIRECTORY '/tmp/x' USING csv SELECT * FROM x": "INSERT",
    "FROM role INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT name": "INSERT",
    "WITH x AS (SELECT 1) DELETE FROM role": "DELETE",
    "WITH x AS (SELECT 1) UPDATE role SET name = 'x'": "UPDATE",
    "WITH x AS (SELECT 1) MERGE INTO role USING x ON true WHEN MATCHED THEN DELETE": "MERGE",
    "FROM role /* /*+ */ INSERT OVERWRITE DIRECTORY 'x' USING csv SELECT id -- */": "INSERT",
    "FROM role /* /*+ */ INSERT INTO x SELECT id /* */": "INSERT",
    "FROM role -- x\rINSERT INTO x SELECT id": "INSERT",
    "(WITH x AS (SELECT 1) INSERT INTO role SELECT * FROM x)": "INSERT",
    "EXPLAIN INSERT INTO role VALUES (1)": "EXPLAIN INSERT",
    "EXPLAIN EXTENDED DROP TABLE role": "EXPLAIN DROP",
    "SELECT TRANSFORM(name) USING 'sh -c id' FROM role": "USING",
    "FROM role MAP name USING 'sh -c id' AS x": "USING",
    "FROM role REDUCE name USING /* ( */ 'sh -c id'": "USING",
    "SELECT reflect('java.lang.System', 'exit', 1)": "REFLECT",
    "SELECT `Java_Method` /* x */ ('java.lang.System', 'exit', 1)": "JAVA_METHOD",
    "SELECT system.builtin.try_reflect('java.lang.System', 'exit', 1)": "TRY_REFLECT",
    "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'exit', 1)": "IDENTIFIER",
    "SELECT * FROM IDENTIFIER('csv.`/etc/passwd`')": "IDENTIFIER",
    "SELECT input_file_name() FROM role": "INPUT_FILE_NAME",
    "SELECT $$'$$, reflect('a', 'b') -- '": "$",
    "SELECT ${env:HOME}": "$",
    "EXECUTE IMMEDIATE 'DROP TABLE role'": "EXECUTE",
    "CALL system.run()": "CALL",
    "DECLARE x = 1": "DECLARE",
    "CREATE TABLE x (a INT)": "CREATE",
    "CREATE OR REPLACE TEMP VIEW role AS SELECT 1": "CREATE",
    "DROP VIEW role": "DROP",
    "ALTER VIEW role AS SELECT 1": "ALTER",
    "TRUNCATE TABLE role": "TRUNCATE",
    "CACHE TABLE role": "CACHE",
    "SET spark.sql.ansi.enabled = false": "SET",
    "ADD JAR '/tmp/x.jar'": "ADD",
    "BEGIN SELECT 1; END": "BEGIN",
    "/* SELECT */ DROP TABLE role": "DROP",
    "'SELECT'": "'SELECT'",
}


@pytest.mark.parametrize("text", READING)
def test_what_reads_is_let_through(text: str) -> None:
    """As it stands, but for the semicolon: positions in errors of Spark are those that were typed."""
    assert parse_statement(text).text == text.strip().removesuffix(";").strip()


@pytest.mark.parametrize("text", WRITING)
def test_what_writes_is_refused_by_its_word(text: str) -> None:
    """Wherever the word stands, and however it is written."""
    if text.startswith("BEGIN"):
        text = text.replace(";", "")
    with pytest.raises(StatementRefusedError) as refused:
        parse_statement(text)
    assert refused.value.word.upper() == WRITING.get(text, "BEGIN")
    assert refused.value.what.endswith(" is refused")
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)  # noqa: S301


def test_spark_gets_no_comment_to_see_otherwise() -> None:
    """Spaces stand for comments, so that places in errors stay; a hint is none."""
    text = "/* a /*+ */SELECT /*+ X */ 1 -- b \\\n c\n, '-- d' /* /* e */ */, 2"
    statement = parse_statement(text)
    assert statement.text == text
    assert re.sub(r" +", " ", statement.sent) == " SELECT /*+ X */ 1 \n \n, '-- d' , 2"
    assert len(statement.sent) == len(text)
    assert all(sent in {own, " "} for own, sent in zip(text, statement.sent, strict=True))


def test_a_statement_cannot_leave_the_parentheses_around_it() -> None:
    """In which it is given to a server."""
    with pytest.raises(StatementError, match="closes nothing"):
        parse_statement("SELECT 1) INSERT INTO role (SELECT 1")


def test_a_slip_is_told_from_a_write() -> None:
    """By the word that was probably meant."""
    with pytest.raises(StatementRefusedError, match="did you mean SELECT") as refused:
        parse_statement("selct 1")
    assert refused.value.meant == "SELECT"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no statement"),
        (" \n ", "no statement"),
        (";;", "no statement"),
        ("-- nothing", "no statement"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("SELECT 'x", "' is not closed"),
        ('SELECT "x', '" is not closed'),
        ("SELECT `x", "` is not closed"),
        ("SELECT /* x", r"/\* is not closed"),
        ("SELECT '\udcff'", "is no text"),
        ("SELECT 'x\\'", "' is not closed"),
    ],
)
def test_what_is_not_one_statement_is_refused(text: str, said: str) -> None:
    """Before anything is asked."""
    with pytest.raises(StatementError, match=said) as refused:
        parse_statement(text)
    assert isinstance(refused.value, CatalogError)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)  # noqa: S301


def test_only_a_semicolon_of_its_own_ends_a_statement() -> None:
    """None in quotes or comments does."""
    text = "SELECT ';', \"a;b\", `c;d`, r'\\', 'it''s;' -- ;\n/* ; */ FROM x; SELECT 2;\n SELECT"
    found, rest = split_statements(text)
    assert [own.strip()[-6:] for own in found] == ["FROM x", "LECT 2"]
    assert rest == "\n SELECT"
    assert is_blank(" -- x\n/* y */")
    assert not is_blank("'")


def test_a_statement_names_all_that_it_may_refer_to() -> None:
    """In any case and any quotes; a word too many costs a view, one too few an answer."""
    statement = parse_statement("SELECT r.name FROM Role r JOIN `schema` USING (id) WHERE x = 'cluster'")
    assert statement.named(["role", "schema", "cluster", "item"]) == ["role", "schema", "cluster"]
