"""What the command line shows; nothing else in this package prints.

Data goes to standard output, all else to standard error. Is handed plain data and knows no store.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from catalog.cli.results import Answer, Exit, envelope, lines_of, plain
from catalog.cli.settings import REDACTED
from catalog.errors import CatalogError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from catalog.cli.feeds import Changes
    from catalog.notices import Observer

_WIDTH_OF_FILES = 100
_SECRET_CHARACTERS_MIN = 4
"""Shorter ones would be found everywhere."""


class OutputError(Exception):
    """Standard output takes no more."""

    def settle(self) -> Exit:
        """Say so where that is still possible; whoever closed a pipe has read enough."""
        if sys.stdout is not None:
            with suppress(OSError):  # or Python complains when it flushes
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(self.__cause__, BrokenPipeError):
            return Exit.DONE
        reason = self.__cause__ or "it is closed"
        why, fix = "what the command found or did is not shown", "give it a terminal, a file or a pipe that takes it"
        _whisper(f"standard output cannot be written: {reason}\nwhy:  {why}\nnext: {fix}\n")
        return Exit.FAILED


@dataclass(slots=True)
class Screen:
    """Where a command shows what it found: as text for people, or as one JSON document."""

    format: str = "text"
    secrets: tuple[str, ...] = ()
    log_format: str | None = None
    """Of a command that logs: then an error is a line of the log too."""

    def show(self, command: str, answer: Answer) -> Exit:
        """Show how a command ended."""
        if self.log_format is not None and answer.error is not None:
            self._log_error(self.log_format, answer.error)
        if self.format == "json":
            _write(sys.stdout, self.redact(envelope(command, answer)) + "\n")
            return answer.exit
        if answer.data is not None:
            self._tell(answer.data, sys.stdout)
        if answer.error is not None and self.log_format is None:
            what, why, fix = lines_of(answer.error)
            _whisper(self.redact(f"{what}\nwhy:  {why}\nnext: {fix}") + "\n")
        return answer.exit

    def _log_error(self, form: str, error: CatalogError) -> None:
        from catalog.observing.logs import log_line  # noqa: PLC0415 - few commands log

        what, why, fix = lines_of(error)
        told = {"code": type(error).__name__, "what": what, "why": why, "next": fix}
        self.log(log_line(form, time.time(), "error", "failed", told))

    def stream(self, changes: Changes) -> None:
        """Show a part of what has no end yet: for programs, a line of JSON for each row, before the one document."""
        if self.format == "text":
            self._tell(changes, sys.stdout)
            return
        for row in changes.rows:
            _write(sys.stdout, self.redact(json.dumps(plain(row), ensure_ascii=False)) + "\n")

    def preview(self, data: Any) -> None:  # noqa: ANN401 - as an answer's
        """Show what will be asked about; on standard error, because it is no answer yet."""
        if self.format == "text" and sys.stderr is not None:
            self._tell(data, sys.stderr)

    def confirm(self, question: str, *, yes: bool, expected: str = "yes", flag: str = "--yes") -> None:
        """Go on if somebody agrees; refuse where nobody can be asked."""
        if yes:
            return
        if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
            raise UsageError(
                "this asks before it does anything, and there is no terminal to ask on",
                question,
                f"give {flag} to agree beforehand",
            )
        _write(sys.stderr, f"{self.redact(question)}\nType {expected} to go on: ")
        if sys.stdin.readline().strip() != expected:
            raise UsageError("nothing was done", f"{expected} was not typed", "run it again to be asked again")

    def ask(self, question: str, answer: str, *, offers: bool = True) -> str:
        """What somebody types; if that is nothing, or nobody can be asked, the given answer."""
        if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
            return answer
        _write(sys.stderr, self.redact(f"{question} [{answer}]: " if offers else f"{question}: "))
        typed = sys.stdin.readline()
        if not typed:
            raise UsageError("nothing was done", "nothing was typed", "run it again to be asked again")
        return typed.strip() or answer

    @contextmanager
    def progress(self) -> Iterator[Observer]:
        """What shows how far a long command is; nothing in a program's pipe that asked for JSON, nor beside a log."""
        if sys.stderr is None or self.log_format is not None or (self.format == "json" and not sys.stderr.isatty()):
            from catalog.notices import ignore  # noqa: PLC0415 - as below

            yield ignore
            return
        from catalog.cli.bars import shown_progress  # noqa: PLC0415 - few commands take long

        with shown_progress(make_console(sys.stderr)) as shown:
            yield shown

    def log(self, line: str) -> None:
        """Write a line of the log, on standard error."""
        _whisper(self.redact(line) + "\n")

    def complain(self, text: str) -> None:
        """Say what went wrong beside the command."""
        if self.log_format is None:
            _whisper(self.redact(text) + "\n")
            return
        from catalog.observing.logs import log_line  # noqa: PLC0415

        self.log(log_line(self.log_format, time.time(), "warning", "observer_failed", {"what": text}))

    @property
    def is_attended(self) -> bool:
        """Whether somebody reads what is shown, and can type."""
        return self.format == "text" and all(map(_is_terminal, (sys.stdin, sys.stdout, sys.stderr)))

    def note(self, text: str) -> None:
        """Say something about an answer that is no part of it."""
        if self.format == "text":
            _whisper(f"{self.redact(text)}\n")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """A sign of life on a terminal, for as long as something takes; it leaves nothing behind."""
        if not _is_terminal(sys.stderr):
            yield
            return
        from catalog.cli.bars import shown_waiting  # noqa: PLC0415 - few commands take long

        with shown_waiting(make_console(sys.stderr), what):
            yield

    def _tell(self, data: Any, out: TextIO | None) -> None:  # noqa: ANN401 - whatever a command answers
        from rich.text import Text  # noqa: PLC0415 - programs that read JSON need none

        from catalog.cli.tables import told  # noqa: PLC0415

        console: Console | None = None
        for part in told(data):
            if isinstance(part, str):
                _write(out, self.redact(part) + "\n")
                continue
            if console is None:
                console = make_console(out)
            with console.capture() as captured:
                console.print(part, soft_wrap=isinstance(part, Text))
            _write(out, self.redact(captured.get()))

    def redact(self, text: str) -> str:
        """A text without secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            if len(secret) >= _SECRET_CHARACTERS_MIN:
                text = text.replace(secret, REDACTED).replace(json.dumps(secret, ensure_ascii=False)[1:-1], REDACTED)
        return text


def show_help(text: str) -> Exit:
    """What there is to ask for, to somebody who asked for nothing."""
    _whisper(f"{text}\n")
    return Exit.USAGE


def show_candidates(lines: Sequence[str]) -> None:
    """What could be typed next, to the script of a shell; to nobody else, and never what went wrong."""
    with suppress(OutputError):
        _write(sys.stdout, "".join(f"{line}\n" for line in lines))


def make_console(file: TextIO | None = None) -> Console:
    """A console for what is to be read or piped: by default on standard output."""
    from rich.console import Console  # noqa: PLC0415 - what is only text needs none

    out = sys.stdout if file is None else file
    _forgive(out)
    width = None if out.isatty() else _WIDTH_OF_FILES
    return Console(file=out, width=width, markup=False, highlight=False, emoji=False)


def say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)


def show_heading(console: Console, text: str) -> None:
    console.print()
    console.print(text, style="bold")


def show_error(console: Console, error: CatalogError) -> None:
    """What happened, why, and what to do next."""
    say(console, *str(error).splitlines())


def show_table(console: Console, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    from catalog.cli.tables import table  # noqa: PLC0415

    console.print(table(names, rows=rows))


def _write(out: TextIO | None, text: str) -> None:
    if out is None:
        raise OutputError
    _forgive(out)
    try:
        out.write(text)
        out.flush()
    except (OSError, ValueError) as error:
        raise OutputError from error


def _whisper(text: str) -> None:
    """Tell people something; where nobody listens the exit code has to do."""
    with suppress(OutputError):
        _write(sys.stderr, text)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _forgive(out: TextIO) -> None:
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # names may have characters that a terminal has not
