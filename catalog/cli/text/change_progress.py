"""The progress of a schema change on a terminal and in a pipe, in the same words.

Each stage has a line, and so has each bulk write that is waited for. While a stage goes on, a terminal shows a bar that
vanishes at the end, and a pipe gets a line every few seconds. A change that is over in no time shows nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Event, Thread
from typing import Protocol

from rich.console import Console
from rich.progress import Progress as ProgressBars
from rich.progress import TaskID

from catalog.cli.schema_changes import ChangeShown
from catalog.cli.screen import say
from catalog.cli.text.progress import BarLine
from catalog.cli.text.schema_change import headline, position, rows, waited, waiting
from catalog.errors import CatalogError

QUIET_S = 0.5
"""A shorter change shows no progress."""
_LOOK_EVERY_S = 0.2
_LINE_EVERY_S = 2.0

Clock = Callable[[], float]


class _Display(Protocol):
    def line(self, text: str) -> None:
        """Show a line that stays."""

    def detail(self, shown: ChangeShown, texts: tuple[str, ...]) -> None:
        """Show how far the present stage is; each text has fewer words."""


@contextmanager
def shown_change(make: Callable[[], Console], look: Callable[[], ChangeShown]) -> Iterator[None]:
    """Show the progress of a change in a thread, until the block ends."""
    ended = Event()
    thread = Thread(target=_watch, args=(make, look, ended), name="change-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _watch(make: Callable[[], Console], look: Callable[[], ChangeShown], ended: Event) -> None:
    if ended.wait(QUIET_S):
        return
    console = make()
    is_terminal = console.is_interactive and console.file.isatty()
    bars = ProgressBars(BarLine(console), console=console, transient=True) if is_terminal else None
    with bars or nullcontext():
        progress = ChangeProgress(_Lines(console) if bars is None else _Bars(bars))
        while True:
            try:
                shown = look()
            except CatalogError:  # of which the command itself tells
                shown = None
            if shown is not None and not shown.is_over:
                progress.update(shown)
            if ended.wait(_LOOK_EVERY_S):
                return


class ChangeProgress:
    """Tells what is new about a change since it was last looked at."""

    def __init__(self, display: _Display) -> None:
        self._display = display
        self._headline = ""
        self._waiting: set[tuple[str, str, int]] = set()

    def update(self, shown: ChangeShown) -> None:
        line = headline(shown)
        if line != self._headline:
            self._headline = line
            self._display.line(line)
        for one in shown.waiting_on:
            if (one.who, one.table, one.version) not in self._waiting:
                self._display.line(f"waiting for {waiting(one)}")
        self._waiting = {(one.who, one.table, one.version) for one in shown.waiting_on}
        texts = (f"waiting {waited(shown)}",) if shown.waiting_on else tuple(rows(shown))
        self._display.detail(shown, texts)


class _Lines:
    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._printed_s = 0.0
        self._printed = ""

    def line(self, text: str) -> None:
        self._printed_s = self._clock()
        say(self._console, text)

    def detail(self, shown: ChangeShown, texts: tuple[str, ...]) -> None:
        if texts and texts[-1] != self._printed and self._clock() - self._printed_s >= _LINE_EVERY_S:
            self._printed = texts[-1]
            self.line(f"{position(shown)}: {texts[0]}")


class _Bars:
    def __init__(self, bars: ProgressBars) -> None:
        self._bars = bars
        self._bar: TaskID | None = None

    def line(self, text: str) -> None:
        if self._bar is not None:
            self._bars.remove_task(self._bar)
        self._bar = None
        self._bars.console.print(text)

    def detail(self, shown: ChangeShown, texts: tuple[str, ...]) -> None:
        if not shown.stages:
            return
        if self._bar is None:
            self._bar = self._bars.add_task(position(shown), total=None, texts=())
        total = shown.rows_total or None
        self._bars.update(self._bar, completed=min(shown.rows_done, shown.rows_total), total=total, texts=texts)
