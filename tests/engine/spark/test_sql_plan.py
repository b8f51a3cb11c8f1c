"""Plans of Spark: only those that read the relations of a store are run, by a session that could do nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from catalog.engine.spark.session import own_session
from catalog.engine.spark.sql_plan import make_read_only, require_own_plan_text, require_read_plan
from catalog.engine.spark.sql_query import query
from catalog.engine.spark.sql_statement import Statement, parse_statement
from catalog.errors import StatementError, StatementRefusedError

RELATIONS = ("role", "item")
READING = [
    "SELECT r.name, count(*) FROM role r JOIN item i USING (id) GROUP BY 1 HAVING count(*) > 0 LIMIT 3 OFFSET 0",
    "SELECT name FROM role WHERE id IN (SELECT id FROM item) ORDER BY 1 DESC",
    "WITH x AS (SELECT 1 AS a), y(b) AS (TABLE x) SELECT /*+ BROADCAST(y) */ * FROM x, y WHERE EXISTS (SELECT 1)",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t",
    "SELECT * FROM VALUES (1, 'x'), (2 + 0, 'y') AS t(a, b)",
    "SELECT * FROM role TABLESAMPLE (50 PERCENT)",
    "SELECT sum(id) OVER w FROM role WINDOW w AS (PARTITION BY name ORDER BY id)",
    "SELECT * FROM role PIVOT (count(*) FOR name IN ('a', 'b'))",
    "SELECT * FROM role UNPIVOT (v FOR k IN (id))",
    "SELECT name, e FROM role LATERAL VIEW OUTER explode(array(1, 2)) t AS e",
    "SELECT * FROM role, LATERAL (SELECT role.id + 1)",
    "SELECT * FROM range(10) UNION ALL SELECT * FROM explode(array(1)) EXCEPT SELECT 1 INTERSECT SELECT 1",
    "FROM role |> WHERE id > 0 |> AGGREGATE count(*) GROUP BY name |> ORDER BY name |> LIMIT 1",
    "SELECT transform(array(1, 2), x -> x + 1), CASE WHEN id = 1 THEN 'a' END, id::string, * EXCEPT (id) FROM role",
    "SELECT DISTINCT name FROM role DISTRIBUTE BY name SORT BY name",
    "SELECT name, GROUPING(name) FROM role GROUP BY CUBE(name)",
    "SELECT count(*) FILTER (WHERE id > 1), percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM role",
    "SELECT to_json(struct(*)), from_json('{}', 'a INT'), date_trunc('day', now()), uuid(), current_user FROM role",
    "EXPLAIN SELECT * FROM role",
    "DESCRIBE role",
    "DESCRIBE QUERY SELECT 1",
    "SHOW COLUMNS IN role",
    "SHOW FUNCTIONS LIKE 'ab*'",
    "SHOW DATABASES",
    "DESCRIBE FUNCTION abs",
]
ACTING = [
    "SELECT TRANSFORM(name) USING 'touch {there}' AS (x) FROM role",
    'SELECT TRANSFORM(name) USING "touch {there}" FROM role',
    "FROM role MAP name USING 'touch {there}'",
    "FROM role REDUCE name USING 'touch {there}' AS (a, b)",
    "SELECT * FROM (SELECT TRANSFORM(name) USING 'touch {there}' AS (x) FROM role)",
    "WITH t AS (SELECT TRANSFORM(name) USING 'touch {there}' AS (x) FROM role) SELECT * FROM t",
    "SELECT 1 WHERE EXISTS (SELECT TRANSFORM(name) USING 'touch {there}' AS (x) FROM role)",
    "FROM role |> WHERE id IN (SELECT TRANSFORM(id) USING 'touch {there}' AS (x INT) FROM role)",
    "SELECT reflect('java.lang.System', 'setProperty', 'a', 'b')",
    "SELECT `REFLECT`('java.lang.System', 'setProperty', 'a', 'b')",
    "SELECT builtin.java_method('java.lang.System', 'setProperty', 'a', 'b')",
    "SELECT system.builtin.try_reflect('java.lang.System', 'setProperty', 'a', 'b')",
    "SELECT transform(array(1), x -> java_method('java.lang.Math', 'abs', x))",
    "SELECT name FROM role ORDER BY (SELECT max(reflect('java.lang.Math', 'abs', 1)) FROM item)",
    "SELECT sum(id) OVER (ORDER BY reflect('java.lang.Math', 'abs', 1)) FROM role",
    "SELECT * FROM VALUES (reflect('java.lang.Math', 'abs', 1))",
    "SELECT IDENTIFIER('reflect')('java.lang.Math', 'abs', 1)",
    "SELECT input_file_name(), input_file_block_start() FROM role",
    "SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '/etc/passwd'))",
    "SELECT * FROM python_worker_logs()",
    "SELECT * FROM csv.`/etc/passwd`",
    "SELECT * FROM text.`{there}`",
    "SELECT * FROM catalog.`{there}`",
    "SELECT * FROM IDENTIFIER('csv.`/etc/passwd`')",
    "SELECT * FROM role WITH (path = '/etc/passwd')",
    "SELECT * FROM global_temp.x",
    "SELECT * FROM spark_catalog.default.x",
    "DESCRIBE csv.`/etc/passwd`",
    "FROM role /* /*+ */ INSERT OVERWRITE DIRECTORY '{there}' USING csv SELECT id -- */",
    "FROM role INSERT OVERWRITE DIRECTORY '{there}' USING csv SELECT id",
    "FROM role INSERT OVERWRITE DIRECTORY '{there}' USING csv SELECT id INSERT INTO x SELECT id",
    "WITH x AS (SELECT 1) INSERT OVERWRITE DIRECTORY '{there}' USING csv SELECT * FROM x",
    "INSERT OVERWRITE DIRECTORY '{there}' USING parquet SELECT 1",
    "CREATE TABLE x USING csv LOCATION '{there}' AS SELECT 1",
    "CREATE TEMPORARY VIEW v USING csv OPTIONS (path '/etc/passwd')",
    "CREATE TEMPORARY FUNCTION f AS 'x.Y'",
    "CACHE TABLE role",
    "SET spark.sql.runSQLOnFiles = true",
    "ADD JAR '{there}'",
    "EXPLAIN INSERT OVERWRITE DIRECTORY '{there}' USING csv SELECT 1",
    "EXPLAIN SELECT reflect('java.lang.Math', 'abs', 1)",
    "DESCRIBE QUERY SELECT reflect('java.lang.Math', 'abs', 1)",
    "EXECUTE IMMEDIATE 'DROP VIEW role'",
    "BEGIN SELECT 1; END",
    "DECLARE VARIABLE x = 1",
]


@pytest.fixture(scope="module")
def asked(spark: SparkSession) -> SparkSession:
    session = make_read_only(own_session(spark))
    for name in RELATIONS:
        session.createDataFrame([(1, "a")], "id int, name string").createOrReplaceTempView(name)
    return session


def _as_sent(text: str) -> Statement:
    """Return a statement that no check of ours has seen."""
    return Statement(text, text, text, is_query=True)


@pytest.mark.spark
@pytest.mark.parametrize("text", READING)
def test_a_plan_that_reads_is_run(asked: SparkSession, text: str) -> None:
    """Whatever operators of a query it has."""
    query(asked, parse_statement(text), lambda: None, relations=RELATIONS)


@pytest.mark.spark
@pytest.mark.parametrize("text", ACTING)
def test_a_plan_that_acts_is_refused_by_its_tree(asked: SparkSession, tmp_path: Path, text: str) -> None:
    """By what Spark has parsed, even if the text was not looked at before; wherever in the tree it stands."""
    there = tmp_path / "there"
    with pytest.raises((StatementRefusedError, StatementError)) as refused:
        query(asked, _as_sent(text.replace("{there}", str(there))), lambda: None, relations=RELATIONS)
    assert isinstance(refused.value, StatementRefusedError), refused.value
    assert not there.exists()
    assert refused.value.what.endswith("is refused")
    assert refused.value.why
    assert refused.value.next


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("SELECT * FROM parquet.`/etc/passwd`", "SHOW TABLES lists what can be read"),
        ("SELECT * FROM role VERSION AS OF 1", "give that ts to the command: --as-of TS"),
        ("SELECT reflect('java.lang.Math', 'abs', 1)", "leave it out, or compute it from the result in a program"),
        ("DESCRIBE TABLE EXTENDED role AS JSON", "leave it out; SELECT, SHOW TABLES and DESCRIBE are answered"),
        ("INSERT INTO role VALUES (1, 'x')", "to write, use `open_catalog` in a program"),
    ],
)
def test_the_advice_of_a_refusal_fits_what_was_meant(asked: SparkSession, text: str, fix: str) -> None:
    """Who wanted to read is not told how to write."""
    with pytest.raises(StatementRefusedError) as refused:
        require_read_plan(asked, _as_sent(text))
    assert refused.value.next.startswith(fix)


@pytest.mark.spark
def test_a_function_that_is_not_sparks_own_is_not_called(asked: SparkSession) -> None:
    """Even if the session has one of that name."""
    asked.udf.register("mine", lambda: 1)
    for text in ("SELECT mine()", "SELECT session.mine()", "SELECT abs2(1)"):
        with pytest.raises(StatementError, match="there is no function"):
            query(asked, parse_statement(text), lambda: None, relations=RELATIONS)
    with pytest.raises(StatementError, match=r"did you mean abs\?"):
        query(asked, parse_statement("SELECT abss(1)"), lambda: None, relations=RELATIONS)


@pytest.mark.spark
def test_a_relation_that_is_not_the_stores_is_not_read(asked: SparkSession) -> None:
    """A view that somebody else has made, or a table of the session's own catalog."""
    asked.range(3).createOrReplaceTempView("foreign")
    with pytest.raises(StatementRefusedError, match="reading foreign is refused"):
        query(asked, parse_statement("SELECT * FROM foreign"), lambda: None, relations=RELATIONS)


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        "INSERT OVERWRITE DIRECTORY '{there}' USING csv SELECT 1",
        "INSERT OVERWRITE LOCAL DIRECTORY '{there}' USING parquet SELECT 1",
        "CREATE TABLE x USING parquet LOCATION '{there}' AS SELECT 1",
        "CREATE TABLE y (a INT) USING csv LOCATION '{there}'",
        "SELECT * FROM csv.`{there}`",
        "SELECT * FROM csv.`/etc/passwd`",
    ],
)
def test_the_session_itself_cannot_write(asked: SparkSession, tmp_path: Path, text: str) -> None:
    """If a statement came through every check, it would find no file system."""
    there = tmp_path / "there"
    with pytest.raises(Exception, match=r"catalog\.no\.file\.system|TABLE_OR_VIEW_NOT_FOUND"):
        asked.sql(text.replace("{there}", str(there))).collect()
    assert not there.exists()


def test_a_servers_plan_is_judged_by_its_text() -> None:
    """Line by line: each operator is known to read, and each relation is one of the catalog's."""
    told = "== Analyzed Logical Plan ==\nid: bigint\nProject [id#2L]\n{}\n== Optimized Logical Plan ==\n"
    require_own_plan_text(
        told.format("+- Sort [id#1 ASC], true\n   :- RelationV2[key#1] catalog \n   +- OneRowRelation")
    )
    for line in (
        "+- ScriptTransformation cat, [key#29]",
        "   :- Relation spark_catalog.default.x[a#1] parquet",
        "   :  +- RelationV2[a#1] iceberg db.t",
        "+- 'Unknown [a]",
    ):
        with pytest.raises(StatementRefusedError):
            require_own_plan_text(told.format(line))


WORDS = r"""
    SELECT FROM WITH x AS ( ) , role name 1 'a' "b" `c` USING TRANSFORM MAP REDUCE INSERT INTO OVERWRITE DIRECTORY
    VALUES TABLE WHERE = EXPLAIN reflect java_method abs JOIN item UNION |> ; $ $$ \ ' " ` * . /* */ /*+ -- r'\' '\''
    '/*' csv a://-- X'00' 1e
""".split()  # noqa: SIM905 - a list of words is read more easily
SPACES = [" ", "\n", "\r", "-- x", "USING 'sh'"]
PIECES = [
    "SELECT name FROM role",
    "FROM role SELECT name",
    "SELECT TRANSFORM(name) USING 'sh' FROM role",
    "FROM role INSERT INTO x SELECT name",
    "INSERT OVERWRITE DIRECTORY 'x' USING csv SELECT id",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "SELECT reflect('a', 'b')",
    "SELECT 1",
]


@pytest.mark.spark
@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=some.lists(some.sampled_from([*WORDS, *SPACES, *PIECES]), min_size=1, max_size=12),
    glue=some.sampled_from([" ", ""]),
)
def test_text_and_parser_agree_on_what_only_reads(asked: SparkSession, words: list[str], glue: str) -> None:
    """A text that is let through is for Spark a query that reads, or no statement; and no other query is refused.

    The first matters where the parser cannot be asked: at a server. The second keeps the first from being easy.
    """
    text = glue.join(words)
    try:
        accepted: Statement | None = parse_statement(text)
    except StatementError:
        return  # no statement, or several
    except StatementRefusedError:
        accepted = None
    try:
        require_read_plan(asked, _as_sent(text) if accepted is None else accepted)
        is_reading = True
    except ParseException:
        return
    except StatementRefusedError as error:
        is_reading = "reading" in error.what  # a relation, which a server resolves and shows
    except StatementError:
        is_reading = True  # an unknown function, likewise
    assert is_reading == (accepted is not None), text
