"""Whatever is wrong with a call or a store: three lines, an exit code, no traceback, and nothing is changed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from catalog.cli.answer import ExitCode
from tests.cli.commands import MAIN, Shown, bytes_of, in_process, in_program, three_lines
from tests.cli.conftest import Stores
from tests.cli.malformed import ANSWERED, CONFIG_FILES, DAMAGES, READING, STORE, WRITING, Case, wrong_calls
from tests.cli.terminal import variables

CALLS = list(dict.fromkeys(wrong_calls()))
SAMPLE = 40
"""Of so many calls one is made in a process of its own."""


def _expect_refusal(shown: Shown, words: Sequence[str]) -> None:
    assert 1 <= shown.exit <= 6, (words, shown)
    assert shown.out == "" or "fsck" in words, (words, shown)
    what, *_ = three_lines(shown.err)
    assert not what.startswith("unexpected "), (words, shown)


def _filled(case: Case, store: Path) -> list[str]:
    return [str(store) if word == STORE else word for word in case]


def test_no_wrong_call_does_anything(store_of: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least 200 of them; each is refused for what it is, and none as unexpected."""
    assert len(CALLS) >= 200
    store = store_of()
    monkeypatch.chdir(tmp_path)
    before = bytes_of(tmp_path)
    for case in CALLS:
        words = _filled(case, store)
        _expect_refusal(in_process(*words), words)
    assert bytes_of(tmp_path) == before


def test_programs_are_told_as_well(store_of: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same calls with JSON asked for: one envelope, whose three parts are lines."""
    store = store_of()
    monkeypatch.chdir(tmp_path)
    for case in CALLS:
        words = ["--format", "json", *_filled(case, store)]
        shown = in_process(*words)
        if "yaml" in words:  # the later of the two holds, and is none
            continue
        told = json.loads(shown.out)
        assert (told["ok"], told["data"], shown.err) == (False, None, ""), (words, shown)
        assert 1 <= shown.exit <= 6, (words, shown)
        assert not any("\n" in line for line in told["error"].values()), (words, shown)


def test_the_real_program_refuses_as_well(store_of: Stores, tmp_path: Path) -> None:
    """A sample of those calls, each in a process of its own."""
    store = store_of()
    before = bytes_of(tmp_path)
    for case in CALLS[::SAMPLE]:
        words = _filled(case, store)
        if any("\0" in word for word in words):
            continue  # which no process can be given
        _expect_refusal(in_program(*words, expect=None, cwd=tmp_path), words)
    assert bytes_of(tmp_path) == before


@pytest.mark.parametrize("kind", CONFIG_FILES)
def test_a_wrong_file_of_settings_is_named(
    store_of: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Whichever command reads it; it is never passed over."""
    del store_of
    monkeypatch.chdir(tmp_path)
    CONFIG_FILES[kind](tmp_path)
    before = bytes_of(tmp_path)
    for path, own in {**READING, **WRITING}.items():
        words = ["--config-file", "catalog.toml", *path.split(), *own]
        shown = in_process(*words)
        _expect_refusal(shown, words)
        assert shown.exit == ExitCode.USAGE, (words, shown)
    assert bytes_of(tmp_path) == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_stays_as_it_is(store_of: Stores, tmp_path: Path, damage: str) -> None:
    """No command that reads or writes stores goes on, and none makes it worse; `repair` is for that."""
    store = store_of()
    DAMAGES[damage](store)
    before = bytes_of(tmp_path)
    for path, own in {**READING, **WRITING, "init": (), "apply --dry-run": (), "start --read-only": ()}.items():
        words = [*path.split(), *own, "--store", str(store)]
        if path not in ANSWERED.get(damage, ()):
            _expect_refusal(in_process(*words), words)
        elif damage != "a folder of nothing" and path in READING:
            assert in_process(*words).exit == ExitCode.DONE
        assert bytes_of(tmp_path) == before, words


@pytest.mark.parametrize("path", [*READING, *WRITING])
def test_an_object_store_where_nobody_listens_is_said_to_be_out_of_reach(path: str) -> None:
    """Within seconds, whatever was to be done there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        options = {
            "aws_endpoint_url": f"http://127.0.0.1:{taken.getsockname()[1]}",
            "aws_allow_http": "true",
            "aws_access_key_id": "key",
            "aws_secret_access_key": "never-shown",
            "aws_region": "us-east-1",
            "max_retries": "1",
            "retry_timeout": "2s",
        }
        pairs = [word for name, value in options.items() for word in ("--storage-option", f"{name}={value}")]
        words = [*path.split(), *{**READING, **WRITING}[path], "--store", "s3://bucket/store", *pairs]
        began = time.monotonic()
        shown = in_process(*words)
    _expect_refusal(shown, words)
    assert "s3://bucket/store" in shown.err + shown.out
    assert "never-shown" not in shown.err + shown.out
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("uri", ["gopher://x/y", "s3://", "s3:///x", "://", "http://[", "s3://bu cket/x"])
def test_an_address_of_no_storage_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    """Nothing is made in its place."""
    monkeypatch.chdir(tmp_path)
    for verb in ("info", "start", "init"):
        options = ("--storage-option", "max_retries=0", "--storage-option", "aws_skip_signature=true")
        words = [verb, "--store", uri, *options, "--storage-option", "aws_endpoint_url=http://127.0.0.1:1"]
        _expect_refusal(in_process(*words), words)
    assert bytes_of(tmp_path) == {}


def test_a_folder_is_no_file(store_of: Stores, tmp_path: Path) -> None:
    """Nor the other way round: what was measured, settings, targets."""
    store = store_of()
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("[]", encoding="utf-8")
    before = bytes_of(tmp_path)
    for words in (
        ["debug", "generate", "--like", "folder", "--store", "new"],
        ["debug", "generate", "--like", "file", "--store", "new"],
        ["debug", "generate", "--like", "none", "--store", "new"],
        ["debug", "copy", str(store), "file"],
        ["debug", "copy", str(store), "file/below"],
        ["debug", "copy", "folder", "new"],
        ["start", "--backup", "file", "--store", str(store)],
        ["create", "why", "--root", "file"],
        ["create", "why", "--root", "folder"],
        ["init", "--store", "file"],
        ["init", "--store", "file/below"],
        ["info", "-c", "folder", "--store", str(store)],
    ):
        filled = [
            str(tmp_path / word) if word.split("/")[0] in {"folder", "file", "new", "none"} else word for word in words
        ]
        _expect_refusal(in_process(*filled), filled)
    assert bytes_of(tmp_path) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_said_to_be(store_of: Stores, tmp_path: Path) -> None:
    """Reading goes on there; what writes is refused."""
    store = store_of()
    folders = [tmp_path, store, *(path for path in store.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert in_process("info", "--store", store).exit == ExitCode.DONE
        for path in ("start", "debug edit", "debug delete"):
            words = [*path.split(), *WRITING[path], "--store", str(store)]
            shown = in_process(*words)
            assert shown.exit == ExitCode.FAILED, shown
        words = ["init", "--store", str(tmp_path / "new")]
        _expect_refusal(in_process(*words), words)
    finally:
        for folder in folders:
            folder.chmod(0o755)


@pytest.mark.parametrize(
    ("words", "redirected", "expected"),
    [
        (["info"], ">&-", ExitCode.FAILED),
        (["info"], ">/dev/full", ExitCode.FAILED),
        (["--format", "json", "info"], ">/dev/full", ExitCode.FAILED),
        (["info"], "2>&-", ExitCode.DONE),
        (["info"], "<&-", ExitCode.DONE),
        (["undo"], "<&- 2>&-", ExitCode.FAILED),
        (["show", "rol"], "2>&-", ExitCode.USAGE),
        (["show", "rol"], ">&- 2>&-", ExitCode.USAGE),
        (["clean"], "<&-", ExitCode.USAGE),
        (["debug", "dump"], "| head -c 1 >/dev/null", ExitCode.DONE),
    ],
)
def test_a_stream_that_is_closed_or_full_is_no_traceback(
    store_of: Stores, words: list[str], redirected: str, expected: ExitCode
) -> None:
    """Nothing is done then that was not to be done, and where it can be said it is."""
    store = store_of()
    before = bytes_of(store)
    script = f'set -o pipefail; "$0" -c "$1" "${{@:2}}" {redirected}'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable, MAIN, *words, "--store", str(store)],
        env=variables(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expected, done
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    if expected is not ExitCode.DONE and "2>" not in redirected:
        three_lines("\n".join(done.stderr.splitlines()[-3:]))
    assert bytes_of(store) == before
