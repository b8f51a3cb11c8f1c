"""The shell of `catalog sql`: reads statements from whoever sits at a terminal, and asks them one by one.

A statement may have several lines and ends with a semicolon. Ctrl-C gives up the statement, not the shell.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from catalog.cli.asking import Inquiry, rows_answer
from catalog.cli.frame import explained
from catalog.cli.render import OutputError, Screen
from catalog.cli.results import Answer, Terminated
from catalog.errors import UsageError
from catalog.spark.statements import QUESTIONS, is_blank, split_statements

_HELP: Final = r"""\d          what there is to ask for, as SHOW TABLES does
\d NAME     the columns of a relation, as DESCRIBE does
\q          leave, as Ctrl-D does
\?          this
Everything else is SQL and ends with ; on this line or a later one. Ctrl-C gives a statement up."""
_LEAVING: Final = frozenset({r"\q", "exit", "quit", "exit;", "quit;"})
_HISTORY_LINES: Final = 1000
_DELIMITERS: Final = " \t\n()[],.;=<>+-*/"


@dataclass(slots=True)
class SqlShell:
    inquiry: Inquiry
    screen: Screen
    csv: bool = False
    _begun: str = field(default="", init=False)
    """What was typed of a statement that has not ended."""

    def run(self) -> Answer:
        """Until whoever sits there leaves."""
        found = self.inquiry.look()
        self.screen.note(f"{found.store} at version {found.version}, ts {found.ts}; a statement ends with ;")
        self.screen.note(r"\d lists what there is, \? helps, Ctrl-D leaves")
        names = {*found.by_name, *(name for own in found.by_name.values() for name in own.columns)}
        with _line_editing([*QUESTIONS, *sorted(names)]):
            while (line := self._read()) is not None:
                if not self._begun and line.strip().lower() in _LEAVING:
                    break
                self._take(line)
        return Answer(None)

    @property
    def _prompt(self) -> str:
        found = self.inquiry.look()
        name = f"{found.store.rstrip('/').rpartition('/')[2]} v{found.version}"
        return f"{'.' * len(name)}> " if self._begun else f"{name}> "

    def _read(self) -> str | None:
        """A line; none at the end of all."""
        while True:
            try:
                return input(self._prompt)
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

    def _show(self, ask: Callable[[], Answer]) -> None:
        """Ask, and show what comes of it; whatever that is, the shell goes on."""
        try:
            self.screen.show("sql", ask())
        except KeyboardInterrupt as stopped:
            if isinstance(stopped, Terminated):
                raise
            self.screen.note("given up")
        except OutputError:
            raise
        except Exception as error:  # noqa: BLE001 - told as every command tells it
            self.screen.show("sql", Answer(None, explained(error)))

    def _asked(self, statement: str) -> Answer:
        return rows_answer(self.screen, self.inquiry.ask(statement), csv=self.csv)

    def _command(self, word: str, rest: str) -> Answer:
        if word == r"\d":
            return Answer(self.inquiry.described(rest.lower()) if rest else self.inquiry.listed())
        if word == r"\?":
            self.screen.note(_HELP)
            return Answer(None)
        raise UsageError(f"there is no command {word}", r"there are \d, \q and \?", r"type \? to see what each does")


@contextmanager
def _line_editing(words: Sequence[str]) -> Iterator[None]:
    """Editing of lines, completion, and the lines of earlier times, where this Python has that."""
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
