"""The output of the command line; no other module of this package prints.

Data goes to standard output, everything else to standard error. Gets plain data and knows no store.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

from catalog.cli.answer import CommandResult, ExitCode, envelope, lines_of, module_name, plain
from catalog.cli.text.table import TextTable
from catalog.errors import CatalogError, UsageError
from catalog.errors.redaction import redact
from catalog.errors.visible_text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from catalog.cli.commands.subscribe import Changes
    from catalog.cli.schema_changes import ChangeShown
    from catalog.events import Event, Observer

_WIDTH_OF_FILES = 100


class Sentence(str):
    """A text that a terminal shows broken between words, and so never in a number."""

    __slots__ = ()


class OutputError(Exception):
    """Standard output cannot be written."""

    def settle(self) -> ExitCode:
        """Report it on standard error, unless the reader closed a pipe: it has read enough."""
        if sys.stdout is not None:
            with suppress(OSError):  # or Python complains when it flushes
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(self.__cause__, BrokenPipeError):
            return ExitCode.DONE
        reason = self.__cause__ or "it is closed"
        why, fix = "the result of the command is not shown", "give it a terminal, file or pipe that can be written"
        _write_error(f"standard output cannot be written: {reason}\nwhy:  {why}\nnext: {fix}\n")
        return ExitCode.FAILED


@dataclass(slots=True)
class Screen:
    """The output of one command: as text for people, or as one JSON document."""

    command: str = ""
    """The words of the command, such as `debug edit`; its view has the same name."""
    format: str = "text"
    secrets: tuple[str, ...] = ()
    log_format: str | None = None
    """Set for a command that logs: then an error is a line of the log too."""

    def show(self, answer: CommandResult) -> ExitCode:
        """Show the result of a command, and return its exit code."""
        if self.log_format is not None and answer.error is not None:
            self._log_error(self.log_format, answer.error)
        if self.format == "json":
            _write(sys.stdout, self.redact(envelope(self.command, answer)) + "\n")
            return answer.exit
        if answer.data is not None:
            self._print(answer.data, answer.renderer, sys.stdout)
        if answer.error is not None and self.log_format is None:
            what, why, fix = lines_of(answer.error)
            _write_error(self.redact(f"{what}\nwhy:  {why}\nnext: {fix}") + "\n")
        return answer.exit

    def _log_error(self, form: str, error: CatalogError) -> None:
        from catalog.engine.store.observers.log_lines import log_line  # noqa: PLC0415 - few commands log

        what, why, fix = lines_of(error)
        told = {"code": type(error).__name__, "what": what, "why": why, "next": fix}
        self.log(log_line(form, time.time(), "error", "failed", told))

    def stream(self, changes: Changes) -> None:
        """Show a part of a feed: as text, or a line of JSON for each row."""
        if self.format == "text":
            self._print(changes, "render_changes", sys.stdout)
            return
        for row in changes.rows:
            _write(sys.stdout, self.redact(json.dumps(plain(row), ensure_ascii=False)) + "\n")

    def preview(self, data: Any, renderer: str = "render") -> None:  # noqa: ANN401 - as an answer's
        """Show what a confirmation is about, on standard error."""
        if self.format == "text" and sys.stderr is not None:
            self._print(data, renderer, sys.stderr)

    def confirm(self, question: str, *, yes: bool, expected: str = "yes", flag: str = "--yes") -> None:
        """Ask for confirmation; refuse if it is not given, or if there is no terminal to ask on."""
        if yes:
            return
        if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
            raise UsageError(
                "this command asks for confirmation, and there is no terminal to ask on",
                question,
                f"give {flag} to confirm",
            )
        _write(sys.stderr, f"{self.redact(question)}\nType {expected} to continue: ")
        if sys.stdin.readline().strip() != expected:
            raise UsageError("nothing was done", f"{expected} was not typed", "run it again to be asked again")

    def ask(self, question: str, answer: str, *, offers: bool = True) -> str:
        """Ask a question; return the given answer if nothing is typed, or if there is no terminal to ask on."""
        if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
            return answer
        _write(sys.stderr, self.redact(f"{question} [{answer}]: " if offers else f"{question}: "))
        typed = sys.stdin.readline()
        if not typed:
            raise UsageError("nothing was done", "nothing was typed", "run it again to be asked again")
        return typed.strip() or answer

    @contextmanager
    def progress(self) -> Iterator[Observer]:
        """Show the progress of a long command, unless it logs, or writes JSON and has no terminal."""
        from catalog.events import ignore  # noqa: PLC0415 - most commands emit no events

        if sys.stderr is None or self.log_format is not None or (self.format == "json" and not sys.stderr.isatty()):
            yield ignore
            return
        with ExitStack() as stack:
            yield _PendingProgress(stack, sys.stderr)

    def log(self, line: str) -> None:
        """Write a line of the log, on standard error."""
        _write_error(self.redact(line) + "\n")

    def complain(self, text: str) -> None:
        """Report a problem that does not make the command fail."""
        if self.log_format is None:
            _write_error(self.redact(text) + "\n")
            return
        from catalog.engine.store.observers.log_lines import log_line  # noqa: PLC0415 - few commands log

        self.log(log_line(self.log_format, time.time(), "warning", "observer_failed", {"what": text}))

    @property
    def is_attended(self) -> bool:
        """True if there is a terminal to read from and to write to."""
        return self.format == "text" and all(map(_is_terminal, (sys.stdin, sys.stdout, sys.stderr)))

    def note(self, text: str) -> None:
        """Write a note that is no part of the result."""
        if self.format == "text":
            _write_error(f"{self.redact(text)}\n")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show a message on a terminal while something takes long, and remove it afterwards."""
        if not _is_terminal(sys.stderr):
            yield
            return
        from catalog.cli.text.progress import shown_waiting  # noqa: PLC0415 - few commands take long

        with shown_waiting(make_console(sys.stderr), what):
            yield

    def note_in_pipe(self, text: str) -> None:
        """Write what `waiting` shows on a terminal, if there is none."""
        if not _is_terminal(sys.stderr):
            self.note(text)

    @contextmanager
    def change_progress(self, look: Callable[[], ChangeShown]) -> Iterator[None]:
        """Show the progress of a schema change during a block, unless this writes JSON and has no terminal."""
        if sys.stderr is None or (self.format == "json" and not sys.stderr.isatty()):
            yield
            return
        from catalog.cli.text.change_progress import shown_change  # noqa: PLC0415 - few commands take long

        out = sys.stderr
        with shown_change(lambda: make_console(out), look):
            yield

    @contextmanager
    def row_progress(self, what: str) -> Iterator[Callable[[int, int], None] | None]:
        """Show a bar of rows on a terminal, for as long as something takes; yield none elsewhere."""
        if not _is_terminal(sys.stderr):
            yield None
            return
        from catalog.cli.text.progress import shown_rows  # noqa: PLC0415 - few commands take long

        with shown_rows(make_console(sys.stderr), what) as advance:
            yield advance

    def _print(self, data: Any, renderer: str, out: TextIO | None) -> None:  # noqa: ANN401 - whatever a command answers
        console: Console | None = None
        for part in getattr(import_module(f"catalog.cli.text.{module_name(self.command)}"), renderer)(data):
            if isinstance(part, str):
                words = self.redact(part)
                words = _broken_between_words(words, out) if isinstance(part, Sentence) else words
                _write(out, f"{words}\n", is_visible=renderer == "render_csv" and not _is_terminal(out))
                continue
            if (
                isinstance(part, TextTable)
                and not _is_styled(out)
                and (text := part.plain(_WIDTH_OF_FILES)) is not None
            ):
                _write(out, self.redact(text))
                continue
            from rich.text import Text  # noqa: PLC0415 - what is only text needs none

            if console is None:
                console = make_console(out)
            with console.capture() as captured:
                console.print(part, soft_wrap=isinstance(part, Text))
            _write(out, self.redact(captured.get()), is_visible=True)

    def redact(self, text: str) -> str:
        return redact(text, self.secrets)


@dataclass(slots=True)
class _PendingProgress:
    """An observer that begins to show progress at the first event that tells of work: most starts find none."""

    stack: ExitStack
    out: TextIO
    shown: Observer | None = None
    waiting: list[Event] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        from catalog.events import Closed, Failed, FenceTaken, Opening, Ready  # noqa: PLC0415 - as above

        self.waiting.append(event)
        if self.shown is None and isinstance(event, Opening | FenceTaken | Ready | Failed | Closed):
            return
        if self.shown is None:
            from catalog.cli.text.progress import shown_progress  # noqa: PLC0415 - few commands take long

            self.shown = self.stack.enter_context(shown_progress(make_console(self.out)))
        while self.waiting:
            self.shown(self.waiting.pop(0))


def show_help(text: str) -> ExitCode:
    """Show the help of a group that was called without a command."""
    _write_error(f"{text}\n")
    return ExitCode.USAGE


def show_candidates(lines: str) -> None:
    """Write the candidates of a completion to the script of a shell; an error that this meets is not shown."""
    with suppress(OutputError):
        _write(sys.stdout, f"{lines}\n" if lines else "")


def make_console(file: TextIO | None = None) -> Console:
    """Make a console, by default on standard output."""
    from catalog.cli.text.console import VisibleConsole  # noqa: PLC0415 - it loads rich

    out = sys.stdout if file is None else file
    _forgive(out)
    width = None if out.isatty() else _WIDTH_OF_FILES
    return VisibleConsole(file=out, width=width, markup=False, highlight=False, emoji=False)


def say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)


def _write(out: TextIO | None, text: str, *, is_visible: bool = False) -> None:
    """Write a text with what cannot be seen spelt out, unless that was done."""
    if out is None:
        raise OutputError
    _forgive(out)
    try:
        out.write(text if is_visible else visible(text))
        out.flush()
    except (OSError, ValueError) as error:
        raise OutputError from error


def _write_error(text: str) -> None:
    """Write to standard error; ignore a failure, because the exit code says enough."""
    with suppress(OutputError):
        _write(sys.stderr, text)


def _broken_between_words(text: str, out: TextIO | None) -> str:
    if out is None or not out.isatty():
        return text
    import textwrap  # noqa: PLC0415 - only a terminal needs it

    width = os.get_terminal_size(out.fileno()).columns or _WIDTH_OF_FILES
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _is_styled(stream: TextIO | None) -> bool:
    """Tell if rich would write more than text to a stream: to a terminal, or because a variable asks for it."""
    return _is_terminal(stream) or any(os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))


def _forgive(out: TextIO) -> None:
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # names may have characters that a terminal has not
