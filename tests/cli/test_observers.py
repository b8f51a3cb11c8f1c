"""`start` and `apply` are watched from outside: by a log, by metrics, and by a file that says whether they are done."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from catalog import open_catalog
from catalog.cli.answer import ExitCode
from catalog.engine.store.catalog import Catalog
from tests.cli.commands import MAIN, Shown, bytes_of, in_process, in_program, three_lines
from tests.cli.conftest import CURRENT, Stores
from tests.cli.terminal import variables
from tests.engine.migrate.stores import version_of
from tests.engine.store.observers.test_prometheus import parsed

WAIT_S = 60


def logged(shown: Shown) -> list[dict[str, Any]]:
    """What a command logged, and nothing else, to standard error."""
    return [json.loads(line) for line in shown.err.splitlines()]


def metric(path: Path, name: str) -> float:
    (value,) = [value for (own, _), value in parsed(path.read_text(encoding="utf-8")).items() if own == name]
    return value


@contextmanager
def waiting(store: Path, *words: str | Path) -> Iterator[tuple[Catalog, subprocess.Popen[str]]]:
    """A leader, and a start that waits for it, as its log has said."""
    with open_catalog(store) as leader:
        command = [sys.executable, "-c", MAIN, "start", "--store", str(store), "--log-format", "json", *map(str, words)]
        with subprocess.Popen(
            command, env=variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if json.loads(line)["event"] == "waiting_for_leader":
                    break
            yield leader, process


def test_a_log_is_lines_of_json_and_nothing_else(store_of: Stores) -> None:
    """On standard error; the answer stays on standard output, and no bar is drawn."""
    shown = in_program("start", "--log-format", "json", "--store", store_of(21))
    events = [line["event"] for line in logged(shown)]
    assert [event for event in events if event != "maintained"] == [
        *("opening", "fence_taken", "step_began", "step_committed", "builtins_migrated", "ready", "closed"),
    ]
    assert "is upgraded from version 21" in shown.out
    envelope = in_program("start", "--log-format", "text", "--format", "json", "--store", store_of())
    assert json.loads(envelope.out)["data"]["version"] == CURRENT
    assert [line.split()[2] for line in envelope.err.splitlines()] == ["opening", "fence_taken", "ready", "closed"]


def test_an_error_is_a_line_of_the_log(store_of: Stores, tmp_path: Path) -> None:
    """Once, with all that people are told in three lines; the exit code is the same."""
    for words, code, ended in (
        (("start", "--read-only", "--store", str(tmp_path / "no")), "NotInitializedError", ExitCode.FAILED),
        (("start", "--read-only", "--store", str(store_of(21))), "UpgradeNeededError", ExitCode.PENDING),
        (("apply", "--until", "99", "--store", str(store_of(21))), "UsageError", ExitCode.USAGE),
        (("start", "--store", str(store_of()), "--no-such"), "UsageError", ExitCode.USAGE),
        (("start",), "UsageError", ExitCode.USAGE),
    ):
        shown = in_process(*words, "--log-format", "json")
        assert shown.exit == ended, shown
        failed = [line for line in logged(shown) if line["event"] == "failed"]
        assert [(line["code"], line["level"]) for line in failed] == [(code, "error")], shown
        assert all(failed[0][part] for part in ("what", "why", "next"))
        assert in_process(*words).exit == ended


def test_it_can_be_set_for_good(store_of: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By variables, or in a file, whose folder the paths are relative to; other commands do not mind."""
    store = store_of()
    (tmp_path / "catalog.toml").write_text(
        '[tool.catalog]\nlog_format = "json"\nmetrics_file = "m.prom"\nready_file = "ready"\n', encoding="utf-8"
    )
    config = ("--config-file", tmp_path / "catalog.toml", "--store", store)
    assert [line["event"] for line in logged(in_process("start", *config))][-1] == "closed"
    assert json.loads((tmp_path / "ready").read_text(encoding="utf-8"))["state"] == "ready"
    assert metric(tmp_path / "m.prom", "catalog_ready") == 1
    assert in_process("info", *config).err == ""
    three_lines(in_process("show", "rol", *config).err)
    monkeypatch.setenv("CATALOG_LOG_FORMAT", "text")
    monkeypatch.setenv("CATALOG_READY_FILE", str(tmp_path / "other"))
    shown = in_process("apply", "--store", store)
    assert [line.split()[2] for line in shown.err.splitlines()] == ["opening", "ready", "closed"]
    assert (tmp_path / "other").exists()
    assert in_process("start", "--store", store, "--no-such").err.split()[2] == "failed"
    three_lines(in_process("info", "--store", store, "--no-such").err)


def test_the_ready_file_is_there_when_the_upgrade_is_done(store_of: Stores, tmp_path: Path) -> None:
    """And not before: neither at a version on the way, nor where migrations are pending, nor in a dry run."""
    store, ready = store_of(21), tmp_path / "ready"
    told = ("--store", store, "--ready-file", ready)
    for words, ended in (
        (("apply", "--until", "21"), 0),
        (("start", "--read-only"), 3),
        (("start", "--timeout", "0"), 1),
    ):
        ready.write_text("left behind", encoding="utf-8")
        assert in_process(*words, *told).exit == ended
        assert not ready.exists(), words
    ready.write_text("left behind", encoding="utf-8")
    assert in_process("apply", "--dry-run", *told).exit == 0
    assert ready.read_text(encoding="utf-8") == "left behind"
    current = store_of()
    for verb in ("apply", "start", "start --read-only"):
        ready.unlink()
        assert in_process(*verb.split(), "--store", current, "--ready-file", ready).exit == 0
        assert json.loads(ready.read_text(encoding="utf-8"))["version"] == CURRENT


def test_metrics_tell_of_steps_and_failures(store_of: Stores, tmp_path: Path) -> None:
    """The file outlasts the command."""
    metrics, store = tmp_path / "m.prom", store_of(21)
    assert in_process("apply", "--store", store, "--metrics-file", metrics).exit == 0
    assert metric(metrics, "catalog_steps_applied") == metric(metrics, "catalog_ready") == 1
    assert metric(metrics, "catalog_store_version") == version_of(store) == CURRENT
    assert in_process("start", "--read-only", "--store", store_of(21), "--metrics-file", metrics).exit == 3
    assert (metric(metrics, "catalog_failed"), metric(metrics, "catalog_ready")) == (1, 0)
    assert 'code="UpgradeNeededError"' in metrics.read_text(encoding="utf-8")
    assert in_process("start", "--read-only", "--store", tmp_path / "no", "--metrics-file", metrics).exit == 1
    assert f'store="{tmp_path / "no"}",code="NotInitializedError"' in metrics.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_done(store_of: Stores, tmp_path: Path) -> None:
    """The store stays at its version, and its leader leads."""
    store = store_of(21)
    before = bytes_of(store)
    for flag in ("--metrics-file", "--ready-file"):
        shown = in_process("start", "--store", store, flag, tmp_path / "no" / "file")
        assert shown.exit == ExitCode.USAGE
        assert three_lines(shown.err)[0].startswith(f"{flag} cannot be written: ")
    assert bytes_of(store) == before


def test_a_secret_is_in_no_log_and_no_file(tmp_path: Path) -> None:
    """Whatever else is called like it."""
    folder = tmp_path / "hunter2-of-ann"
    folder.mkdir()
    shown = in_program(
        *("start", "--store", folder / "store", "--log-format", "json", "--storage-option"),
        *("aws_secret_access_key=hunter2-of-ann", "--metrics-file", tmp_path / "m", "--ready-file", tmp_path / "r"),
    )
    written = [shown.err, shown.out, *(path.read_text(encoding="utf-8") for path in (tmp_path / "m", tmp_path / "r"))]
    assert [text.count("hunter2") for text in written] == [0] * 4
    assert all("********" in text for text in written)
    assert logged(shown)


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_a_start_that_is_stopped_is_not_ready(store_of: Stores, tmp_path: Path, asked: signal.Signals) -> None:
    """What an earlier one left is gone from the beginning, and its log ends with why."""
    metrics, ready = tmp_path / "m.prom", tmp_path / "ready"
    ready.write_text("left behind", encoding="utf-8")
    with waiting(store_of(), "--metrics-file", metrics, "--ready-file", ready) as (_, process):
        assert not ready.exists()
        assert metric(metrics, "catalog_ready") == 0
        process.send_signal(asked)
        _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 128 + asked
    assert [json.loads(line)["code"] for line in err.splitlines()] == ["StoppedError"]
    assert not ready.exists()
    assert (metric(metrics, "catalog_ready"), metric(metrics, "catalog_failed")) == (0, 1)


def test_files_that_are_lost_on_the_way_harm_nothing(store_of: Stores, tmp_path: Path) -> None:
    """The log says so once for each, and the start ends well."""
    place = tmp_path / "run"
    place.mkdir()
    with waiting(store_of(), "--metrics-file", place / "m.prom", "--ready-file", place / "ready") as (leader, process):
        shutil.rmtree(place)
        leader.close()
        _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, err
    events = [json.loads(line) for line in err.splitlines()]
    assert [line["event"] for line in events].count("observer_failed") == 2
    assert {line["level"] for line in events if line["event"] == "observer_failed"} == {"warning"}
    assert "ready" in [line["event"] for line in events]
