"""What the command line shows; nothing else in this package prints.

Is handed plain data and knows no store. A running step is a bar on a terminal, and lines anywhere else.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBars
from rich.table import Column, Table

from catalog.engine.events import Event
from catalog.engine.plan import StepPlan
from catalog.errors import CatalogError

if TYPE_CHECKING:
    from catalog.engine.progress import Counts, Progress

_WIDTH_OF_FILES = 100
_LINE_EVERY_S = 2.0
_NONE = "-"

Clock = Callable[[], float]


def make_console(file: TextIO | None = None) -> Console:
    """A console for what is to be read or piped: by default on standard output."""
    out = sys.stdout if file is None else file
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # names may have characters that a terminal has not
    width = None if out.isatty() else _WIDTH_OF_FILES
    return Console(file=out, width=width, markup=False, highlight=False, emoji=False)


@contextmanager
def shown_progress(console: Console, clock: Clock = time.monotonic) -> Iterator[Progress]:
    """Whom an upgrade tells how far it is, for as long as it runs."""
    if not (console.is_interactive and console.file.isatty()):
        yield _Lines(console, clock)
        return
    # Of these only the bar gives way where a terminal is narrow.
    columns = (
        TextColumn("{task.description}"),
        BarColumn(12),
        TextColumn("{task.fields[told]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
        TimeElapsedColumn(table_column=Column(width=7)),
    )
    with ProgressBars(*columns, console=console) as bars:
        yield _Bars(bars, clock)


def say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)


def show_heading(console: Console, text: str) -> None:
    console.print()
    console.print(text, style="bold")


def show_error(console: Console, error: CatalogError) -> None:
    """What happened, why, and what to do next."""
    say(console, *str(error).splitlines())


def show_plan(console: Console, steps: Sequence[StepPlan]) -> None:
    """Each step by the forms of its actions, with the files that it replaces as they are now."""
    table = _table(["step", "form", "collections"], ["files", "rows", "bytes"])
    for step in steps:
        forms = dict.fromkeys(work.form for work in step.works) or {"no change": None}
        for number, form in enumerate(forms):
            works = [work for work in step.works if work.form == form]
            replaced = [work for work in works if work.collection in step.rewrites and form != "insert"]
            sums = [f"{sum(getattr(work, name) for work in replaced):,}" for name in ("files", "rows")]
            table.add_row(
                "" if number else step.name,
                form,
                ", ".join(work.collection for work in works) or step.reason,
                *(sums if replaced else [_NONE, _NONE]),
                decimal(sum(work.size for work in replaced)) if replaced else _NONE,
            )
    console.print(table)


def show_events(console: Console, events: Iterable[Event]) -> None:
    """What each run of a step did."""
    table = _table(["version", "step", "state"], ["rows before", "rows after", "bytes", "seconds"])
    for event in events:
        value = event.value
        counted, ended = value.HasField("rows_after"), value.HasField("completed_ms")
        table.add_row(
            str(value.version),
            value.name,
            event.state.name,
            *((f"{value.rows_before:,}", f"{value.rows_after:,}") if counted else (_NONE, _NONE)),
            f"{decimal(value.bytes_before)} to {decimal(value.bytes_after)}" if counted else _NONE,
            f"{(value.completed_ms - value.started_ms) / 1000:.1f}" if ended else _NONE,
        )
    console.print(table)


def show_table(console: Console, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    table = _table(names)
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)


def _table(names: Sequence[str], numbers: Sequence[str] = ()) -> Table:
    """A table of texts and, after them, of numbers."""
    table = Table(*(Column(name, overflow="fold") for name in names), box=SIMPLE_HEAD, pad_edge=False)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


@dataclass(slots=True)
class _Pace:
    """How far a step is, and how fast: measured since its first rows were done, so that starting Spark is left out."""

    plan: StepPlan
    clock: Clock
    began_s: float
    rows: int = 0
    size: int = 0
    first: tuple[int, float] | None = None
    """The rows that were done first, and when."""

    @property
    def rows_total(self) -> int:
        return sum(work.rows for work in self.plan.works)

    @property
    def elapsed_s(self) -> float:
        return self.clock() - self.began_s

    def advance(self, rows: int, size: int) -> None:
        if rows < self.rows:  # a step that was disturbed begins again
            self.first = None
        if rows and self.first is None:
            self.first = rows, self.clock()
        self.rows, self.size = rows, size

    def told(self) -> str:
        of_all = f"{self.rows:,}/{self.rows_total:,} rows {decimal(self.size)}/{decimal(self.plan.bytes_to_rewrite)}"
        rows, since_s = self.first or (0, 0.0)
        if self.first is None or self.rows == rows or (passed_s := self.clock() - since_s) <= 0:
            return of_all
        rate = (self.rows - rows) / passed_s
        return f"{of_all} {rate:,.0f} rows/s {(self.rows_total - self.rows) / rate:.0f} s left"


def _outcome(counts: Mapping[str, Counts], plan: StepPlan) -> str:
    of_all = counts.values()
    rows = f"{sum(own.rows_before for own in of_all):,} rows became {sum(own.rows_after for own in of_all):,}"
    if not plan.needs_spark:
        return f"{rows}, none of them rewritten"
    sizes = (sum(own.bytes_before for own in of_all), sum(own.bytes_after for own in of_all))
    return f"{rows}, {decimal(sizes[0])} became {decimal(sizes[1])}"


class _Lines:
    def __init__(self, console: Console, clock: Clock) -> None:
        self._console, self._clock = console, clock
        self._paces: dict[str, _Pace] = {}
        self._said_s = 0.0

    def began(self, plan: StepPlan) -> None:
        self._said_s = self._clock()
        self._paces[plan.name] = _Pace(plan, self._clock, self._said_s)
        say(self._console, f"{plan.name}: {plan.summary}")

    def advanced(self, plan: StepPlan, rows: int, size: int) -> None:
        pace = self._paces[plan.name]
        is_news = rows != pace.rows
        pace.advance(rows, size)
        if is_news and self._clock() - self._said_s >= _LINE_EVERY_S:
            self._said_s = self._clock()
            say(self._console, f"{plan.name}: {pace.told()}")

    def ended(self, plan: StepPlan, counts: Mapping[str, Counts]) -> None:
        say(self._console, f"{plan.name}: {_outcome(counts, plan)}, in {self._paces[plan.name].elapsed_s:.1f} s")


class _Bars:
    def __init__(self, bars: ProgressBars, clock: Clock) -> None:
        self._bars, self._clock = bars, clock
        self._running: dict[str, tuple[TaskID, _Pace]] = {}

    def began(self, plan: StepPlan) -> None:
        pace = _Pace(plan, self._clock, self._clock())
        bar = self._bars.add_task(plan.name, total=pace.rows_total or 1, told=pace.told())
        self._running[plan.name] = bar, pace

    def advanced(self, plan: StepPlan, rows: int, size: int) -> None:
        bar, pace = self._running[plan.name]
        pace.advance(rows, size)
        self._bars.update(bar, completed=min(rows, max(pace.rows_total - 1, 0)), told=pace.told())

    def ended(self, plan: StepPlan, counts: Mapping[str, Counts]) -> None:
        bar, pace = self._running[plan.name]
        self._bars.update(bar, completed=pace.rows_total or 1, told=_outcome(counts, plan))
