"""history: what happened to a store, told by its log and its events."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog import open_catalog
from catalog.cli.answer import ExitCode
from catalog.engine.log.protocol import Operation
from catalog.engine.migrate.executor import upgrade
from catalog.objects import SettingKey, SettingValue
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.cli.commands import bytes_of, call, complaint, ended, in_program, on_screen, text
from tests.cli.conftest import Stores
from tests.cli.histories import append_roles, kill_in_step
from tests.cli.terminal import COLOUR, ESCAPE
from tests.engine.migrate.stores import lead, open_log, state_of
from tests.volatile import volatile_folder

RAILS = """
v15 v16 v17 v18
        ╪
        ◆───╮
            ╪
            ●
        ╭───◆
    ╭───◆
╭───◆
├───✗
╪
├───◇
╪
●
◉
"""


@pytest.fixture(scope="module")
def past() -> Iterator[Path]:
    """A store whose first run of a step died, and that was upgraded, written to, undone and taken over."""
    with volatile_folder() as folder:
        store = Path(folder, "store")
        generate(PROJECT, store, 15, rows=60, seed=5)
        kill_in_step(store, 16)
        upgrade(lead(store), 18)
        append_roles(store, "ann", "bob")
        call("undo", "--yes", "--store", store)
        lead(store)
        yield store


@pytest.fixture
def store(past: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(past, tmp_path / "store"))


def lines_of(store: Path, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("history", "--store", store, "--limit", "0", *words)["timeline"]["lines"]
    return found


def rails(shown: str) -> str:
    """What is drawn of a graph, without what is written beside it."""
    heading, *lines = shown.splitlines()[:-1]
    width = heading.rindex("v2" if "v2" in heading else "v1") + len("v22 ")
    drawn = [line[:width].rstrip() for line in (heading, *lines)]
    return "\n" + "\n".join(line for line in drawn if line) + "\n"


def test_everything_that_happened_is_told_the_newest_first(store: Path) -> None:
    """Commits of the log, each as what it was, with the version that it left the store at."""
    before = bytes_of(store)
    told = lines_of(store)
    assert [(line["happening"], line["version"]) for line in told] == [
        ("fenced", 17),
        ("undone", 17),
        ("fenced", 18),
        ("changed", 18),
        ("migrated", 18),
        ("migrated", 17),
        ("migrated", 16),
        ("step failed", 15),
        ("fenced", 15),
        ("step begun", 15),
        ("fenced", 15),
        ("changed", 15),
        ("begun", 15),
    ]
    assert bytes_of(store) == before


def test_ordinary_commits_are_one_line_that_holds_them_all(store: Path) -> None:
    """With the collections that they touched; and a run that ended at once is one line with its beginning."""
    told = lines_of(store)
    changed, migrated = told[3], told[4]
    assert [moment["collections"] for moment in changed["moments"]] == [{"role": 1}, {"role": 1}]
    assert [moment["happening"] for moment in migrated["moments"]] == ["migrated", "step begun"]
    shown = text("history", "--store", store)
    assert "2 commits: role\n" in re.sub(" +\n", "\n", shown)
    assert "v17_to_v18 applied: " in shown


def test_unfolded_every_commit_has_a_line(store: Path) -> None:
    """As many as there are from the frontier on, whether folded or not."""
    alone, folded = lines_of(store, "--all"), lines_of(store)
    state = state_of(store)
    expected = list(range(state.version, state.frontier - 1, -1))
    assert [moment["ts"] for line in alone for moment in line["moments"]] == expected
    assert [moment["ts"] for line in folded for moment in line["moments"]] == expected
    assert all(len(line["moments"]) == 1 for line in alone)
    assert text("history", "--all", "--limit", "0", "--store", store).count("1 commit: role") == 2


def test_runs_of_steps_are_told_with_how_they_ended(store: Path) -> None:
    """As their events said then: rows, times, the reason of a failure."""
    told = lines_of(store)
    (failed,) = told[7]["moments"][0]["runs"]
    assert (failed["step"], failed["state"], failed["version"]) == ("v15_to_v16", "ERROR", 16)
    assert failed["error"] == "its process ended before the step did"
    (applied,) = told[4]["moments"][0]["runs"]
    assert (applied["step"], applied["state"]) == ("v17_to_v18", "MIGRATED")
    assert applied["rows_after"] > 0
    (undone,) = told[1]["moments"][0]["runs"]
    assert (undone["event"], undone["state"]) == (applied["event"], "UNDONE")
    shown = " ".join(text("history", "--store", store).split())
    assert "v15_to_v16 failed: its process ended before the step did" in shown
    assert "v17_to_v18 undone: back to version 17" in shown


def test_whoever_took_over_is_named(store: Path) -> None:
    """With generation and epoch, as the commit has them."""
    (moment,) = lines_of(store)[0]["moments"]
    fence = state_of(store).fence
    assert (moment["deploy_generation"], moment["epoch"], moment["holder"]) == (*fence, "test")
    assert f"taken over by test (generation 0, epoch {fence.epoch})" in text("history", "--store", store)


def test_an_aborted_run_is_told_with_the_fence_that_ended_it(store_of: Stores) -> None:
    """It was one commit, so it is one line."""
    store = store_of(15)
    kill_in_step(store, 16)
    call("abort", "--yes", "--store", store)
    fenced, begun = lines_of(store)[:2]
    assert (fenced["happening"], begun["happening"]) == ("fenced", "step begun")
    assert [run["state"] for run in fenced["moments"][0]["runs"]] == ["ERROR"]
    shown = " ".join(text("history", "--store", store).split())  # broken into lines by the length of the holder's name
    assert re.search(r"epoch \d+\); v15_to_v16 failed: aborted by ", shown)


def test_the_graph_has_a_rail_for_every_version(store: Path) -> None:
    """Steps lead to the right, undos to the left, and a run that failed ends before the rail it was to reach."""
    assert rails(text("history", "--graph", "--store", store)) == RAILS


def test_a_store_that_was_initialised_begins_with_its_creation(store_of: Stores) -> None:
    """Before that it had no version; it is drawn on the rail of its first."""
    store = store_of()
    assert [line["happening"] for line in lines_of(store)][-3:] == ["begun", "fenced", "created"]
    shown = text("history", "--graph", "--store", store)
    assert rails(shown).split() == [f"v{PROJECT.current}", "●", "◉", "╪", "◉"], "builtins come last"
    assert "retired" not in shown


def test_maintenance_is_told(store_of: Stores, tmp_path: Path) -> None:
    """A consolidation among commits is a part of their line, and one by itself has its own."""
    store = store_of()
    with open_catalog(store) as catalog:
        for number in range(3):
            with catalog.transaction() as tx:
                tx.insert(SettingKey(name=f"s{number}"), SettingValue(value="x"))
    call("debug", "compact", "setting", "--store", store)
    assert call("debug", "copy", store, tmp_path / "copy")
    told = lines_of(store)
    assert told[0]["happening"] == "changed"
    assert [moment["happening"] for moment in told[0]["moments"]] == ["consolidated", *["changed"] * 3]
    assert "3 commits: setting; 1 consolidation" in text("history", "--store", store)
    lead(store)
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="s3"), SettingValue(value="x"))
    call("debug", "compact", "setting", "--store", store)
    assert "consolidated setting: " in text("history", "--all", "--store", store)
    (first,) = lines_of(tmp_path / "copy")
    assert (first["happening"], first["version"]) == ("begun", PROJECT.current)


def test_what_is_retired_is_said_and_migrations_are_told_all_the_same(store: Path) -> None:
    """Their events outlive the commits."""
    call("debug", "vacuum", "--retention", "0s", "--yes", "--store", store)
    told = call("history", "--store", store)["timeline"]
    state = state_of(store)
    assert [line["happening"] for line in told["lines"]] == ["retained", "fenced"]
    assert told["retired_before"] == state.frontier == told["lines"][-1]["moments"][0]["ts"]
    assert [(run["step"], run["state"]) for run in told["earlier"]] == [
        ("v17_to_v18", "UNDONE"),
        ("v16_to_v17", "MIGRATED"),
        ("v15_to_v16", "MIGRATED"),
        ("v15_to_v16", "ERROR"),
    ]
    shown = text("history", "--graph", "--store", store)
    assert f"commits before ts {state.frontier} are retired" in " ".join(shown.split())
    assert rails(shown).split("\n")[2:-1] == [
        *("        ○", "        ╪", "        ┊", "        ◆───╮", "    ╭───◆", "╭───◆", "├───✗")
    ]
    limited = call("history", "--limit", "3", "--store", store)["timeline"]
    assert (len(limited["lines"]), len(limited["earlier"]), limited["more"]) == (2, 1, True)


def test_a_limit_says_that_there_is_more(store: Path) -> None:
    """So many lines, whatever they hold."""
    told = call("history", "--limit", "4", "--store", store)["timeline"]
    assert (len(told["lines"]), told["more"], told["retired_before"]) == (4, True, None)
    assert "and there is more: see --limit" in text("history", "--limit", "4", "--store", store)
    assert "there is more" not in text("history", "--limit", "13", "--store", store)


def test_a_beginning_is_a_ts_a_time_or_a_duration(store: Path) -> None:
    """And the commits of before it are left out."""
    state = state_of(store)
    assert [moment["ts"] for line in lines_of(store, "--since", str(state.version)) for moment in line["moments"]] == [
        state.version
    ]
    log = open_log(store)
    undone = next(c for c in log.commits(state.frontier, state.version) if c.operation is Operation.UNDO)
    from_time = lines_of(store, "--all", "--since", "1970-01-01T00:00:00")
    assert len(from_time) == state.version - state.frontier + 1
    assert lines_of(store, "--since", "2999-01-01") == []
    assert len(lines_of(store, "--since", "1h")) == 13
    assert lines_of(store, "--all", "--since", str(undone.version))[-1]["happening"] == "undone"
    what, _, fix = complaint("history", "--since", "yesterday", "--store", store, expect=ExitCode.USAGE)
    assert what == "--since yesterday is neither a ts nor a time"
    assert fix == "next: write it as 41, 2h or 2026-11-17T09:30"


def test_a_terminal_has_colours_and_a_pipe_has_none(store: Path) -> None:
    """And where there are no such characters, others stand for the rails."""
    with on_screen("history", "--graph", "--store", store) as child:
        assert ended(child) == ExitCode.DONE
        assert COLOUR.search(child.before)
        assert "├───✗" in ESCAPE.sub("", child.before)
    piped = in_program("history", "--graph", "--store", store).out
    assert not ESCAPE.search(piped)
    assert "├───✗" in piped
    plain = in_program("history", "--graph", "--store", store, changed={"PYTHONIOENCODING": "ascii"}).out
    assert plain.isascii()
    assert "|---x" in plain
