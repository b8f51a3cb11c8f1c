"""sql: a store asked by statements, in this process, in a pipe, and in a shell on a terminal."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.cli.answer import ExitCode
from catalog.objects import ItemKey, ItemKind, ItemValue, RoleId, RoleKey, RoleValue, SettingKey, SettingValue
from tests.cli.commands import MAIN, bytes_of, call, complaint, ended, fail, in_process, on_screen, text
from tests.cli.conftest import CURRENT, Stores, on_spark
from tests.cli.terminal import ESCAPE, variables
from tests.engine.migrate.stores import state_of

SLEEP = "SELECT sum(sqrt(id)) FROM range(0, 9000000000000, 1, 2);"
"""Takes hours, and ends when it is interrupted."""


@pytest.fixture
def store(store_of: Stores) -> Path:
    """Two users and three items beside what a new store holds."""
    store = store_of()
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        for number, name in enumerate(("ann", "bob"), 1000):
            tx.insert(RoleKey(id=RoleId(user=number)), RoleValue(name=name, permissions=2**64 - 1))
        for number, name in enumerate(("orders", "parts", 'a "quoted", ünïcode\nname'), 1):
            owner = RoleId(user=1000 + number % 2)
            value = ItemValue(
                schema_id=3, name=name, kind=ItemKind.ITEM_KIND_TABLE, owner_id=owner, create_sql="x" * 600
            )
            tx.insert(ItemKey(id=number), value)
    return store


@on_spark
def test_a_statement_is_answered_with_columns_rows_and_their_state(spark: SparkSession, store: Path) -> None:
    """Columns of fields, of both sides; nothing of the store is touched."""
    del spark
    before = bytes_of(store)
    told = call("sql", "SELECT id, name, permissions FROM role WHERE id.user IS NOT NULL ORDER BY name", "-s", store)
    assert told == {
        "store": str(store),
        "version": CURRENT,
        "ts": state_of(store).version,
        "columns": [
            {"name": "id", "type": "struct<system:decimal(20,0),user:decimal(20,0),public:boolean>"},
            {"name": "name", "type": "string"},
            {"name": "permissions", "type": "decimal(20,0)"},
        ],
        "rows": [[{"user": 1000}, "ann", 2**64 - 1], [{"user": 1001}, "bob", 2**64 - 1]],
        "more": False,
    }
    assert bytes_of(store) == before


@on_spark
def test_relations_are_joined_and_names_of_enums_compared(spark: SparkSession, store: Path) -> None:
    """As in any database."""
    del spark
    told = call(
        "sql",
        "SELECT r.name AS owner, count(*) AS items FROM item i JOIN role r ON i.owner_id = r.id"
        " WHERE i.kind = 'ITEM_KIND_TABLE' GROUP BY r.name ORDER BY items DESC;",
        "-s",
        store,
    )
    assert told["rows"] == [["bob", 2], ["ann", 1]]


@on_spark
def test_builtins_are_relations_of_the_newest_state(spark: SparkSession, store: Path) -> None:
    """Each row once; the past has none of them."""
    del spark
    open_catalog(store).close()
    asked = "SELECT needs_object_id, count(*) FROM object_dependencies WHERE object_type = 'item' GROUP BY 1 ORDER BY 1"
    assert call("sql", asked, "-s", store)["rows"] == [["3", 3], ["u1000", 1], ["u1001", 2]]
    names = [name for name, _ in call("sql", "SHOW TABLES", "-s", store)["rows"]]
    assert {"audit_events", "migration_history", "role", "store_metrics"} <= set(names)
    past = call("sql", "SHOW TABLES", "--as-of", str(state_of(store).version - 1), "-s", store)["rows"]
    assert "audit_events" not in {name for name, _ in past}


@on_spark
def test_values_are_those_of_json(spark: SparkSession, store: Path) -> None:
    """Whatever type Spark has for them; two columns may have one name."""
    del spark
    statement = (
        "SELECT 1 AS x, 2 AS x, 1.50 AS d, CAST('NaN' AS DOUBLE) AS f, DATE'2026-11-17' AS day, X'00FF' AS b,"
        " map('a', array(1, null)) AS m, named_struct('p', 1, 'q', null) AS s, INTERVAL '1' DAY AS i, true AS t,"
        " null AS n"
    )
    told = call("sql", statement, "-s", store)
    assert [column["name"] for column in told["columns"]][:2] == ["x", "x"]
    assert told["rows"] == [
        [1, 2, "1.50", "NaN", "2026-11-17", "AP8=", {"a": [1, None]}, {"p": 1}, "1 day, 0:00:00", True, None]
    ]


@on_spark
def test_csv_is_csv(spark: SparkSession, store: Path) -> None:
    """A heading, quotes where they are needed, nothing for null, JSON for what is nested; and nothing besides."""
    del spark
    shown = in_process("sql", "SELECT name, owner_id, oid FROM item ORDER BY id", "--csv", "-s", store)
    assert (shown.exit, shown.err) == (ExitCode.DONE, "")
    assert list(csv.reader(io.StringIO(shown.out))) == [
        ["name", "owner_id", "oid"],
        ["orders", '{"user": 1001}', ""],
        ["parts", '{"user": 1000}', ""],
        ['a "quoted", ünïcode\nname', '{"user": 1001}', ""],
    ]


@on_spark
def test_a_limit_says_that_there_is_more(spark: SparkSession, store: Path) -> None:
    """In the answer; for CSV beside it, where it is no row."""
    del spark
    statement = "SELECT name FROM item ORDER BY id"
    told = call("sql", statement, "--limit", "2", "-s", store)
    assert (told["rows"], told["more"]) == ([["orders"], ["parts"]], True)
    assert call("sql", statement, "--limit", "3", "-s", store)["more"] is False
    assert len(call("sql", "SELECT * FROM range(250)", "--limit", "0", "-s", store)["rows"]) == 250
    assert "2 rows at version" in (shown := text("sql", statement, "--limit", "2", "-s", store))
    assert "and there are more: see --limit" in shown
    cut = in_process("sql", statement, "--limit", "2", "--csv", "-s", store)
    assert (cut.out, cut.err) == ("name\norders\nparts\n", "there are more than 2 rows: see --limit\n")


@on_spark
def test_rows_that_are_too_wide_are_records(spark: SparkSession, store: Path) -> None:
    """A column on each line; a long value is cut where a person reads, and nowhere else."""
    del spark
    shown = text("sql", "SELECT * FROM item ORDER BY id", "--limit", "1", "-s", store)
    assert re.search(r"(?m)^name +orders *$", shown)
    assert re.search(r"(?m)^oid +null *$", shown)
    assert "x…" in shown
    whole = call("sql", "SELECT create_sql FROM item WHERE id = 1", "-s", store)
    assert whole["rows"] == [["x" * 600]]


@on_spark
def test_earlier_rows_are_asked_for_by_their_ts(spark: SparkSession, store: Path) -> None:
    """All relations are of that state; one that is retired or yet to come is refused."""
    del spark
    ts = state_of(store).version
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.delete(ItemKey(id=1))
    count = "SELECT count(*) FROM item"
    assert call("sql", count, "-s", store)["rows"] == [[2]]
    earlier = call("sql", count, "--as-of", str(ts), "-s", store)
    assert (earlier["rows"], earlier["ts"]) == ([[3]], ts)
    assert fail("sql", count, "--as-of", str(ts + 99), "-s", store).code == "NoSuchVersionError"


@on_spark
@pytest.mark.parametrize(
    ("statement", "what", "why", "fix"),
    [
        (
            "SELECT nme\nFROM role",
            "line 1, column 8: a column, variable, or function parameter with name `nme` cannot be resolved",
            "SELECT »nme«",
            "did you mean name",
        ),
        (
            "SELECT name\nFROM\n  rol",
            "line 3, column 3: the table or view `rol` cannot be found",
            "»rol«",
            "did you mean role?",
        ),
        ("SELECT * FROM nowhere", "line 1, column 15: the table", "SELECT * FROM »nowhere«", "SHOW TABLES lists"),
        ("SELECT name FROM role WHERE name =", "line 1, column 35: syntax error", "WHERE name =", "correct it"),
        ("SELECT name name name FROM role", "line 1, column 18: syntax error", "»name« FROM role", "correct it"),
        ("SELECT 1 / 0", "line 1, column 8: division by zero", "SELECT »1 / 0«", "use `try_divide`"),
        ("SELECT CAST(name AS INT) FROM role", "line 1, column 8: the value '", "»CAST(name AS INT)«", "correct the"),
        ("SELECT raise_error('so it is')", "so it is", "SELECT raise_error('so it is')", "correct it"),
        (
            "SELECT name FROM role GROUP BY oid",
            'the non-aggregating expression "name"',
            "SELECT name FROM role GROUP BY oid",
            "add",
        ),
    ],
)
def test_what_is_wrong_with_a_statement_is_said_in_three_lines(
    spark: SparkSession, store: Path, statement: str, what: str, why: str, fix: str
) -> None:
    """With its place, and no stack of Java."""
    del spark
    lines = complaint("sql", statement, "-s", store, expect=ExitCode.USAGE)
    assert lines[0].startswith(what)
    assert "SQLSTATE" not in "".join(lines)
    assert why in lines[1]
    assert lines[2].startswith(f"next: {fix}")
    failed = fail("sql", statement, "-s", store, expect=ExitCode.USAGE)
    assert (failed.code, failed.message) == ("StatementError", lines[0])


def test_statements_that_would_write_are_refused_without_spark(store_of: Stores) -> None:
    """And change nothing."""
    store = store_of()
    before = bytes_of(store)
    refused = fail("sql", "WITH x AS (SELECT 1) INSERT INTO role SELECT * FROM x", "-s", store, expect=ExitCode.USAGE)
    assert (refused.code, refused.message) == ("StatementRefusedError", "INSERT is refused")
    assert bytes_of(store) == before


def test_lists_need_no_spark(store_of: Stores) -> None:
    """Every relation with its columns, and each column with its type."""
    store = store_of()
    told = call("sql", "show tables;", "-s", store)
    assert ["setting", "name, value"] in told["rows"]
    assert call("sql", "DESCRIBE `setting`", "-s", store)["rows"] == [["name", "string"], ["value", "string"]]
    assert "setting" in text("sql", "SHOW TABLES", "-s", store)


def test_csv_and_json_exclude_each_other(store_of: Stores) -> None:
    """An envelope is no CSV."""
    assert fail("sql", "SHOW TABLES", "--csv", "-s", store_of(), expect=ExitCode.USAGE).message.startswith("--csv and")


@pytest.mark.parametrize("words", [["-"], []], ids=["by a dash", "by a pipe"])
def test_a_statement_comes_from_standard_input(store_of: Stores, words: list[str]) -> None:
    """Of several lines; without one, nothing is asked."""
    command = [sys.executable, "-c", MAIN, "--format", "json", "sql", *words, "--store", str(store_of())]

    def run(given: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, env=variables(), input=given, capture_output=True, check=False)

    done = run(b"-- what is there?\nDESCRIBE\n setting;\n")
    assert json.loads(done.stdout)["data"]["rows"][0] == ["name", "string"]
    nothing = run(b"")
    assert (nothing.returncode, json.loads(nothing.stdout)["error"]["message"]) == (
        ExitCode.USAGE,
        "the text holds no statement",
    )
    garbage = run(b"SELECT '\xff\xfe'")
    assert garbage.returncode == ExitCode.USAGE
    assert json.loads(garbage.stdout)["error"]["next"].endswith("UTF-8")


@on_spark
def test_the_shell_asks_until_its_person_leaves(store: Path, tmp_path: Path) -> None:
    """Several lines make a statement; Ctrl-C gives up what is typed or asked, and Ctrl-D leaves."""
    state = tmp_path / "state"
    prompt = f"{store.name} v{CURRENT}> "
    with on_screen("sql", "--store", store, XDG_STATE_HOME=str(state)) as child:
        child.timeout = 240

        def said(line: str, expected: str) -> str:
            child.sendline(line)
            child.expect(expected)
            return ESCAPE.sub("", child.before)

        child.expect_exact(prompt)
        assert "unfinalized_shard" in said(r"\d", re.escape(prompt))
        assert "decimal(20,0)" in said(r"\d item", re.escape(prompt))
        assert "there is no command" in said(r"\x", re.escape(prompt))
        assert "DROP is refused" in said("DROP TABLE role;", re.escape(prompt))
        said("SELECT name", r"\.+> ")
        assert "starting Spark" in said("FROM item ORDER BY id LIMIT 1;", "1 row")
        child.expect_exact(prompt)
        said("SELECT what I never meant", r"\.+> ")
        child.send("to")
        child.expect_exact("to")  # so that a line is being read: an interrupt just before that waits for the next key
        child.sendintr()
        child.expect_exact(prompt)
        said(SLEEP, "running the statement")
        child.sendintr()
        child.expect("cancelled")
        child.expect_exact(prompt)
        with open_catalog(store) as catalog, catalog.transaction() as tx:
            tx.insert(SettingKey(name="colour"), SettingValue(value="green"))
        assert "green" in said("SELECT value FROM setting WHERE name = 'colour';", "1 row")
        child.expect_exact(prompt)
        assert "cannot be resolved" in said("SELECT nme FROM role;", re.escape(prompt))
        child.sendeof()
        assert ended(child) == ExitCode.DONE
        assert "Traceback" not in child.before
    assert "SELECT name\n" in (state / "catalog" / "sql_history").read_text()


def test_the_shell_goes_on_after_earlier_lines(store_of: Stores, tmp_path: Path) -> None:
    """Those of the last time come back by the arrow, and names are completed."""
    store, state = store_of(), tmp_path / "state"
    prompt = f"{store.name} v{CURRENT}> "
    for word, expected in (("DESCRIBE sett\t;", "setting"), ("\x1b[A", "DESCRIBE setting")):
        with on_screen("sql", "--store", store, XDG_STATE_HOME=str(state)) as child:
            child.expect_exact(prompt)
            child.send(word)
            child.expect(expected)
            child.sendline("")
            child.expect("2 rows at version")
            child.expect_exact(prompt)
            child.sendeof()
            assert ended(child) == ExitCode.DONE


def test_a_shell_needs_a_store_that_can_be_read(tmp_path: Path) -> None:
    """Else there is no prompt, and three lines."""
    with on_screen("sql", "--store", tmp_path / "nothing") as child:
        assert ended(child) == ExitCode.FAILED
        assert "next: " in child.before
        assert "> " not in child.before
