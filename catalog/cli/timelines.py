"""What happened to a store, as lines for people: a table, or rails that versions are the lanes of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from catalog.cli import answers
from catalog.cli.times import shown_time
from catalog.engine.timeline import Happening, Line, Run, Timeline

_LANE: Final = 4
"""Columns from one rail to the next."""
_NAMES_SHOWN: Final = 4
_NODES: Final[Mapping[Happening, str]] = {
    Happening.CREATED: "◉",
    Happening.BEGUN: "◉",
    Happening.CHANGED: "●",
    Happening.FENCED: "╪",
    Happening.STEP_BEGUN: "◇",
    Happening.STEP_FAILED: "✗",
    Happening.MIGRATED: "◆",
    Happening.UNDONE: "◆",
    Happening.CONSOLIDATED: "○",
    Happening.RETAINED: "○",
    Happening.SEALED: "○",
}
_STYLES: Final[Mapping[Happening, str]] = {
    Happening.FENCED: "magenta",
    Happening.STEP_BEGUN: "cyan",
    Happening.STEP_FAILED: "bold red",
    Happening.MIGRATED: "bold green",
    Happening.UNDONE: "bold yellow",
    Happening.CONSOLIDATED: "dim",
    Happening.RETAINED: "dim",
    Happening.SEALED: "dim",
}
_OF_STATES: Final[Mapping[str, Happening]] = {
    "RUNNING": Happening.STEP_BEGUN,
    "MIGRATED": Happening.MIGRATED,
    "ERROR": Happening.STEP_FAILED,
    "UNDONE": Happening.UNDONE,
}
_ASCII: Final = str.maketrans("◉●╪◇✗◆○╭╮├─┊", "@*+?x#o/\\|-:")
"""Where a terminal has no more."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A line as it is shown."""

    when: str
    ts: str
    version: int | None
    """Whose rail it stands on: that which the store was at afterwards."""
    other: int | None
    """The version that it came from, or that a run did not reach."""
    happening: Happening
    what: str


def history(data: answers.History) -> Iterator[RenderableType]:
    yield _Lines(data, rails=False)
    yield _footer(data)


def graph(data: answers.Graph) -> Iterator[RenderableType]:
    yield _Lines(data.history, rails=True)
    yield _footer(data.history)


@dataclass(frozen=True, slots=True)
class _Lines:
    data: answers.History
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

    def _add(self, made: Table, lanes: _Lanes, own: _Told, fit: Callable[[str], str]) -> None:
        style = _STYLES.get(own.happening, "")
        rail = lanes.drawn(own) if self.rails else "" if own.version is None else f"v{own.version}"
        made.add_row(Text(fit(rail), style), own.ts, Text(own.when, "dim"), Text(own.what, style))


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Where the rail of each version is."""

    versions: tuple[int, ...]
    last: int | None
    """The version that is drawn where none is known: that of the oldest line that has one."""

    @classmethod
    def of(cls, told: list[_Told], present: int) -> _Lanes:
        known = {version for own in told for version in (own.version, own.other) if version is not None}
        oldest = next((own.version for own in reversed(told) if own.version is not None), present)
        return cls(tuple(sorted(known | {present})), oldest)

    @property
    def heading(self) -> str:
        return "".join(f"v{version}".ljust(_LANE) for version in self.versions).rstrip()

    def gap(self, version: int | None) -> str:
        return f"{' ' * self._at(version)}┊"

    def drawn(self, own: _Told) -> str:
        """A node on its rail; joined to the rail that it came from, or with a stub towards one not reached."""
        node, here = _NODES[own.happening], self._at(own.version)
        if own.other is None:
            return f"{' ' * here}{node}"
        there = self._at(own.other)
        left, right = min(here, there), max(here, there)
        bar = "─" * (right - left - 1)
        match own.happening:
            case Happening.MIGRATED:
                return f"{' ' * left}╭{bar}{node}"
            case Happening.UNDONE:
                return f"{' ' * left}{node}{bar}╮"
            case _:
                return f"{' ' * left}├{bar}{node}"

    def _at(self, version: int | None) -> int:
        found = self.last if version is None else version
        return _LANE * self.versions.index(found) if found in self.versions else 0


def _line(line: Line) -> _Told:
    newest, oldest = line.newest, line.oldest
    ts = str(newest.ts) if newest is oldest else f"{oldest.ts}-{newest.ts}"
    return _Told(shown_time(newest.at_ms), ts, line.version, _other(line), line.happening, _WHAT[line.happening](line))


def _other(line: Line) -> int | None:
    match line.happening:
        case Happening.MIGRATED:
            return None if line.version is None else line.version - 1
        case Happening.UNDONE:
            return None if line.version is None else line.version + 1
        case Happening.STEP_BEGUN | Happening.STEP_FAILED:
            return next((run.version for run in line.newest.runs), None)
        case _:
            return None


def _run(run: Run) -> _Told:
    """A run whose commits are gone: all that is left of it is its event."""
    happening = _OF_STATES[run.state]
    when = shown_time(run.completed_ms or run.started_ms)
    version, other = (run.version, run.previous) if run.state == "MIGRATED" else (run.previous, run.version)
    return _Told(when, "", version, other, happening, _TOLD_RUNS[happening](run))


def _migrated(run: Run) -> str:
    counts = "" if run.rows_after is None else f": {run.rows_before or 0:,} rows became {run.rows_after:,}"
    took = "" if run.completed_ms is None else f", in {(run.completed_ms - run.started_ms) / 1000:.1f} s"
    return f"{run.step} applied{counts}{took}"


def _failed(run: Run) -> str:
    return f"{run.step} failed: {' '.join(run.error.split()) or 'nobody said why'}"


_TOLD_RUNS: Final[Mapping[Happening, Callable[[Run], str]]] = {
    Happening.STEP_BEGUN: lambda run: f"{run.step} began",
    Happening.MIGRATED: _migrated,
    Happening.STEP_FAILED: _failed,
    Happening.UNDONE: lambda run: f"{run.step} undone: back to version {run.previous}",
}


def _runs(line: Line, *happenings: Happening) -> str:
    """What the runs that began or ended with the newest commit of a line come to."""
    told = [(happening, run) for run in line.newest.runs if (happening := _OF_STATES[run.state]) in happenings]
    return "; ".join(_TOLD_RUNS[happening](run) for happening, run in told)


def _changed(line: Line) -> str:
    commits = sum(moment.happening is Happening.CHANGED for moment in line.moments)
    merged = len(line.moments) - commits
    told = f"{commits:,} commits" if commits != 1 else "1 commit"
    names = sorted({n for own in line.moments if own.happening is Happening.CHANGED for n in own.collections})
    maintained = "" if not merged else "; 1 consolidation" if merged == 1 else f"; {merged:,} consolidations"
    return f"{told}: {_listed(names) or 'no rows'}{maintained}"


def _consolidated(line: Line) -> str:
    names = sorted({name for moment in line.moments for name in moment.collections})
    before = sum(moment.files_removed for moment in line.moments)
    after = sum(moment.files_added for moment in line.moments)
    return f"consolidated {_listed(names)}: {before:,} files became {after:,}"


def _listed(names: list[str]) -> str:
    """Some of them, so that a line stays one."""
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names if more <= 1 else [*names[:_NAMES_SHOWN], f"{more} more"])


def _fenced(line: Line) -> str:
    moment = line.newest
    by = f" by {moment.holder}" if moment.holder else ""
    given_up = _runs(line, Happening.STEP_FAILED)
    taken = f"taken over{by} (generation {moment.deploy_generation}, epoch {moment.epoch})"
    return f"{taken}; {given_up}" if given_up else taken


def _begun(line: Line) -> str:
    return f"begins at version {line.version}: {sum(line.newest.collections.values()):,} rows"


def _sealed(line: Line) -> str:
    details = line.newest.details
    if "quarantined" in details:
        return f"a torn log entry set aside: {details['quarantined']}"
    return "sealed: a commit whose outcome was not known never lands"


def _retained(line: Line) -> str:
    return f"retention moved on: it can be read from ts {line.newest.frontier} on"


_WHAT: Final[Mapping[Happening, Callable[[Line], str]]] = {
    Happening.CREATED: lambda _: "created",
    Happening.BEGUN: _begun,
    Happening.CHANGED: _changed,
    Happening.FENCED: _fenced,
    Happening.STEP_BEGUN: lambda line: _runs(line, Happening.STEP_FAILED, Happening.STEP_BEGUN),
    Happening.STEP_FAILED: lambda line: _runs(line, Happening.STEP_FAILED),
    Happening.MIGRATED: lambda line: _runs(line, Happening.MIGRATED),
    Happening.UNDONE: lambda line: _runs(line, Happening.UNDONE),
    Happening.CONSOLIDATED: _consolidated,
    Happening.RETAINED: _retained,
    Happening.SEALED: _sealed,
}


def _marker(timeline: Timeline) -> str | None:
    """What stands between the commits that are there and what is known of before."""
    if timeline.retired_before is not None:
        return f"earlier commits are retired, those before ts {timeline.retired_before}"
    return "before that, as its events tell" if timeline.earlier else None


def _footer(data: answers.History) -> str:
    more = ", and there is more: see --limit" if data.timeline.more else ""
    return f"{data.store} is at version {data.version}, ts {data.ts}{more}"
