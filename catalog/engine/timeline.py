"""What happened to a store, the newest first: from the commits of its log, and from the events that outlive them.

Reads as many commits as are asked for, and of files only the engine's own rows in them. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, islice, takewhile
from typing import Any

from catalog.engine.events import Event, State, read_events
from catalog.engine.journal import Journal
from catalog.log.protocol import Commit, FileKind, Mark, Operation

_BATCH = 64
"""Commits that are read at once."""


class Happening(StrEnum):
    """What a commit was, to whoever looks back."""

    CREATED = "created"
    BEGUN = "begun"
    """The store got its version: it was initialised, copied or made up."""
    CHANGED = "changed"
    FENCED = "fenced"
    STEP_BEGUN = "step begun"
    STEP_FAILED = "step failed"
    MIGRATED = "migrated"
    UNDONE = "undone"
    CONSOLIDATED = "consolidated"
    RETAINED = "retained"
    SEALED = "sealed"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a step, as its event tells it."""

    event: int
    step: str
    previous: int
    version: int
    state: str
    started_ms: int
    completed_ms: int | None
    rows_before: int | None
    rows_after: int | None
    bytes_before: int | None
    bytes_after: int | None
    error: str
    build: str

    @classmethod
    def of(cls, event: Event) -> Run:
        value = event.value

        def counted(name: str) -> int | None:
            return int(getattr(value, name)) if value.HasField(name) else None

        return cls(
            event=event.id,
            step=str(value.name),
            previous=int(value.previous),
            version=int(value.version),
            state=event.state.name,
            started_ms=int(value.started_ms),
            completed_ms=counted("completed_ms"),
            rows_before=counted("rows_before"),
            rows_after=counted("rows_after"),
            bytes_before=counted("bytes_before"),
            bytes_after=counted("bytes_after"),
            error=str(value.error),
            build=str(value.build),
        )


@dataclass(frozen=True, slots=True)
class Moment:
    """A commit."""

    ts: int
    at_ms: int
    happening: Happening
    version: int | None
    """Of the types, once it was made."""
    collections: Mapping[str, int]
    """Those that it wrote rows of, each with how many came or went, or were written anew."""
    files_added: int
    files_removed: int
    deploy_generation: int | None = None
    epoch: int | None = None
    holder: str = ""
    frontier: int | None = None
    runs: tuple[Run, ...] = ()
    """Those that began or ended with it, as they were then."""
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """A moment; or several that are told as one, the newest first."""

    happening: Happening
    version: int | None
    moments: tuple[Moment, ...]

    @property
    def newest(self) -> Moment:
        return self.moments[0]

    @property
    def oldest(self) -> Moment:
        return self.moments[-1]


@dataclass(frozen=True, slots=True)
class Timeline:
    lines: tuple[Line, ...]
    """The newest first."""
    earlier: tuple[Run, ...]
    """Runs whose commits are not in the log any more, or never were in this one; the newest first."""
    retired_before: int | None
    """Commits before this ts are retired; none if all that there were are told or asked to be left out."""
    more: bool
    """Whether there is more than was asked for."""


@dataclass(frozen=True, slots=True)
class Since:
    """From when on: a ts, or a time."""

    ts: int | None = None
    at_ms: int | None = None

    def admits(self, ts: int, at_ms: int) -> bool:
        return ts >= (self.ts or 0) and at_ms >= (self.at_ms or 0)

    def admits_run(self, run: Run) -> bool:
        """Of a run without a commit only the time is known."""
        return not self.ts and run.started_ms >= (self.at_ms or 0)


def read_timeline(journal: Journal, since: Since | None = None, *, limit: int = 0, unfolded: bool = False) -> Timeline:
    """At most so many lines, if a limit is given; unfolded, a line is one commit."""
    wanted = since or Since()
    moments = takewhile(lambda moment: wanted.admits(moment.ts, moment.at_ms), _moments(journal))
    lines = list(islice(_alone(moments) if unfolded else _folded(moments), limit + 1 if limit else None))
    if limit and len(lines) > limit:
        return Timeline(tuple(lines[:limit]), (), None, more=True)
    frontier = journal.state.frontier
    if not lines or lines[-1].oldest.ts > frontier:
        return Timeline(tuple(lines), (), None, more=False)
    told = {run.event for line in lines for moment in line.moments for run in moment.runs}
    runs = [Run.of(event) for event in reversed(read_events(journal)) if event.id not in told]
    earlier = [run for run in runs if wanted.admits_run(run)]
    shown = earlier[: limit - len(lines)] if limit else earlier
    is_first = lines[-1].oldest.happening in {Happening.CREATED, Happening.BEGUN}
    return Timeline(tuple(lines), tuple(shown), None if is_first else frontier, more=len(shown) < len(earlier))


def _moments(journal: Journal) -> Iterator[Moment]:
    """Every commit that is retained, the newest first."""
    version = journal.state.marks.get(Mark.STASH_VERSION)
    for commit in _newest_first(journal):
        yield _moment(journal, commit, version)
        version = _version_before(commit, version)


def _newest_first(journal: Journal) -> Iterator[Commit]:
    first = journal.state.frontier
    for last in range(journal.state.version, first - 1, -_BATCH):
        yield from reversed(list(journal.log.commits(max(first, last - _BATCH + 1), last)))


def _version_before(commit: Commit, version: int | None) -> int | None:
    led_to = commit.marks.get(Mark.STASH_VERSION)
    if led_to is None:
        return version
    match commit.operation:
        case Operation.MIGRATE:
            return led_to - 1
        case Operation.UNDO:
            return led_to + 1
        case _:
            return None


def _moment(journal: Journal, commit: Commit, version: int | None) -> Moment:
    collections: dict[str, int] = {}
    for file in commit.adds:
        collections[file.collection] = collections.get(file.collection, 0) + file.rows
    runs = tuple(Run.of(Event(int(key.id), value)) for key, value in _own_rows(journal, commit, "migration_event"))
    moment = Moment(
        commit.version,
        commit.timestamp_ms,
        _happening(commit, runs),
        version,
        dict(sorted(collections.items())),
        len(commit.adds),
        len(commit.removed_paths),
        frontier=commit.marks.get(Mark.FRONTIER),
        runs=tuple(sorted(runs, key=lambda run: run.event)),
        details=commit.details,
    )
    if commit.operation is not Operation.FENCE:
        return moment
    tokens = _own_rows(journal, commit, "fence_token")
    return replace(
        moment,
        deploy_generation=commit.marks.get(Mark.DEPLOY_GENERATION),
        epoch=commit.marks.get(Mark.EPOCH),
        holder=next((str(value.holder) for _, value in tokens), ""),
    )


def _own_rows(journal: Journal, commit: Commit, collection: str) -> list[tuple[Any, Any]]:
    """The rows of an engine collection that came with a commit; a base has those of long before, too."""
    kind = journal.registry.named(collection)
    found = []
    if commit.operation is not Operation.CONSOLIDATE:
        for file in commit.adds:
            if file.collection == collection and file.kind is FileKind.TAIL:
                rows = journal.log.read(file, ["key", "value", "diff"]).to_pylist()
                found += [kind.decode(row["key"], row["value"]) for row in rows if row["diff"] > 0]
    return found


_BY_OPERATION: Mapping[Operation, Happening] = {
    Operation.CREATE: Happening.CREATED,
    Operation.FENCE: Happening.FENCED,
    Operation.CONSOLIDATE: Happening.CONSOLIDATED,
    Operation.MIGRATE: Happening.MIGRATED,
    Operation.UNDO: Happening.UNDONE,
    Operation.RETAIN: Happening.RETAINED,
    Operation.SEAL: Happening.SEALED,
}


def _happening(commit: Commit, runs: Iterable[Run]) -> Happening:
    if commit.operation is not Operation.TRANSACTION:
        return _BY_OPERATION[commit.operation]
    if Mark.STASH_VERSION in commit.marks:
        return Happening.BEGUN
    if commit.marks.get(Mark.RUNNING_STEP):
        return Happening.STEP_BEGUN
    return Happening.STEP_FAILED if any(run.state == State.ERROR.name for run in runs) else Happening.CHANGED


_ORDINARY = frozenset({Happening.CHANGED, Happening.CONSOLIDATED})
_ENDS = frozenset({Happening.MIGRATED, Happening.STEP_FAILED})


def _alone(moments: Iterable[Moment]) -> Iterator[Line]:
    return (Line(moment.happening, moment.version, (moment,)) for moment in moments)


def _folded(moments: Iterable[Moment]) -> Iterator[Line]:
    """Ordinary commits that follow each other as one line, and so the beginning of a run with its end."""
    gathered: list[Moment] = []
    for moment in chain(moments, [None]):
        if moment is not None and (not gathered or _belongs(gathered, moment)):
            gathered.append(moment)
            continue
        if gathered:
            yield _line(gathered)
        gathered = [] if moment is None else [moment]


def _belongs(gathered: Sequence[Moment], older: Moment) -> bool:
    newer = gathered[-1]
    if newer.happening in _ORDINARY and older.happening in _ORDINARY:
        return newer.version == older.version
    if newer.happening in _ENDS and older.happening is Happening.STEP_BEGUN:
        return {run.event for run in newer.runs} <= {run.event for run in older.runs}
    return False


def _line(moments: Sequence[Moment]) -> Line:
    happenings = {moment.happening for moment in moments}
    is_changed = Happening.CHANGED in happenings
    return Line(Happening.CHANGED if is_changed else moments[0].happening, moments[0].version, tuple(moments))
