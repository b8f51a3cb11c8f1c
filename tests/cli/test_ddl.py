"""`ddl`: schema changes run, followed, paused, resumed, cancelled and taken up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from catalog import open_catalog
from catalog.cli.answer import ExitCode
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.replica import BULK_WRITE, TablesReplica
from catalog.engine.schema_change.signs import StoredSigns
from catalog.engine.schema_change.store import Draft, put
from tests.cli.commands import (
    MAIN,
    bytes_of,
    call,
    complaint,
    ended,
    fail,
    in_process,
    in_program,
    on_screen,
    text,
    three_lines,
)
from tests.cli.conftest import Stores
from tests.cli.terminal import ESCAPE, variables

CREATE = "CREATE TABLE customers (id BIGINT, email STRING, PRIMARY KEY (id))"
INDEX = "CREATE INDEX by_email ON customers (email)"
UNIQUE = "CREATE UNIQUE INDEX one_email ON customers (email)"
ROWS = 300
SLOW = ("--rows-per-s", "1")
"""After its first chunk, such a build waits for minutes."""


@pytest.fixture
def store(store_of: Stores) -> Path:
    """A store with a table; two of its rows have the same email."""
    made = store_of()
    with open_catalog(made, "member") as catalog:
        catalog.tables.execute(CREATE)
        with catalog.tables.transaction() as tx:
            for number in range(ROWS):
                tx.insert("customers", {"id": number, "email": f"{max(number, 1)}@example.com"})
    return made


def ddl(store: Path, *words: str) -> Any:  # noqa: ANN401 - what the command answers
    return call("ddl", *words, "--store", store)


def statuses(store: Path) -> dict[int, str]:
    return {own["id"]: own["status"] for own in ddl(store, "list", "--all")["changes"]}


def await_status(store: Path, number: int, *wanted: str) -> Any:  # noqa: ANN401 - the change
    for _ in range(300):
        found = [own for own in ddl(store, "list", "--all")["changes"] if own["id"] == number]
        if found and found[0]["status"] in wanted and (found[0]["rows_done"] or wanted != ("RUNNING",)):
            return found[0]
        time.sleep(0.1)
    raise AssertionError(statuses(store))


@contextmanager
def program(store: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The real program in the background, in a pipe."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *words, "--store", str(store)],
        env=variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_store_without_tables_is_left_alone(store_of: Stores) -> None:
    """It has no changes; a dry run says what would be done, and nothing is written."""
    empty = store_of()
    before = bytes_of(empty)
    assert ddl(empty, "list")["changes"] == []
    assert ddl(empty, "adopt") == {"store": str(empty), "changes": [], "others": []}
    for verb in ("show", "pause", "resume", "cancel"):
        failed = fail("ddl", verb, "3", "--store", empty, expect=ExitCode.USAGE)
        assert failed.message == "there is no schema change 3"
    planned = ddl(empty, "run", CREATE, "--dry-run")
    assert [stage["kind"] for stage in planned["stages"]] == ["EDIT", "ITEM", "EDIT"]
    fail("ddl", "run", INDEX, "--dry-run", "--store", empty, expect=ExitCode.USAGE)
    assert bytes_of(empty) == before


def test_a_dry_run_shows_the_stages(store: Path) -> None:
    """And from which on the change cannot be cancelled; nothing is written."""
    before = bytes_of(store)
    shown = text("ddl", "run", UNIQUE, "--dry-run", "--store", store).splitlines()
    assert shown[0] == f"{UNIQUE} has these stages; nothing was written"
    assert shown[1].endswith("1  announce one_email")
    assert shown[-1].endswith("one_email is public; can be cancelled until here")
    assert bytes_of(store) == before


def test_a_statement_is_carried_out(store: Path) -> None:
    """Its change is shown as it ended, and is listed with all others."""
    done = ddl(store, "run", INDEX)
    assert (done["id"], done["status"], done["stages_done"]) == (2, "SUCCEEDED", len(done["stages"]))
    assert [own["text"] for own in done["events"]][-1] == "by_email is public"
    assert statuses(store) == {1: "SUCCEEDED", 2: "SUCCEEDED"}
    shown = text("ddl", "run", "DROP INDEX by_email ON customers", "--store", store)
    assert shown.startswith("3  DROP INDEX by_email ON customers   SUCCEEDED in ")


def test_what_has_nothing_to_do_says_why(store: Path) -> None:
    """As IF NOT EXISTS of a table that is there."""
    shown = text("ddl", "run", CREATE.replace("TABLE", "TABLE IF NOT EXISTS"), "--store", store)
    assert "why  there is already a table customers" in shown


@pytest.mark.parametrize(
    "statement", ["SELECT 1", "CREATE TABLE x (id VARIANT)", "ALTER TABLE nowhere DROP COLUMN a", "(", ""]
)
def test_a_wrong_statement_is_a_wrong_call(store: Path, statement: str) -> None:
    """No change is made of it."""
    complaint("ddl", "run", statement, "--store", store, expect=ExitCode.USAGE)
    complaint("ddl", "run", statement, "--dry-run", "--store", store, expect=ExitCode.USAGE)
    assert statuses(store) == {1: "SUCCEEDED"}


@pytest.mark.parametrize("patience", ["soon", "-1", ""])
def test_a_patience_is_a_duration(store: Path, patience: str) -> None:
    """Others are refused before anything is done."""
    failed = fail("ddl", "run", INDEX, "--patience", patience, "--store", store, expect=ExitCode.USAGE)
    assert failed.message == f"--patience {patience!r} is no duration"


def test_a_violation_names_rule_count_and_keys(store: Path) -> None:
    """When it fails, and whenever it is shown; nothing is left of the change."""
    failed = fail("ddl", "run", UNIQUE, "--store", store)
    assert (failed.code, failed.data["status"]) == ("SchemaChangeFailedError", "FAILED")
    assert failed.data["failure"]["rule"] == "unique (email)"
    assert failed.data["failure"]["keys"] == ['{"id": 0}', '{"id": 1}']
    shown = text("ddl", "show", "2", "--store", store).splitlines()
    assert shown[0] == f"2  {UNIQUE}   FAILED, and is undone: nothing is left of it"
    assert shown[1].split() == ["why", "unique", "(email):", "1", "violation", "at", "ts", *shown[1].split()[7:]]
    assert shown[2].split(maxsplit=1) == ["keys", "id: 0; id: 1"]
    assert shown[3].split()[0] == "next"
    told = in_process("ddl", "run", UNIQUE, "--store", store)
    assert told.out == f"3  {UNIQUE}   FAILED, and is undone: nothing is left of it\n"
    assert three_lines(told.err)[1] == 'why:  unique (email): 1 violations, such as {"id": 0}; {"id": 1}'
    assert "one_email" not in text("table", "show", "customers", "--store", store)


def test_a_detached_change_waits_for_somebody(store: Path) -> None:
    """It is listed, can be resumed by its number, and taken up with all others."""
    shown = text("ddl", "run", INDEX, "--detach", "--store", store)
    assert shown.startswith(f"2  {INDEX}   PENDING, and nobody carries it out yet\n")
    assert "`catalog ddl resume 2`" in shown
    assert ddl(store, "list")["changes"][0]["status"] == "PENDING"
    assert ddl(store, "resume", "2")["status"] == "SUCCEEDED"
    ddl(store, "run", "DROP INDEX by_email ON customers", "--detach")
    ddl(store, "run", "ALTER TABLE customers ADD COLUMN age INT", "--detach")
    adopted = ddl(store, "adopt")
    assert [(own["id"], own["status"]) for own in adopted["changes"]] == [(3, "SUCCEEDED"), (4, "SUCCEEDED")]
    assert text("ddl", "adopt", "--store", store) == "no schema change needs to be taken up\n"
    assert text("ddl", "list", "--store", store).startswith("no schema change is under way")


def test_a_failure_of_what_was_taken_up_is_one_of_the_command(store: Path) -> None:
    """The others are carried out all the same."""
    ddl(store, "run", UNIQUE, "--detach")
    ddl(store, "run", INDEX, "--detach")
    failed = fail("ddl", "adopt", "--store", store)
    assert failed.code == "SchemaChangeFailedError"
    assert statuses(store) == {1: "SUCCEEDED", 2: "FAILED", 3: "SUCCEEDED"}


def test_a_change_is_paused_resumed_and_cancelled(store: Path) -> None:
    """Each where it makes sense; else the error says what the change is."""
    ddl(store, "run", INDEX, "--detach")
    assert ddl(store, "pause", "2")["status"] == "PAUSED"
    assert "`catalog ddl resume 2` goes on" in text("ddl", "show", "2", "--store", store)
    assert ddl(store, "adopt")["changes"] == []
    assert fail("ddl", "pause", "2", "--store", store).message == "schema change 2 cannot be paused: it is PAUSED"
    ddl(store, "run", "ALTER TABLE customers ADD COLUMN age INT", "--detach")
    assert ddl(store, "cancel", "2")["status"] == "CANCELLED"
    for verb in ("pause", "resume", "cancel"):
        failed = fail("ddl", verb, "2", "--store", store)
        assert failed.message.startswith(f"schema change 2 cannot be {verb}")
        assert failed.message.endswith("it is CANCELLED")
    ddl(store, "pause", "3")
    assert ddl(store, "resume", "3")["status"] == "SUCCEEDED"


def test_a_number_that_no_change_has_is_a_wrong_call(store: Path) -> None:
    """So is what is no number."""
    assert fail("ddl", "show", "9", "--store", store, expect=ExitCode.USAGE).code == "UnknownChangeError"
    fail("ddl", "show", "nine", "--store", store, expect=ExitCode.USAGE)


def test_following_a_change_that_is_over_shows_its_end(store: Path) -> None:
    """And fails if it failed, as nothing else that shows it does."""
    fail("ddl", "run", UNIQUE, "--store", store)
    assert ddl(store, "show", "2")["status"] == "FAILED"
    assert fail("ddl", "show", "2", "--follow", "--store", store).code == "SchemaChangeFailedError"
    assert ddl(store, "show", "1", "--follow")["status"] == "SUCCEEDED"


def test_ctrl_c_leaves_a_change_that_can_be_resumed_or_cancelled(store: Path) -> None:
    """What was done so far stays; the last lines say how to go on, and the exit code is 130."""
    with program(store, "ddl", "run", INDEX, *SLOW) as process:
        running = await_status(store, 2, "RUNNING")
        assert (running["rows_done"], running["rows_total"]) == (ROWS, ROWS)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED
    assert f"2  {INDEX}   RUNNING, and nobody carries it out since " in out
    lines = err.splitlines()
    assert "stage 3 of 4: build by_email" in lines
    what, why, following = lines[-3:]
    assert what == "stopped by Ctrl-C; schema change 2 is left as it is, and nobody carries it out now"
    assert why.startswith("why:  what it has done so far is committed")
    assert all(f"`catalog ddl {verb} 2" in following for verb in ("resume", "cancel", "show"))
    assert ddl(store, "show", "2")["owner"] == ""
    assert ddl(store, "cancel", "2")["status"] == "CANCELLED"
    ddl(store, "run", INDEX)


def test_a_killed_process_is_watched_before_its_change_is_taken_up(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It left its sign of life, which no longer changes."""
    monkeypatch.setattr("catalog.engine.store.tables.StoredSigns", partial(StoredSigns, dead_after_s=1.0))
    with program(store, "ddl", "run", INDEX, *SLOW) as process:
        await_status(store, 2, "RUNNING")
        process.kill()
        process.wait()
    owner = ddl(store, "show", "2")["owner"]
    assert owner.endswith(f":{process.pid}")
    told = in_process("ddl", "adopt", "--store", store)
    assert told.exit == ExitCode.DONE
    assert told.err.startswith(f"watching for a sign of life of {owner}: 60 s at most\n")
    assert statuses(store)[2] == "SUCCEEDED"


def test_a_change_that_another_process_carries_out_is_left_to_it(store: Path) -> None:
    """It shows signs of life, so nobody takes it over."""
    with program(store, "ddl", "run", INDEX, *SLOW) as process:
        await_status(store, 2, "RUNNING")
        failed = fail("ddl", "resume", "2", "--store", store)
        assert "carried out by" in failed.message
        (other,) = ddl(store, "adopt")["others"]
        assert (other["id"], other["owner"].endswith(f":{process.pid}")) == (2, True)


def test_a_change_waits_for_bulk_writes_and_says_for_whom(store: Path) -> None:
    """As long as it has patience, in the same words while it runs and when it is shown."""
    with bulk_write(store), program(store, "ddl", "run", INDEX, "--patience", "4s") as process:
        waiting = await_status(store, 2, "WAITING")
        (one,) = waiting["waiting_on"]
        assert (one["who"], one["table"], one["rows"]) == ("host-5:812", "public.customers", 31)
        shown = text("ddl", "show", "2", "--store", store)
        assert "WAITING " in shown.splitlines()[0]
        assert " of 4 s" in shown.splitlines()[0]
        words = "waiting for host-5:812, bulk write to public.customers at version "
        assert words in " ".join(shown.split())
        _, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.DONE
    lines = err.splitlines()
    assert "stage 2 of 4: close the announcement of by_email" in lines
    assert any(line.startswith(words) for line in lines)
    assert any(line.startswith("stage 2 of 4: waiting ") for line in lines)


def test_a_change_waits_for_another_one_of_the_same_table(store: Path) -> None:
    """It says which; others follow it, and end with it."""
    ddl(store, "run", INDEX, "--detach")
    with open_catalog(store, "member") as catalog:
        tables = catalog.tables
        owner = tables._owner()  # noqa: SLF001 - to stop between two steps
        owner.step(2)
        owner.step(2)
    ddl(store, "run", "ALTER TABLE customers ADD COLUMN age INT", "--detach")
    assert ddl(store, "show", "3")["behind"] == [2]
    assert "PENDING behind change 2" in text("ddl", "show", "3", "--store", store)
    with program(store, "ddl", "show", "3", "--follow") as following:
        time.sleep(2)
        resumed = threading.Thread(target=ddl, args=(store, "resume", "3"))
        resumed.start()
        time.sleep(0.5)
        ddl(store, "cancel", "2")
        resumed.join()
        out, err = following.communicate(timeout=30)
    assert following.returncode == ExitCode.DONE
    assert "change 3 waits for change 2 of the same tables" in err.splitlines()
    assert out.startswith("3  ALTER TABLE customers ADD COLUMN age INT   SUCCEEDED in ")


def test_programs_get_one_document_and_no_progress(store: Path) -> None:
    """However long the change takes."""
    with bulk_write(store):
        shown = in_program("ddl", "run", INDEX, "--patience", "2s", "--format", "json", "--store", store)
    assert shown.err == ""
    assert json.loads(shown.out)["data"]["status"] == "SUCCEEDED"


def test_a_terminal_shows_a_bar_and_ctrl_c_leaves_the_change(store: Path) -> None:
    """In the words that a pipe gets."""
    with on_screen("ddl", "run", INDEX, *SLOW, "--store", store) as child:
        child.expect("stage 3 of 4: build by_email")
        child.expect(f"{ROWS} of {ROWS} rows")
        child.sendintr()
        assert ended(child) == ExitCode.INTERRUPTED
        shown = " ".join(ESCAPE.sub("", child.before).split())
    assert "schema change 2 is left as it is" in shown
    assert "Traceback" not in shown
    assert ddl(store, "cancel", "2")["status"] == "CANCELLED"


@contextmanager
def bulk_write(store: Path) -> Iterator[None]:
    """A bulk write of another process that pins the table, and shows signs of life."""
    with open_catalog(store, "member") as catalog:
        tables = catalog.tables
        schema = tables.schema("customers")

        def draft(replica: TablesReplica) -> Draft:
            row = pb.BulkWriteValue(who="host-5:812", began_ms=replica.log.now_ms(), read_ts=replica.state.version)
            row.pins.add(table=schema.id, version=schema.cur)
            return Draft(rows={BULK_WRITE: put(replica, BULK_WRITE, pb.BulkWriteKey(id="bulk-1"), row)})

        tables.store.commit(draft)
        tables.signs.show("bulk-1", rows=31)
        yield
