"""What asks and what draws, on a terminal and without one."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog.cli.answer import ExitCode
from catalog.engine.migrate.recorder import RunState
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.cli.commands import bytes_of, call, ended, in_process, in_program, on_screen, three_lines
from tests.cli.conftest import Stores, on_spark
from tests.cli.histories import forge_checksums, kill_in_step
from tests.cli.terminal import COLOUR, ESCAPE
from tests.engine.migrate.cluster.servers import await_true
from tests.engine.migrate.stores import events_of, rows_of, version_of

ROLE = '{"id": {"system": 2}}'
ROWS_OF_A_LONG_STEP = 40_000
"""A step that calls a function for each of them takes a second, and can be seen to run."""


def _renamed(store: Path) -> str:
    value = call("show", "role", "--key", ROLE, "--store", store)["rows"][0]["value"]
    return json.dumps({**value, "name": "renamed"})


def _running(stores: Stores) -> Path:
    store = stores(15, 18)
    kill_in_step(store, 19)
    return store


def _forged(stores: Stores) -> Path:
    store = stores(15, 18)
    forge_checksums(store, 17)
    return store


ASKING: dict[str, tuple[Callable[[Stores], Path], Callable[[Path], list[str]], list[str], str]] = {
    "undo": (
        lambda stores: stores(21, 22),
        lambda _: ["undo"],
        ["will go back from version 22 to 21: v21_to_v22", "The leader will be fenced"],
        "--yes",
    ),
    "abort": (_running, lambda _: ["abort"], ["running in", "v18_to_v19", "will be fenced"], "--yes"),
    "repair": (
        _running,
        lambda _: ["repair"],
        ["v18_to_v19 is RUNNING", "is dead", "This will be repaired"],
        "--yes",
    ),
    "repair --checksums": (
        _forged,
        lambda _: ["repair", "--checksums"],
        ["v16_to_v17: recorded 0000", "This will be repaired"],
        "--yes",
    ),
    "debug edit": (
        lambda stores: stores(19),
        lambda store: ["debug", "edit", "role", ROLE, _renamed(store)],
        ['- name: "catalog_system"', r'\+ name: "renamed"', "will be fenced, and this change committed"],
        "--yes",
    ),
    "debug delete": (
        lambda stores: stores(),
        lambda _: ["debug", "delete", "setting", '{"name": "default_cluster"}'],
        ["setting", "- ", "will be fenced, and this change committed"],
        "--yes",
    ),
    "clean": (
        lambda stores: stores(),
        lambda _: ["clean"],
        [r"would be removed: \d+ files", "The leader will be fenced, and the store removed for ever"],
        "--name",
    ),
}
ANSWERS = ("no\n", "\n", "YES\n", "\x04")
asking = pytest.mark.parametrize("case", ASKING)


@asking
def test_another_answer_does_nothing(store_of: Stores, case: str) -> None:
    """What will happen is shown first, and then nothing happens; an empty line and an end of input are answers too.

    One command gets each of the answers, and each command one of them: the question is the same.
    """
    make, words, shown, _ = ASKING[case]
    store = make(store_of)
    command, before = words(store), bytes_of(store)
    number = list(ASKING).index(case)
    for answer in ANSWERS if number == 0 else [ANSWERS[number % len(ANSWERS)]]:
        with on_screen(*command, "--store", store) as child:
            for part in (*shown, r"Type \S+ to continue: "):
                child.expect(part)
            child.send(answer)
            assert ended(child) == ExitCode.USAGE
            three_lines("\n".join(child.before.replace("\r", "").splitlines()[-3:]))
            assert "nothing was done" in child.before
    assert bytes_of(store) == before


@asking
def test_the_right_answer_does_it(store_of: Stores, case: str) -> None:
    """Once it is typed; the answer comes after the question."""
    make, words, _, _ = ASKING[case]
    store = make(store_of)
    command, before = words(store), bytes_of(store)
    with on_screen(*command, "--store", store) as child:
        child.expect(r"Type (\S+) to continue: ")
        child.sendline(child.match[1])
        assert ended(child) == ExitCode.DONE
    assert bytes_of(store) == {} if case == "clean" else bytes_of(store) != before


@asking
def test_without_a_terminal_the_flag_is_named(store_of: Stores, case: str) -> None:
    """Nobody can be asked there, so nothing happens; agreed to beforehand it does."""
    make, words, _, flag = ASKING[case]
    store = make(store_of)
    command, before = words(store), bytes_of(store)
    shown = in_program(*command, "--store", store, expect=ExitCode.USAGE)
    following = shown.err.splitlines()[-1]
    assert f"give {flag}" in following
    assert shown.out == ""
    assert bytes_of(store) == before
    agreed = [flag, store.name] if flag == "--name" else [flag]
    assert in_process(*command, *agreed, "--store", store).exit == ExitCode.DONE
    assert bytes_of(store) == {} if case == "clean" else bytes_of(store) != before


def test_a_store_is_removed_only_by_its_own_name(store_of: Stores) -> None:
    """Neither another name nor a plain yes will do; tried first, it is only counted."""
    store = store_of()
    (store / "theirs.txt").write_text("mine", encoding="utf-8")
    before = bytes_of(store)
    tried = call("clean", "--dry-run", "--store", store)
    assert (tried["done"], tried["files"] > 5, tried["left"]) == (False, True, ["theirs.txt"])
    for name in ("yes", "", f"{store.name}x", str(store)):
        shown = in_process("clean", "--name", name, "--store", store)
        assert shown.exit == ExitCode.USAGE
        assert f"which is {store.name}" in shown.err
    assert bytes_of(store) == before
    done = call("clean", "--name", store.name, "--store", store)
    assert (done["done"], done["left"]) == (True, ["theirs.txt"])
    assert bytes_of(store) == {"theirs.txt": before["theirs.txt"]}
    assert in_process("clean", "--name", store.name, "--store", store).exit == ExitCode.FAILED


@on_spark
def test_progress_is_drawn_on_a_terminal_and_told_in_a_pipe(store_of: Stores, spark: SparkSession) -> None:
    """Bars go to the terminal, lines to a pipe, neither to standard output; JSON in a pipe has none of it."""
    del spark
    with on_screen("apply", "--store", store_of(21)) as child:
        assert ended(child) == ExitCode.DONE
        drawn = child.before
    assert COLOUR.search(drawn)
    assert "━" in drawn
    with on_screen("apply", "--store", store_of(21), NO_COLOR="1") as child:
        assert ended(child) == ExitCode.DONE
        assert "━" in child.before
        assert not COLOUR.search(child.before)
    with on_screen("apply", "--store", store_of(21), TERM="dumb") as child:
        assert ended(child) == ExitCode.DONE
        assert "\x1b[" not in child.before
    piped = in_program("apply", "--store", store_of(21))
    assert piped.err == "step 1 of 1, v21_to_v22: roles, databases, schemas and items may have an `oid`.\n"
    assert "step 1 of 1" not in piped.out
    assert "went from version 21 to 22" in piped.out
    assert not ESCAPE.search(piped.out + piped.err)
    asked = in_program("--format", "json", "apply", "--store", store_of(21))
    assert asked.err == ""
    assert json.loads(asked.out)["data"]["version"] == 22


@on_spark
def test_plan_progress_and_outcome_count_the_same_rows(store_of: Stores, spark: SparkSession) -> None:
    """Live ones: what a plan says will be rewritten is what a step begins with and what it has done."""
    del spark
    store = store_of(17)
    planned = call("apply", "--next", "--dry-run", "--store", store)["rows_to_rewrite"]
    shown = in_program("--format", "json", "apply", "--next", "--log-format", "json", "--store", store)
    told = {line["event"]: line for line in map(json.loads, shown.err.splitlines())}
    (step,) = json.loads(shown.out)["data"]["steps"]
    began, committed = told["step_began"], told["step_committed"]
    assert planned == began["rows"] == committed["rows_before"] == step["rows_before"] > 0
    assert (began["number"], began["count"]) == (1, 1)


@on_spark
def test_a_terminal_is_told_everything_once(store_of: Stores, spark: SparkSession) -> None:
    """The screen tells what a step does while it runs, and its rows in the end; no line breaks in a number."""
    del spark
    store = store_of(20)
    with on_screen("start", "--store", store, width=80) as child:
        assert ended(child) == ExitCode.DONE
        written = child.before.replace("\r\n", "\n")
    lines = [line.rstrip() for line in re.split(r"[\r\n]", ESCAPE.sub("", written))]
    for words in ("step 1 of 2, v20_to_v21: the collection `timestamp` goes", "step 2 of 2, v21_to_v22: roles"):
        assert len([line for line in lines if line.startswith(words)]) == 1, lines
    for name in ("v20_to_v21", "v21_to_v22"):
        assert len([line for line in lines if re.match(rf" *{name} +[\d,]+ +[\d,]+ ", line)]) == 1, lines
    sentence = f"{store} is upgraded from version 20 to version 22 (generation 0, epoch 2, ts "
    assert sentence in " ".join(lines)
    assert max(map(len, lines)) <= max(80, len(str(store)))


@on_spark
@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_an_upgrade_can_be_stopped(tmp_path: Path, asked: signal.Signals) -> None:
    """In the middle of a step: no traceback, nothing of the step, its event says so, and the next apply goes on."""
    generate(PROJECT, store := tmp_path / "store", 18, ROWS_OF_A_LONG_STEP, seed=5)
    before = rows_of(store)
    with on_screen("apply", "--store", store) as child:
        child.expect_exact("step 1 of 4")  # a terminal that nobody reads would stop it
        await_true(lambda: [event for event in events_of(store) if event.state is RunState.RUNNING], "a step that runs")
        os.kill(child.pid, asked)
        assert ended(child) == 128 + asked
        assert "Traceback" not in child.before
        assert "stopped by" in child.before
    assert (rows_of(store), version_of(store)) == (before, 18)
    event = events_of(store)[-1]
    assert (event.state, event.value.error) == (RunState.ERROR, "it was interrupted")
    assert in_program("apply", "--next", "--lock-timeout", "0", "--store", store).exit == ExitCode.DONE
    assert version_of(store) == 19


def test_data_goes_to_standard_output_and_all_else_to_standard_error(store_of: Stores) -> None:
    """So that a pipe gets rows, and a person sees what is wrong."""
    store = store_of()
    shown = in_program("debug", "dump", "--collection", "role", "--store", store)
    assert [json.loads(line)["collection"] for line in shown.out.splitlines()] == ["role", "role"]
    assert shown.err == ""
    failed = in_program("show", "rol", "--store", store, expect=ExitCode.USAGE)
    assert failed.out == ""
    three_lines(failed.err)


def test_tables_have_no_colours_where_they_are_refused(store_of: Stores) -> None:
    """By NO_COLOR; and on a narrow terminal no line is longer than it."""
    store = store_of(15, 18)
    with on_screen("info", "--store", store, width=80, NO_COLOR="1") as child:
        assert ended(child) == ExitCode.DONE
        plain = ESCAPE.sub("", child.before)
        assert not COLOUR.search(child.before)
    table = plain.replace("\r", "").partition("version ")[2]
    assert max(len(line.rstrip()) for line in table.splitlines()[3:]) <= 80
    assert version_of(store) == 18
