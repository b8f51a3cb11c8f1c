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

from catalog.cli.results import Exit
from catalog.engine.events import State
from tests.cli.commands import bytes_of, call, ended, in_process, in_program, on_screen, three_lines
from tests.cli.conftest import Stores, on_spark
from tests.cli.histories import forge_checksums, kill_in_step
from tests.cli.terminal import COLOUR, ESCAPE
from tests.cluster.servers import await_true
from tests.engine.stores import events_of, rows_of, version_of

ROLE = '{"id": {"system": 2}}'


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
        ["goes back from version 22 to 21: v21_to_v22", "Its leader will be fenced"],
        "--yes",
    ),
    "abort": (_running, lambda _: ["abort"], ["v18_to_v19 is said to run", "will be fenced"], "--yes"),
    "repair": (
        _running,
        lambda _: ["repair"],
        ["v18_to_v19 is said to run", "is dead", "This will be mended"],
        "--yes",
    ),
    "repair --checksums": (
        _forged,
        lambda _: ["repair", "--checksums"],
        ["v16_to_v17: recorded 0000", "This will be mended"],
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
        [r"would be removed: \d+ files", "Its leader will be fenced, and it will be removed for ever"],
        "--name",
    ),
}
asking = pytest.mark.parametrize("case", ASKING)


@asking
def test_another_answer_does_nothing(store_of: Stores, case: str) -> None:
    """What will happen is shown first, and then nothing happens; an empty line and an end of input are answers too."""
    make, words, shown, _ = ASKING[case]
    store = make(store_of)
    command, before = words(store), bytes_of(store)
    for answer in ("no\n", "\n", "YES\n", "\x04"):
        with on_screen(*command, "--store", store) as child:
            for part in (*shown, r"Type \S+ to go on: "):
                child.expect(part)
            child.send(answer)
            assert ended(child) == Exit.USAGE
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
        child.expect(r"Type (\S+) to go on: ")
        child.sendline(child.match[1])
        assert ended(child) == Exit.DONE
    assert bytes_of(store) == {} if case == "clean" else bytes_of(store) != before


@asking
def test_without_a_terminal_the_flag_is_named(store_of: Stores, case: str) -> None:
    """Nobody can be asked there, so nothing happens; agreed to beforehand it does."""
    make, words, _, flag = ASKING[case]
    store = make(store_of)
    command, before = words(store), bytes_of(store)
    shown = in_program(*command, "--store", store, expect=Exit.USAGE)
    following = shown.err.splitlines()[-1]
    assert f"give {flag}" in following
    assert shown.out == ""
    assert bytes_of(store) == before
    agreed = [flag, store.name] if flag == "--name" else [flag]
    assert in_process(*command, *agreed, "--store", store).exit == Exit.DONE
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
        assert shown.exit == Exit.USAGE
        assert f"which is {store.name}" in shown.err
    assert bytes_of(store) == before
    done = call("clean", "--name", store.name, "--store", store)
    assert (done["done"], done["left"]) == (True, ["theirs.txt"])
    assert bytes_of(store) == {"theirs.txt": before["theirs.txt"]}
    assert in_process("clean", "--name", store.name, "--store", store).exit == Exit.FAILED


@on_spark
def test_progress_is_drawn_on_a_terminal_and_told_in_a_pipe(store_of: Stores, spark: SparkSession) -> None:
    """Bars go to the terminal, lines to a pipe, neither to standard output; JSON in a pipe has none of it."""
    del spark
    with on_screen("apply", "--store", store_of(21)) as child:
        assert ended(child) == Exit.DONE
        drawn = child.before
    assert COLOUR.search(drawn)
    assert "━" in drawn
    with on_screen("apply", "--store", store_of(21), NO_COLOR="1") as child:
        assert ended(child) == Exit.DONE
        assert "━" in child.before
        assert not COLOUR.search(child.before)
    with on_screen("apply", "--store", store_of(21), TERM="dumb") as child:
        assert ended(child) == Exit.DONE
        assert "\x1b[" not in child.before
    piped = in_program("apply", "--store", store_of(21))
    assert re.search(r"^v21_to_v22: \d+ rows became \d+", piped.err, re.MULTILINE)
    assert "rows became" not in piped.out
    assert "went from version 21 to 22" in piped.out
    assert not ESCAPE.search(piped.out + piped.err)
    asked = in_program("--format", "json", "apply", "--store", store_of(21))
    assert asked.err == ""
    assert json.loads(asked.out)["data"]["version"] == 22


@on_spark
@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_an_upgrade_can_be_stopped(store_of: Stores, asked: signal.Signals) -> None:
    """In the middle of a step: no traceback, nothing of the step, its event says so, and the next apply goes on."""
    store = store_of(19)
    before = rows_of(store)
    with on_screen("apply", "--store", store) as child:
        await_true(lambda: [event for event in events_of(store) if event.state is State.RUNNING], "a step that runs")
        os.kill(child.pid, asked)
        assert ended(child) == 128 + asked
        assert "Traceback" not in child.before
        assert "stopped by" in child.before
    assert (rows_of(store), version_of(store)) == (before, 19)
    event = events_of(store)[-1]
    assert (event.state, event.value.error) == (State.ERROR, "it was interrupted")
    assert in_program("apply", "--next", "--lock-timeout", "0", "--store", store).exit == Exit.DONE
    assert version_of(store) == 20


def test_data_goes_to_standard_output_and_all_else_to_standard_error(store_of: Stores) -> None:
    """So that a pipe gets rows, and a person sees what is wrong."""
    store = store_of()
    shown = in_program("debug", "dump", "--collection", "role", "--store", store)
    assert [json.loads(line)["collection"] for line in shown.out.splitlines()] == ["role", "role"]
    assert shown.err == ""
    failed = in_program("show", "rol", "--store", store, expect=Exit.USAGE)
    assert failed.out == ""
    three_lines(failed.err)


def test_tables_have_no_colours_where_they_are_refused(store_of: Stores) -> None:
    """By NO_COLOR; and on a narrow terminal no line is longer than it."""
    store = store_of(15, 18)
    with on_screen("info", "--store", store, width=80, NO_COLOR="1") as child:
        assert ended(child) == Exit.DONE
        plain = ESCAPE.sub("", child.before)
        assert not COLOUR.search(child.before)
    table = plain.replace("\r", "").partition("version ")[2]
    assert max(len(line.rstrip()) for line in table.splitlines()[3:]) <= 80
    assert version_of(store) == 18
