"""`catalog history` as text: a table, or a graph with a rail for each version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from catalog.cli.commands.history import HistoryResult
from catalog.cli.text.formats import utc_ms
from catalog.tools.history import CommitKind, HistoryLine, StepRun, Timeline

_LANE: Final = 4
"""Columns from one rail to the next."""
_NAMES_SHOWN: Final = 4
_NODES: Final[Mapping[CommitKind, str]] = {
    CommitKind.CREATED: "◉",
    CommitKind.BEGUN: "◉",
    CommitKind.CHANGED: "●",
    CommitKind.FENCED: "╪",
    CommitKind.STEP_BEGUN: "◇",
    CommitKind.STEP_FAILED: "✗",
    CommitKind.MIGRATED: "◆",
    CommitKind.UNDONE: "◆",
    CommitKind.CONSOLIDATED: "○",
    CommitKind.RETAINED: "○",
    CommitKind.SEALED: "○",
}
_STYLES: Final[Mapping[CommitKind, str]] = {
    CommitKind.FENCED: "magenta",
    CommitKind.STEP_BEGUN: "cyan",
    CommitKind.STEP_FAILED: "bold red",
    CommitKind.MIGRATED: "bold green",
    CommitKind.UNDONE: "bold yellow",
    CommitKind.CONSOLIDATED: "dim",
    CommitKind.RETAINED: "dim",
    CommitKind.SEALED: "dim",
}
_OF_STATES: Final[Mapping[str, CommitKind]] = {
    "RUNNING": CommitKind.STEP_BEGUN,
    "MIGRATED": CommitKind.MIGRATED,
    "ERROR": CommitKind.STEP_FAILED,
    "UNDONE": CommitKind.UNDONE,
}
_ASCII: Final = str.maketrans("◉●╪◇✗◆○╭╮├─┊", "@*+?x#o/\\|-:")
"""The replacements on a terminal without Unicode."""


@dataclass(frozen=True, slots=True)
class _HistoryRow:
    """A line of the table."""

    when: str
    ts: str
    version: int | None
    """The version on whose rail it is drawn: the one that the store had afterwards."""
    other: int | None
    """The version that it came from, or that a run did not reach."""
    happening: CommitKind
    what: str


def render(data: HistoryResult) -> Iterator[RenderableType]:
    yield _TimelineText(data, rails=False)
    yield _footer(data)


def render_graph(data: HistoryResult) -> Iterator[RenderableType]:
    yield _TimelineText(data, rails=True)
    yield _footer(data)


@dataclass(frozen=True, slots=True)
class _TimelineText:
    data: HistoryResult
    rails: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        timeline = self.data.timeline
        told = [*map(_line, timeline.lines)]
        earlier = [*map(_run, timeline.earlier)]
        lanes = _Lanes.of(told + earlier, self.data.version)
        fit: Callable[[str], str] = (lambda text: text.translate(_ASCII)) if options.ascii_only else str
        made = Table(box=None, pad_edge=False, header_style="dim")
        made.add_column(lanes.heading if self.rails else "version", no_wrap=True)
        made.add_column("ts", justify="right", no_wrap=True)
        made.add_column("when", no_wrap=True)
        made.add_column("what", overflow="fold")
        for own in told:
            self._add(made, lanes, own, fit)
        if (marker := _marker(timeline)) is not None:
            made.add_row(fit(lanes.gap(told[-1].version)) if self.rails else "", "", "", Text(marker, "dim"))
        for own in earlier:
            self._add(made, lanes, own, fit)
        yield made

    def _add(self, made: Table, lanes: _Lanes, own: _HistoryRow, fit: Callable[[str], str]) -> None:
        style = _STYLES.get(own.happening, "")
        rail = lanes.drawn(own) if self.rails else "" if own.version is None else f"v{own.version}"
        made.add_row(Text(fit(rail), style), own.ts, Text(own.when, "dim"), Text(own.what, style))


@dataclass(frozen=True, slots=True)
class _Lanes:
    """The positions of the rails, one for each version."""

    versions: tuple[int, ...]
    last: int | None
    """The version that is drawn where none is known: that of the oldest line that has one."""

    @classmethod
    def of(cls, told: list[_HistoryRow], present: int) -> _Lanes:
        known = {version for own in told for version in (own.version, own.other) if version is not None}
        oldest = next((own.version for own in reversed(told) if own.version is not None), present)
        return cls(tuple(sorted(known | {present})), oldest)

    @property
    def heading(self) -> str:
        return "".join(f"v{version}".ljust(_LANE) for version in self.versions).rstrip()

    def gap(self, version: int | None) -> str:
        return f"{' ' * self._at(version)}┊"

    def drawn(self, own: _HistoryRow) -> str:
        """Draw a node on its rail, joined to the rail it came from, or with a stub towards one that was not reached."""
        node, here = _NODES[own.happening], self._at(own.version)
        if own.other is None:
            return f"{' ' * here}{node}"
        there = self._at(own.other)
        left, right = min(here, there), max(here, there)
        bar = "─" * (right - left - 1)
        match own.happening:
            case CommitKind.MIGRATED:
                return f"{' ' * left}╭{bar}{node}"
            case CommitKind.UNDONE:
                return f"{' ' * left}{node}{bar}╮"
            case _:
                return f"{' ' * left}├{bar}{node}"

    def _at(self, version: int | None) -> int:
        found = self.last if version is None else version
        return _LANE * self.versions.index(found) if found in self.versions else 0


def _line(line: HistoryLine) -> _HistoryRow:
    newest, oldest = line.newest, line.oldest
    ts = str(newest.ts) if newest is oldest else f"{oldest.ts}-{newest.ts}"
    return _HistoryRow(
        utc_ms(newest.at_ms), ts, line.version, _other(line), line.happening, _WHAT[line.happening](line)
    )


def _other(line: HistoryLine) -> int | None:
    match line.happening:
        case CommitKind.MIGRATED:
            return None if line.version is None else line.version - 1
        case CommitKind.UNDONE:
            return None if line.version is None else line.version + 1
        case CommitKind.STEP_BEGUN | CommitKind.STEP_FAILED:
            return next((run.version for run in line.newest.runs), None)
        case _:
            return None


def _run(run: StepRun) -> _HistoryRow:
    """Describe a run whose commits are retired, by its event."""
    happening = _OF_STATES[run.state]
    when = utc_ms(run.completed_ms or run.started_ms)
    version, other = (run.version, run.previous) if run.state == "MIGRATED" else (run.previous, run.version)
    return _HistoryRow(when, "", version, other, happening, _TOLD_RUNS[happening](run))


def _migrated(run: StepRun) -> str:
    counts = "" if run.rows_after is None else f": {run.rows_before or 0:,} rows became {run.rows_after:,}"
    took = "" if run.completed_ms is None else f", in {(run.completed_ms - run.started_ms) / 1000:.1f} s"
    return f"{run.step} applied{counts}{took}"


def _failed(run: StepRun) -> str:
    return f"{run.step} failed: {' '.join(run.error.split()) or 'no reason was recorded'}"


_TOLD_RUNS: Final[Mapping[CommitKind, Callable[[StepRun], str]]] = {
    CommitKind.STEP_BEGUN: lambda run: f"{run.step} began",
    CommitKind.MIGRATED: _migrated,
    CommitKind.STEP_FAILED: _failed,
    CommitKind.UNDONE: lambda run: f"{run.step} undone: back to version {run.previous}",
}


def _runs(line: HistoryLine, *happenings: CommitKind) -> str:
    """Describe the runs that began or ended with the newest commit of a line."""
    told = [(happening, run) for run in line.newest.runs if (happening := _OF_STATES[run.state]) in happenings]
    return "; ".join(_TOLD_RUNS[happening](run) for happening, run in told)


def _changed(line: HistoryLine) -> str:
    commits = sum(moment.happening is CommitKind.CHANGED for moment in line.moments)
    merged = len(line.moments) - commits
    told = f"{commits:,} commits" if commits != 1 else "1 commit"
    names = sorted({n for own in line.moments if own.happening is CommitKind.CHANGED for n in own.collections})
    maintained = "" if not merged else "; 1 consolidation" if merged == 1 else f"; {merged:,} consolidations"
    return f"{told}: {_listed(names) or 'no rows'}{maintained}"


def _consolidated(line: HistoryLine) -> str:
    names = sorted({name for moment in line.moments for name in moment.collections})
    before = sum(moment.files_removed for moment in line.moments)
    after = sum(moment.files_added for moment in line.moments)
    return f"consolidated {_listed(names)}: {before:,} files became {after:,}"


def _listed(names: list[str]) -> str:
    """List some of the names, so that they fit on a line."""
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names if more <= 1 else [*names[:_NAMES_SHOWN], f"{more} more"])


def _fenced(line: HistoryLine) -> str:
    moment = line.newest
    by = f" by {moment.holder}" if moment.holder else ""
    given_up = _runs(line, CommitKind.STEP_FAILED)
    taken = f"taken over{by} (generation {moment.deploy_generation}, epoch {moment.epoch})"
    return f"{taken}; {given_up}" if given_up else taken


def _begun(line: HistoryLine) -> str:
    at = "" if line.version is None else f" at version {line.version}"
    return f"begins{at}: {sum(line.newest.collections.values()):,} rows"


def _sealed(line: HistoryLine) -> str:
    details = line.newest.details
    if "quarantined" in details:
        return f"a torn log entry set aside: {details['quarantined']}"
    return "sealed: a commit of unknown outcome can no longer succeed"


def _retained(line: HistoryLine) -> str:
    return f"retention moved on: readable from ts {line.newest.frontier}"


_WHAT: Final[Mapping[CommitKind, Callable[[HistoryLine], str]]] = {
    CommitKind.CREATED: lambda _: "created",
    CommitKind.BEGUN: _begun,
    CommitKind.CHANGED: _changed,
    CommitKind.FENCED: _fenced,
    CommitKind.STEP_BEGUN: lambda line: _runs(line, CommitKind.STEP_FAILED, CommitKind.STEP_BEGUN),
    CommitKind.STEP_FAILED: lambda line: _runs(line, CommitKind.STEP_FAILED),
    CommitKind.MIGRATED: lambda line: _runs(line, CommitKind.MIGRATED),
    CommitKind.UNDONE: lambda line: _runs(line, CommitKind.UNDONE),
    CommitKind.CONSOLIDATED: _consolidated,
    CommitKind.RETAINED: _retained,
    CommitKind.SEALED: _sealed,
}


def _marker(timeline: Timeline) -> str | None:
    """Return the line between the commits of the log and the older runs."""
    if timeline.retired_before is not None:
        return f"commits before ts {timeline.retired_before} are retired"
    return "older migrations, of which only their records are left" if timeline.earlier else None


def _footer(data: HistoryResult) -> str:
    more = ", and there is more: see --limit" if data.timeline.more else ""
    if data.of_tables:
        return f"the tables of {data.store} are at ts {data.ts}{more}" if data.ts else f"{data.store} has no tables"
    return f"{data.store} is at version {data.version}, ts {data.ts}{more}"
