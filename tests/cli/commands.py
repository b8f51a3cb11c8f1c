"""Commands as people and programs run them: in this process, in one of their own, and on a terminal."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pexpect

from catalog.cli.answer import ExitCode
from catalog.cli.app import run
from catalog.cli.main_group import root
from tests.cli.terminal import variables

MAIN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if the tests run in the background of a shell
from catalog.cli.main_group import main
main()
"""
TERMINAL_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command wrote, and how it ended."""

    exit: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Failure:
    """What the envelope says of a command that did not succeed."""

    data: Any
    code: str
    message: str
    why: str
    next: str


def call(*words: str | Path, expect: ExitCode = ExitCode.DONE) -> Any:  # noqa: ANN401 - what the command answers
    """The data of a command that succeeds, from its JSON."""
    told = _envelope(words, expect)
    assert told["error"] is None, told
    return told["data"]


def fail(*words: str | Path, expect: ExitCode = ExitCode.FAILED) -> Failure:
    """How a command says in its JSON that it did not succeed."""
    told = _envelope(words, expect)
    assert told["error"].keys() == {"code", "message", "why", "next"}
    assert all(isinstance(part, str) and part for part in told["error"].values()), told
    return Failure(told["data"], **told["error"])


def text(*words: str | Path, expect: ExitCode = ExitCode.DONE) -> str:
    """What a command shows people on standard output."""
    shown = in_process(*words)
    assert shown.exit == expect, shown
    assert ("why:  " in shown.err) is (expect is not ExitCode.DONE), shown
    return shown.out


def complaint(*words: str | Path, expect: ExitCode = ExitCode.FAILED) -> list[str]:
    """The three lines of a command that fails."""
    shown = in_process(*words)
    assert shown.exit == expect, shown
    return three_lines(shown.err)


def three_lines(written: str) -> list[str]:
    """What happened, why, and what to do next; nothing else, least of all a traceback."""
    lines = written.splitlines()
    assert len(lines) == 3, written
    assert lines[0], written
    assert (lines[1][:6], lines[2][:6]) == ("why:  ", "next: "), written
    assert "Traceback" not in written, written
    return lines


def in_process(*words: str | Path) -> Shown:
    """Run a command here, with nobody at the keyboard."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", io.StringIO()):
        ended = run(root, [str(word) for word in words])
    return Shown(ended, out.getvalue(), err.getvalue())


def in_program(
    *words: str | Path,
    expect: ExitCode | None = ExitCode.DONE,
    cwd: Path | None = None,
    changed: Mapping[str, str] | None = None,
) -> Shown:
    """Run the real program, without a terminal; some of its variables may be others than here."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, words)],
        env=variables(**(changed or {})),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    shown = Shown(done.returncode, done.stdout, done.stderr)
    assert expect is None or shown.exit == expect, shown
    return shown


@contextmanager
def on_screen(*words: str | Path, width: int = 120, **changed: str) -> Iterator[pexpect.spawn]:
    """The real program on a terminal of its own, where somebody types."""
    child = pexpect.spawn(
        sys.executable,
        ["-c", MAIN, *map(str, words)],
        env=variables(**{"TERM": "xterm-256color", **changed}),
        encoding="utf-8",
        dimensions=(40, width),
        timeout=TERMINAL_TIMEOUT_S,
    )
    try:
        yield child
    finally:
        child.close(force=True)


def ended(child: pexpect.spawn) -> int:
    """The exit code of a program on a terminal, once it has written all that it had to."""
    child.expect(pexpect.EOF)
    return int(child.wait())


def bytes_of(folder: Path) -> dict[str, str]:
    """Every path of a store and a hash of what is there, to be compared."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }


def _envelope(words: Sequence[str | Path], expect: ExitCode) -> Any:  # noqa: ANN401 - JSON
    """The one document on standard output, and nothing besides it."""
    shown = in_process("--format", "json", *words)
    assert shown.exit == expect, shown
    assert not shown.err, shown
    assert shown.out.count("\n") == 1, shown
    assert shown.out.endswith("\n")
    told = json.loads(shown.out)
    assert list(told) == ["ok", "command", "data", "error"]
    assert told["ok"] is (told["error"] is None) is (expect is ExitCode.DONE)
    assert told["command"], told
    return told
