"""`subscribe`: a collection followed live, on a terminal and in a pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from catalog import open_catalog
from catalog.cli.answer import ExitCode
from catalog.cli.commands.subscribe import Changes
from catalog.cli.screen import Screen
from catalog.cli.store_reader import ChangedRow
from catalog.cli.text.subscribe import render_changes
from catalog.objects import SettingKey, SettingValue
from tests.cli.commands import MAIN, call, complaint, ended, in_process, on_screen, text, three_lines
from tests.cli.conftest import CURRENT, Stores
from tests.cli.terminal import COLOUR, ESCAPE, variables

GREEN, RED, YELLOW = (f"\x1b\\[{number}m" for number in (32, 31, 33))


def put(store: Path, **values: str | None) -> int:
    """Set settings, or delete those of no value, in one commit; answer its ts."""
    with open_catalog(store, "member") as catalog:
        with catalog.transaction() as tx:
            for name, value in values.items():
                if value is None:
                    tx.delete(SettingKey(name=name))
                else:
                    tx.upsert(SettingKey(name=name), SettingValue(value=value))
        return catalog.ts


def newest(store: Path) -> int:
    return int(call("info", "--store", store)["ts"])


def lines(*words: str | Path, expect: ExitCode = ExitCode.DONE) -> tuple[list[Any], Any]:
    """What programs are told: a document for each row, and the envelope after them."""
    shown = in_process("subscribe", *words, "--format", "json")
    assert (shown.exit, shown.err) == (expect, ""), shown
    *rows, envelope = map(json.loads, shown.out.splitlines())
    assert list(envelope) == ["ok", "command", "data", "error"]
    assert [list(row) for row in rows] == [["collection", "key", "value", "ts", "diff"]] * len(rows)
    return rows, envelope


def told(rows: list[Any]) -> list[tuple[int, int, str, str]]:
    return [(row["ts"], row["diff"], row["key"]["name"], row["value"]["value"]) for row in rows]


def test_a_person_sees_changes_as_they_come(store_of: Stores) -> None:
    """What comes is green, what goes is red, and of a row that changed only what differs; Ctrl-C says how to go on."""
    store = store_of()
    with on_screen("subscribe", "setting", "--store", store) as child:
        child.expect(rf'ts {newest(store)}.*{GREEN}\+ {{"name": "default_database"}}.*{GREEN}\+   value: "default"')
        put(store, colour="red")
        child.expect(rf'{GREEN}\+ {{"name": "colour"}}.*{GREEN}\+   value: "red"')
        changed = put(store, colour="green", default_cluster=None)
        child.expect(rf"ts {changed}, \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\dZ")
        child.expect(rf'{YELLOW}~ {{"name": "colour"}}.*{RED}-   value: "red".*{GREEN}\+   value: "green"')
        child.expect(rf'{RED}- {{"name": "default_cluster"}}.*{RED}-   value: "default"[^\n]*\n')
        child.sendintr()
        assert ended(child) == ExitCode.INTERRUPTED
        summary, *stopped = ESCAPE.sub("", child.before).replace("^C", "").split()
        assert " ".join([summary, *stopped]).startswith(
            f"6 changes of setting at version {CURRENT}, up to ts {changed}"
        )
        assert three_lines("\n".join(child.before.replace("\r", "").splitlines()[-3:])) == [
            f"stopped by Ctrl-C, after everything up to ts {changed} was shown",
            "why:  a feed runs until it is stopped",
            f"next: `--since {changed}` continues from there",
        ]
    shown = text("subscribe", "setting", "--since", str(changed), "--once", "--store", store)
    assert shown == f"0 changes of setting at version {CURRENT}, up to ts {changed}\n"


def test_what_differs_is_shown_with_what_it_is_part_of() -> None:
    """Once, and nothing else that stayed as it was."""
    before = {"name": "a", "owner": {"kind": "user", "id": {"system": 2, "of": "x"}}, "tags": ["p", "q"], "size": 1}
    after = {**before, "owner": {"kind": "user", "id": {"system": 3, "of": "y"}}, "tags": ["p"], "size": 1}
    told_rows = tuple(ChangedRow("item", {"id": 1}, value, 7, diff) for value, diff in ((before, -1), (after, 1)))
    assert [str(line) for line in render_changes(Changes(7, None, told_rows))] == [
        "ts 7",
        '~ {"id": 1}',
        "    owner:",
        "      id:",
        "-       system: 2",
        "+       system: 3",
        '-       of: "x"',
        '+       of: "y"',
        "    tags:",
        '-     - "q"',
    ]


def test_long_rows_are_not_cut_on_a_narrow_terminal(store_of: Stores) -> None:
    """Whatever the width: a line is a field."""
    store, long = store_of(), "x" * 200
    put(store, long=long)
    with on_screen("subscribe", "setting", "--once", "--store", store, width=50) as child:
        assert ended(child) == ExitCode.DONE
        assert f'value: "{long}"' in child.before.replace("\r\n", "")


def test_an_undo_ends_a_feed_with_the_ts_to_go_on_from(store_of: Stores) -> None:
    """Whoever watches is told what was before it, then why there is no more; the rest has other types."""
    store = store_of(21, 22)
    call("start", "--store", store)
    since = newest(store)
    with on_screen("subscribe", "setting", "--since", str(since), "--store", store) as child:
        changed = put(store, colour="red")
        child.expect('value: "red"')
        call("undo", "--yes", "--store", store)
        assert ended(child) == ExitCode.FAILED
        last = child.before.replace("\r", "").splitlines()[-3:]
        assert three_lines("\n".join(last))[0].startswith("the store went from version 22 to 21 at ts ")
        again = last[2].partition("feeds start again from ts ")[2].partition(",")[0]
        assert f"by `--since {again}`" in last[2]
    rows, envelope = lines("setting", "--since", str(since), "--once", "--store", store, expect=ExitCode.FAILED)
    assert told(rows) == [(changed, 1, "colour", "red")]
    assert envelope["error"]["code"] == "VersionChangedError"
    assert (envelope["data"]["ts"], envelope["data"]["changes"]) == (int(again) - 1, 1)
    rows, envelope = lines("setting", "--since", again, "--once", "--store", store)
    assert (rows, envelope["data"]["version"]) == ([], 21)


def test_programs_read_a_line_for_each_row_and_the_envelope_last(store_of: Stores) -> None:
    """Rows as they are, or changes alone; a consolidation is none."""
    store = store_of()
    before = newest(store)
    rows, envelope = lines("setting", "--once", "--store", store)
    shown = call("show", "setting", "--store", store)["rows"]
    assert [(row["key"], row["value"]) for row in rows] == [(row["key"], row["value"]) for row in shown]
    assert {(row["ts"], row["diff"]) for row in rows} == {(before, 1)}
    assert envelope["data"] == {
        "store": str(store),
        "collection": "setting",
        "version": CURRENT,
        "since": None,
        "ts": before,
        "changes": 2,
    }
    first, second = put(store, colour="red"), put(store, colour="green")
    call("debug", "compact", "--store", store)
    rows, envelope = lines("setting", "--since", str(before), "--once", "--store", store)
    assert told(rows) == [
        (first, 1, "colour", "red"),
        (second, -1, "colour", "red"),
        (second, 1, "colour", "green"),
    ]
    assert envelope["data"]["ts"] == newest(store) > second
    assert told(lines("setting", "--since", str(before), "--until", str(first), "--store", store)[0]) == told(rows)[:1]


def test_a_time_says_since_when_as_well(store_of: Stores) -> None:
    """A while ago, or a day; nothing is left out of what is retained."""
    store = store_of()
    put(store, colour="red")
    every = lines("setting", "--since", "0", "--once", "--store", store)[0]
    assert len(every) == 3
    for since, expected in (("2000-01-01", every), ("10h", every), ("now", []), ("2999-01-01T00:00", [])):
        assert lines("setting", "--since", since, "--once", "--store", store)[0] == expected, since


@pytest.mark.parametrize("version", [14, 19])
def test_an_older_store_is_followed_with_its_own_types(store_of: Stores, version: int) -> None:
    """Rows that are JSON already, and messages of that version."""
    store = store_of(version)
    rows, envelope = lines("role", "--once", "--store", store)
    shown = call("show", "role", "--limit", "0", "--store", store)["rows"]
    assert [(row["key"], row["value"]) for row in rows] == [(row["key"], row["value"]) for row in shown]
    assert envelope["data"]["version"] == version
    since = str(call("info", "--store", store)["frontier"])
    assert lines("role", "--since", since, "--once", "--store", store)[1]["data"]["version"] == version


def test_a_pipe_gets_lines_at_once_until_it_is_told_to_end(store_of: Stores) -> None:
    """Without colours and without waiting for more; SIGTERM ends it with the envelope, and so does a closed pipe."""
    store = store_of()
    with piped("setting", "--since", str(newest(store)), "--format", "json", "--store", str(store)) as process:
        assert process.stdout is not None
        ts = 0
        for colour in ("red", "green"):
            ts = put(store, colour=colour)
            while (row := json.loads(process.stdout.readline()))["value"]["value"] != colour:
                assert row["diff"] == -1
            assert row["ts"] == ts
        process.send_signal(signal.SIGTERM)
        (left,) = process.stdout.read().splitlines()
        assert process.wait() == ExitCode.TERMINATED
        told_last = json.loads(left)
        assert (told_last["ok"], told_last["data"]["ts"]) == (False, ts)
        assert told_last["error"]["next"] == f"`--since {ts}` continues from there"
    with piped("setting", "--store", str(store)) as process:
        assert process.stdout is not None
        assert not COLOUR.search(process.stdout.readline())
        process.stdout.close()
        put(store, colour="blue")
        assert process.wait() == ExitCode.DONE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_last_ts_is_that_of_the_last_row_whenever_a_signal_comes(
    store_of: Stores, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Also right after a row was written: a caller that goes on from that ts gets no row twice."""
    store = store_of()
    since = newest(store)
    first, second = put(store, colour="red"), put(store, colour="green")
    stream = Screen.stream

    def interrupted(screen: Screen, changes: Changes) -> None:
        stream(screen, changes)
        signal.raise_signal(number)

    before = {own: signal.signal(own, signal.default_int_handler) for own in (signal.SIGINT, signal.SIGTERM)}
    try:
        with monkeypatch.context() as patched:
            patched.setattr(Screen, "stream", interrupted)
            rows, envelope = lines("setting", "--since", str(since), "--store", store, expect=ExitCode.INTERRUPTED)
    finally:
        for own, handler in before.items():
            signal.signal(own, handler)
    assert told(rows) == [(first, 1, "colour", "red")]
    assert (envelope["data"]["ts"], envelope["data"]["changes"]) == (first, 1)
    rows, _ = lines("setting", "--since", str(first), "--once", "--store", store)
    assert {row["ts"] for row in rows} == {second}


def test_an_end_to_come_is_waited_for_without_busy_looping(store_of: Stores) -> None:
    """An idle feed costs next to nothing, and ends when its last ts is there."""
    store = store_of()
    until = newest(store) + 1
    with piped("setting", "--until", str(until), "--store", str(store)) as process:
        assert process.stdout is not None
        assert "ts" in process.stdout.readline()
        began_s, waited_s = _cpu_s(process.pid), 2
        time.sleep(waited_s)
        assert _cpu_s(process.pid) - began_s < waited_s / 4
        assert process.poll() is None
        assert put(store, colour="red") == until
        left = process.stdout.read()
        assert left.endswith(f"\n3 changes of setting at version {CURRENT}, up to ts {until}\n")
        assert process.wait() == ExitCode.DONE


def test_a_ts_that_is_retired_is_refused(store_of: Stores) -> None:
    """With the earliest that can be read."""
    store = store_of()
    put(store, colour="red")
    call("debug", "vacuum", "--retention", "0s", "--yes", "--store", store)
    frontier = call("info", "--store", store)["frontier"]
    what, _, fix = complaint("subscribe", "setting", "--since", "1", "--once", "--store", store)
    assert what.startswith("ts 1 of ")
    assert fix == f"next: the earliest ts that can be read is {frontier}"


@contextmanager
def piped(*words: str) -> Iterator[subprocess.Popen[str]]:
    """The real program, whose output is read while it runs."""
    command = [sys.executable, "-c", MAIN, "subscribe", *words]
    with subprocess.Popen(command, env=variables(), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _cpu_s(pid: int) -> float:
    """What a process has used so far, in seconds of a core."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
