"""How far an upgrade is, for people: bars on a terminal, lines anywhere else. Writes to the console it is handed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBars
from rich.table import Column

from catalog.cli.render import say
from catalog.engine.plan import StepPlan
from catalog.notices import Notice, Observer, StepAdvanced, StepBegan, StepCommitted, WaitingForLeader

_LINE_EVERY_S = 2.0

Clock = Callable[[], float]


@contextmanager
def shown_progress(console: Console, clock: Clock = time.monotonic) -> Iterator[Observer]:
    """What shows how far an upgrade is, for as long as it runs."""
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


@contextmanager
def shown_waiting(console: Console, what: str) -> Iterator[None]:
    """What is waited for, and for how long by now; it is gone when that is over."""
    with ProgressBars(SpinnerColumn(), TextColumn(what), TimeElapsedColumn(), console=console, transient=True) as bars:
        bars.add_task(what)
        yield


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


def _outcome(done: StepCommitted) -> str:
    rows = f"{done.rows_before:,} rows became {done.rows_after:,}"
    if not done.plan.needs_spark:
        return f"{rows}, none of them rewritten"
    return f"{rows}, {decimal(done.bytes_before)} became {decimal(done.bytes_after)}"


def _waiting(notice: WaitingForLeader) -> str:
    return f"waiting for {notice.holder or 'another process'}, which leads the store: {notice.timeout_s:.0f} s at most"


class _Lines:
    def __init__(self, console: Console, clock: Clock) -> None:
        self._console, self._clock = console, clock
        self._paces: dict[str, _Pace] = {}
        self._said_s = 0.0

    def __call__(self, notice: Notice) -> None:
        match notice:
            case StepBegan(plan):
                self._begin(plan)
            case StepAdvanced(plan, rows, size):
                self._advance(plan, rows, size)
            case StepCommitted(plan):
                elapsed_s = self._paces[plan.name].elapsed_s
                say(self._console, f"{plan.name}: {_outcome(notice)}, in {elapsed_s:.1f} s")
            case WaitingForLeader():
                say(self._console, _waiting(notice))
            case _:
                pass

    def _begin(self, plan: StepPlan) -> None:
        self._said_s = self._clock()
        self._paces[plan.name] = _Pace(plan, self._clock, self._said_s)
        say(self._console, f"{plan.name}: {plan.summary}")

    def _advance(self, plan: StepPlan, rows: int, size: int) -> None:
        pace = self._paces[plan.name]
        is_news = rows != pace.rows
        pace.advance(rows, size)
        if is_news and self._clock() - self._said_s >= _LINE_EVERY_S:
            self._said_s = self._clock()
            say(self._console, f"{plan.name}: {pace.told()}")


class _Bars:
    def __init__(self, bars: ProgressBars, clock: Clock) -> None:
        self._bars, self._clock = bars, clock
        self._running: dict[str, tuple[TaskID, _Pace]] = {}

    def __call__(self, notice: Notice) -> None:
        match notice:
            case StepBegan(plan):
                self._begin(plan)
            case StepAdvanced(plan, rows, size):
                bar, pace = self._running[plan.name]
                pace.advance(rows, size)
                self._bars.update(bar, completed=min(rows, max(pace.rows_total - 1, 0)), told=pace.told())
            case StepCommitted(plan):
                bar, pace = self._running[plan.name]
                self._bars.update(bar, completed=pace.rows_total or 1, told=_outcome(notice))
            case WaitingForLeader():
                say(self._bars.console, _waiting(notice))
            case _:
                pass

    def _begin(self, plan: StepPlan) -> None:
        pace = _Pace(plan, self._clock, self._clock())
        bar = self._bars.add_task(plan.name, total=pace.rows_total or 1, told=pace.told())
        self._running[plan.name] = bar, pace
