"""Progress on a terminal and in a pipe: of upgrades, of copied rows, and of waiting.

An upgrade is told in the same words everywhere: a line when Spark starts and when it has started, and a line for each
step with what it does. While a step runs, a terminal shows a bar that vanishes at the end, and a pipe gets a line every
two seconds. What became of the rows is the result of the command, and is not told here too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBars
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from catalog.cli.screen import say
from catalog.cli.text.formats import duration
from catalog.engine.migrate.plan import StepPlan
from catalog.events import (
    Event,
    Failed,
    FenceTaken,
    Observer,
    Ready,
    SparkStarted,
    SparkStarting,
    StepAdvanced,
    StepBegan,
    StepCommitted,
    StepFailed,
    WaitingForLeader,
)

_LINE_EVERY_S = 2.0
_BAR_WIDTH = 12
_TENTHS_BELOW_S = 10
"""Shorter durations are shown with tenths, which no estimate has."""

Clock = Callable[[], float]


@contextmanager
def shown_progress(console: Console, clock: Clock = time.monotonic) -> Iterator[Observer]:
    """Return an observer that shows the progress of an upgrade."""
    if not (console.is_interactive and console.file.isatty()):
        yield _ProgressLines(console, clock)
        return
    with ProgressBars(BarLine(console), console=console, transient=True) as bars:
        yield _ProgressBars(bars, clock)


@contextmanager
def shown_waiting(console: Console, what: str) -> Iterator[None]:
    """Show a message and the elapsed time, and remove them afterwards."""
    with ProgressBars(SpinnerColumn(), TextColumn(what), TimeElapsedColumn(), console=console, transient=True) as bars:
        bars.add_task(what)
        yield


@contextmanager
def shown_rows(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar of rows done and rows in all, until the end of the block; it leaves nothing behind."""
    columns = (TextColumn(what), BarColumn(12), TextColumn("{task.fields[rows]}"), TimeElapsedColumn())
    with ProgressBars(*columns, console=console, transient=True) as bars:
        task = bars.add_task(what, total=None, rows="")
        yield lambda done, total: bars.update(task, completed=done, total=total, rows=f"{done:,}/{total:,} rows")


class _Pace:
    """The progress and the speed of an upgrade, measured from its first rows on: the start of Spark does not count."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._plan: StepPlan | None = None
        self._rows_before = 0
        """Of the steps that are done."""
        self._first: tuple[int, float] | None = None
        """The rows that were done first, and when."""
        self.rows = 0
        """Of the running step."""

    def begin(self, plan: StepPlan) -> None:
        self._plan, self.rows = plan, 0

    def advance(self, rows: int) -> None:
        if rows < self.rows:  # a step that was disturbed begins again
            self._first = None
        self.rows = rows
        if rows and self._first is None:
            self._first = self._rows_before + rows, self._clock()

    def commit(self, plan: StepPlan) -> None:
        self._rows_before += plan.rows_to_rewrite
        self._plan = None

    @property
    def rows_total(self) -> int:
        return self._plan.rows_to_rewrite if self._plan else 0

    def texts(self) -> Iterator[str]:
        """Yield the state of the running step and of the whole upgrade, each time in fewer words."""
        if not self.rows_total:
            yield "no rows to rewrite"
            return
        rows, rate = f"{self.rows:,} of {self.rows_total:,} rows", self._rate()
        to_come = 0 if self._plan is None else self._plan.position.rows_to_come
        left = self.rows_total - self.rows + to_come
        if rate and left:
            ending = f"about {estimate(left / rate)} left"
            yield f"{rows}, {rate:,.0f} rows/s, {ending}"
            yield f"{rows}, {ending}"
        yield rows

    def _rate(self) -> float | None:
        """Return the rows per second of the upgrade; none as long as it cannot be told."""
        if self._first is None:
            return None
        rows, since_s = self._first
        done, passed_s = self._rows_before + self.rows - rows, self._clock() - since_s
        return done / passed_s if done > 0 and passed_s > 0 else None


def estimate(seconds: float) -> str:
    """Format a time that is estimated, without tenths."""
    return f"{max(1, seconds):.0f} s" if seconds < _TENTHS_BELOW_S else duration(seconds)


def _beginning(plan: StepPlan) -> str:
    """Tell which step begins and what it does: the first line of its migration, without the versions it repeats."""
    does = re.sub(rf"^Version {plan.previous} to {plan.version}: ", "", plan.summary)
    return f"{plan.position}, {plan.name}: {does}"


def _line(event: Event) -> str | None:
    """Return the line that stays of an event; none if nothing does."""
    match event:
        case SparkStarting():
            return "starting Spark"
        case SparkStarted(elapsed_s=elapsed_s):
            return f"Spark started in {duration(elapsed_s)}"
        case WaitingForLeader():
            holder = event.holder or "another process"
            return f"waiting for {holder}, which leads the store: {event.timeout_s:.0f} s at most"
        case StepBegan(plan):
            return _beginning(plan)
        case _:
            return None


class _ProgressLines:
    def __init__(self, console: Console, clock: Clock) -> None:
        self._console, self._clock, self._pace = console, clock, _Pace(clock)
        self._printed_s = 0.0

    def __call__(self, event: Event) -> None:
        line = _line(event)
        if line is not None:
            self._say(line)
        match event:
            case StepBegan(plan):
                self._pace.begin(plan)
            case StepAdvanced(plan, rows):
                is_news = rows != self._pace.rows
                self._pace.advance(rows)
                if is_news and rows < self._pace.rows_total and self._clock() - self._printed_s >= _LINE_EVERY_S:
                    self._say(f"{plan.position}: {next(self._pace.texts())}")
            case StepCommitted(plan):
                self._pace.commit(plan)
            case _:
                pass

    def _say(self, line: str) -> None:
        self._printed_s = self._clock()
        say(self._console, line)


class _ProgressBars:
    def __init__(self, bars: ProgressBars, clock: Clock) -> None:
        self._bars, self._pace = bars, _Pace(clock)
        self._bar: TaskID | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case SparkStarted() | FenceTaken() | StepBegan() | StepCommitted() | StepFailed() | Ready() | Failed():
                self._clear()
            case _:
                pass
        line = _line(event)
        if line is not None and not isinstance(event, SparkStarting):
            self._bars.console.print(line)
        match event:
            case SparkStarting():
                self._bar = self._bars.add_task(line or "", total=None, texts=())
            case StepBegan(plan):
                self._pace.begin(plan)
                total = self._pace.rows_total or None
                self._bar = self._bars.add_task(str(plan.position), total=total, texts=tuple(self._pace.texts()))
            case StepAdvanced(_, rows) if self._bar is not None:
                self._pace.advance(rows)
                self._bars.update(self._bar, completed=rows, texts=tuple(self._pace.texts()))
            case StepCommitted(plan):
                self._pace.commit(plan)
            case _:
                pass

    def _clear(self) -> None:
        if self._bar is not None:
            self._bars.remove_task(self._bar)
        self._bar = None


class BarLine(ProgressColumn):
    """A line with a label, a bar, a text and the time; a narrow terminal gets fewer of these, and none by half."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def render(self, task: Task) -> Table:
        seconds = int(task.elapsed or 0)
        elapsed = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        bar = ProgressBar(total=task.total, completed=task.completed, width=_BAR_WIDTH)
        line = Table.grid(padding=(0, 1))
        cells = self._cells(task.description, task.fields["texts"], elapsed)
        line.add_row(*(bar if cell is None else Text(cell, no_wrap=True) for cell in cells))
        return line

    def _cells(self, label: str, texts: Sequence[str], elapsed: str) -> list[str | None]:
        """Return the cells of the fullest line that fits; None stands for the bar."""
        wordings: list[list[str | None]] = [[text] for text in texts] or [[]]
        lines: list[list[str | None]] = [[label, None, *words, elapsed] for words in wordings[:2]]
        lines += [[label, *words, elapsed] for words in wordings]
        lines += [[label, *words] for words in wordings]
        widths = [sum(_BAR_WIDTH if cell is None else len(cell) for cell in line) + len(line) - 1 for line in lines]
        fitting = (line for line, width in zip(lines, widths, strict=True) if width <= self._console.width)
        return next(fitting, [label])
