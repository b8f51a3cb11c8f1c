"""The shell of `catalog sql`: reads statements from a terminal, and runs them one by one.

A statement may have several lines and ends with a semicolon. Ctrl-C cancels the statement and does not leave the shell.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from catalog.cli.answer import CommandResult
from catalog.cli.app import explained
from catalog.cli.commands.sql import SqlSession, rows_answer
from catalog.cli.screen import OutputError, Screen
from catalog.cli.signals import Terminated
from catalog.engine.spark.sql_statement import QUESTIONS, is_blank, split_statements
from catalog.errors import UsageError
from catalog.errors.visible_text import visible

_HELP: Final = r"""\d          list the tables, like SHOW TABLES
\d NAME     list the columns of a table, like DESCRIBE
\q          leave, like Ctrl-D
\?          show this help
Everything else is SQL and ends with ; on this line or a later one. Ctrl-C cancels a statement."""
_LEAVING: Final = frozenset({r"\q", "exit", "quit", "exit;", "quit;"})
_HISTORY_LINES: Final = 1000
_DELIMITERS: Final = " \t\n()[],.;=<>+-*/"


@dataclass(slots=True)
class SqlShell:
    session: SqlSession
    screen: Screen
    csv: bool = False
    _begun: str = field(default="", init=False)
    """The lines of a statement that has not ended yet."""

    def run(self) -> CommandResult:
        """Read and run statements until the user leaves."""
        found = self.session.look()
        self.screen.note(f"{found.store} at version {found.version}, ts {found.ts}; a statement ends with ;")
        self.screen.note(r"\d lists the tables, \? shows help, Ctrl-D leaves")
        names = {*found.by_name, *(name for own in found.by_name.values() for name in own.columns)}
        with _line_editing([*QUESTIONS, *sorted(names)]):
            while (line := self._read()) is not None:
                if not self._begun and line.strip().lower() in _LEAVING:
                    break
                self._take(line)
        return CommandResult(None)

    @property
    def _prompt(self) -> str:
        found = self.session.look()
        name = f"{found.store.rstrip('/').rpartition('/')[2]} v{found.version}"
        return f"{'.' * len(name)}> " if self._begun else f"{name}> "

    def _read(self) -> str | None:
        """Read a line; return None at the end of the input."""
        while True:
            try:
                return input(visible(self.screen.redact(self._prompt)))
            except EOFError:
                self.screen.note("")
                return None
            except KeyboardInterrupt as stopped:
                if isinstance(stopped, Terminated):
                    raise
                self._begun = ""
                self.screen.note("")

    def _take(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        if not self._begun and word.startswith("\\"):
            self._show(partial(self._command, word, rest.strip(" ;")))
            return
        statements, left = split_statements(f"{self._begun}{line}\n")
        self._begun = ""  # a statement that fails is not asked again
        for statement in statements:
            if not is_blank(statement):
                self._show(partial(self._asked, statement))
        self._begun = "" if is_blank(left) else left

    def _show(self, ask: Callable[[], CommandResult]) -> None:
        """Run something and show its result or its error; the shell continues either way."""
        try:
            self.screen.show(ask())
        except KeyboardInterrupt as stopped:
            if isinstance(stopped, Terminated):
                raise
            self.screen.note("cancelled")
        except OutputError:
            raise
        except Exception as error:  # noqa: BLE001 - shown like the error of any command
            self.screen.show(CommandResult(None, explained(error)))

    def _asked(self, statement: str) -> CommandResult:
        return rows_answer(self.screen, self.session.ask(statement), csv=self.csv)

    def _command(self, word: str, rest: str) -> CommandResult:
        if word == r"\d":
            return CommandResult(self.session.described(rest.lower()) if rest else self.session.listed())
        if word == r"\?":
            self.screen.note(_HELP)
            return CommandResult(None)
        raise UsageError(f"there is no command {word}", r"there are \d, \q and \?", r"type \? to see what each does")


@contextmanager
def _line_editing(words: Sequence[str]) -> Iterator[None]:
    """Turn on line editing, completion and history, if this Python has readline."""
    try:
        import readline  # noqa: PLC0415 - of no use to commands that ask nothing
    except ImportError:
        yield
        return

    def complete(begun: str, number: int) -> str | None:
        found = [word for word in words if word.lower().startswith(begun.lower())]
        return found[number] if number < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(_DELIMITERS)
    readline.parse_and_bind("tab: complete")
    file = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "catalog" / "sql_history"
    with suppress(OSError):  # there is none yet, or it is no file
        readline.read_history_file(file)
    readline.set_history_length(_HISTORY_LINES)
    try:
        yield
    finally:
        with suppress(OSError):  # it is a help, and no more
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(file)
