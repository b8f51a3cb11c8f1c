"""The history of a store, the newest first: the commits of its log, and the events that outlive them.

Reads as many commits as are asked for, and of files only the engine's own rows in them. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, islice, takewhile
from typing import Any

from catalog.engine.log.protocol import MERGING, AppTxn, Commit, FileKind, Log, LogState, Operation
from catalog.engine.log.replica import retired_if_missing
from catalog.engine.migrate.recorder import MigrationEvent, RunState, read_events
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.schema_change.layers import LayerCache, LayeredView
from catalog.engine.schema_change.replica import schemas_of

_BATCH = 64
"""Commits that are read at once."""


class CommitKind(StrEnum):
    CREATED = "created"
    BEGUN = "begun"
    """The store got its version: it was initialised, copied or generated."""
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
class StepRun:
    """One run of a step, read from its event."""

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
    def of(cls, event: MigrationEvent) -> StepRun:
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
class CommitRecord:
    ts: int
    at_ms: int
    happening: CommitKind
    version: int | None
    """The version of the rows after the commit."""
    collections: Mapping[str, int]
    """The collections whose rows it wrote, each with the number of rows."""
    files_added: int
    files_removed: int
    deploy_generation: int | None = None
    epoch: int | None = None
    holder: str = ""
    frontier: int | None = None
    runs: tuple[StepRun, ...] = ()
    """The runs that began or ended with it, in their state at that time."""
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A moment, or several that are folded into one line, the newest first."""

    happening: CommitKind
    version: int | None
    moments: tuple[CommitRecord, ...]

    @property
    def newest(self) -> CommitRecord:
        return self.moments[0]

    @property
    def oldest(self) -> CommitRecord:
        return self.moments[-1]


@dataclass(frozen=True, slots=True)
class Timeline:
    lines: tuple[HistoryLine, ...]
    """The newest first."""
    earlier: tuple[StepRun, ...]
    """Runs whose commits are not in the log any more, or never were in this one; the newest first."""
    retired_before: int | None
    """Commits before this ts are retired; none if all commits are listed or excluded by the request."""
    more: bool
    """True if there is more than the limit."""


@dataclass(frozen=True, slots=True)
class StartPoint:
    """The beginning of a history: a ts, or a time."""

    ts: int | None = None
    at_ms: int | None = None

    def admits(self, ts: int, at_ms: int) -> bool:
        return ts >= (self.ts or 0) and at_ms >= (self.at_ms or 0)

    def admits_run(self, run: StepRun) -> bool:
        """Tell if a run began in this range; of a run without a commit only the time is known."""
        return not self.ts and run.started_ms >= (self.at_ms or 0)


def read_timeline(
    journal: SystemRows, since: StartPoint | None = None, *, limit: int = 0, unfolded: bool = False
) -> Timeline:
    """At most so many lines, if a limit is given; unfolded, a line is one commit."""
    wanted = since or StartPoint()
    timeline = _timeline(_moments(journal), journal.state.frontier, wanted, limit, unfolded=unfolded)
    lines, frontier = timeline.lines, journal.state.frontier
    if timeline.more or not lines or lines[-1].oldest.ts > frontier:
        return timeline
    listed = {run.event for line in lines for moment in line.moments for run in moment.runs}
    runs = [StepRun.of(event) for event in reversed(read_events(journal)) if event.id not in listed]
    earlier = [run for run in runs if wanted.admits_run(run)]
    shown = earlier[: limit - len(lines)] if limit else earlier
    return replace(timeline, earlier=tuple(shown), more=len(shown) < len(earlier))


def read_tables_timeline(
    log: Log, state: LogState, since: StartPoint | None = None, *, limit: int = 0, unfolded: bool = False
) -> Timeline:
    """As `read_timeline`, of the log of tables: collections go by the names that tables and indexes have now."""
    names = {
        element.collection: schema.name if element is schema.primary else f"{schema.name}.{element.name}"
        for schema in schemas_of(LayeredView(LayerCache(log), state)).values()
        for element in schema.elements
    }
    moments = (_tables_moment(commit, names) for commit in _newest_first(log, state))
    return _timeline(moments, state.frontier, since or StartPoint(), limit, unfolded=unfolded)


def _timeline(
    moments: Iterable[CommitRecord], frontier: int, since: StartPoint, limit: int, *, unfolded: bool
) -> Timeline:
    """Fold commits into lines, as many as are asked for."""
    admitted = takewhile(lambda moment: since.admits(moment.ts, moment.at_ms), moments)
    lines = list(islice(_alone(admitted) if unfolded else _folded(admitted), limit + 1 if limit else None))
    if limit and len(lines) > limit:
        return Timeline(tuple(lines[:limit]), (), None, more=True)
    ends = not lines or lines[-1].oldest.ts > frontier
    is_first = ends or lines[-1].oldest.happening in {CommitKind.CREATED, CommitKind.BEGUN}
    return Timeline(tuple(lines), (), None if is_first else frontier, more=False)


def _tables_moment(commit: Commit, names: Mapping[str, str]) -> CommitRecord:
    collections: dict[str, int] = {}
    for file in commit.adds:
        name = names.get(file.collection, file.collection)
        collections[name] = collections.get(name, 0) + file.rows
    is_fence = commit.operation is Operation.FENCE
    return CommitRecord(
        commit.version,
        commit.timestamp_ms,
        _happening(commit, ()),
        None,
        dict(sorted(collections.items())),
        len(commit.adds),
        len(commit.removed_paths),
        commit.app_txns.get(AppTxn.DEPLOY_GENERATION) if is_fence else None,
        commit.app_txns.get(AppTxn.EPOCH) if is_fence else None,
        frontier=commit.app_txns.get(AppTxn.FRONTIER),
        details=commit.details,
    )


def _moments(journal: SystemRows) -> Iterator[CommitRecord]:
    """Yield every retained commit, the newest first."""
    version = journal.state.stash_version
    for commit in _newest_first(journal.log, journal.state):
        yield _moment(journal, commit, version)
        version = _version_before(commit, version)


def _newest_first(log: Log, state: LogState) -> Iterator[Commit]:
    first = state.frontier
    for last in range(state.version, first - 1, -_BATCH):
        yield from reversed(list(log.commits(max(first, last - _BATCH + 1), last)))


def _version_before(commit: Commit, version: int | None) -> int | None:
    led_to = commit.app_txns.get(AppTxn.STASH_VERSION)
    if led_to is None:
        return version
    match commit.operation:
        case Operation.MIGRATE:
            return led_to - 1
        case Operation.UNDO:
            return led_to + 1
        case _:
            return None


def _moment(journal: SystemRows, commit: Commit, version: int | None) -> CommitRecord:
    collections: dict[str, int] = {}
    for file in commit.adds:
        collections[file.collection] = collections.get(file.collection, 0) + file.rows
    runs = tuple(
        StepRun.of(MigrationEvent(int(key.id), value)) for key, value in _own_rows(journal, commit, "migration_event")
    )
    moment = CommitRecord(
        commit.version,
        commit.timestamp_ms,
        _happening(commit, runs),
        version,
        dict(sorted(collections.items())),
        len(commit.adds),
        len(commit.removed_paths),
        frontier=commit.app_txns.get(AppTxn.FRONTIER),
        runs=tuple(sorted(runs, key=lambda run: run.event)),
        details=commit.details,
    )
    if commit.operation is not Operation.FENCE:
        return moment
    tokens = _own_rows(journal, commit, "fence_token")
    return replace(
        moment,
        deploy_generation=commit.app_txns.get(AppTxn.DEPLOY_GENERATION),
        epoch=commit.app_txns.get(AppTxn.EPOCH),
        holder=next((str(value.holder) for _, value in tokens), ""),
    )


def _own_rows(journal: SystemRows, commit: Commit, collection: str) -> list[tuple[Any, Any]]:
    """Return the rows of an engine collection that a commit added; a base file also holds earlier ones."""
    kind = journal.registry.named(collection)
    found = []
    if commit.operation not in MERGING:
        for file in commit.adds:
            if file.collection == collection and file.kind is FileKind.TAIL:
                with retired_if_missing(journal.log, commit.version):
                    rows = journal.log.read(file, ["key", "value", "diff"]).to_pylist()
                found += [kind.decode(row["key"], row["value"]) for row in rows if row["diff"] > 0]
    return found


_BY_OPERATION: Mapping[Operation, CommitKind] = {
    Operation.CREATE: CommitKind.CREATED,
    Operation.FENCE: CommitKind.FENCED,
    Operation.CONSOLIDATE: CommitKind.CONSOLIDATED,
    Operation.MIGRATE: CommitKind.MIGRATED,
    Operation.UNDO: CommitKind.UNDONE,
    Operation.RETAIN: CommitKind.RETAINED,
    Operation.SEAL: CommitKind.SEALED,
    Operation.LOAD: CommitKind.CHANGED,
    Operation.REORGANISE: CommitKind.CONSOLIDATED,
    Operation.CLAIM: CommitKind.CHANGED,
}


def _happening(commit: Commit, runs: Iterable[StepRun]) -> CommitKind:
    if commit.operation is not Operation.TRANSACTION:
        return _BY_OPERATION[commit.operation]
    if AppTxn.STASH_VERSION in commit.app_txns or AppTxn.TABLES_FORMAT in commit.app_txns:
        return CommitKind.BEGUN
    if commit.app_txns.get(AppTxn.RUNNING_STEP):
        return CommitKind.STEP_BEGUN
    return CommitKind.STEP_FAILED if any(run.state == RunState.ERROR.name for run in runs) else CommitKind.CHANGED


_ORDINARY = frozenset({CommitKind.CHANGED, CommitKind.CONSOLIDATED})
_ENDS = frozenset({CommitKind.MIGRATED, CommitKind.STEP_FAILED})


def _alone(moments: Iterable[CommitRecord]) -> Iterator[HistoryLine]:
    return (HistoryLine(moment.happening, moment.version, (moment,)) for moment in moments)


def _folded(moments: Iterable[CommitRecord]) -> Iterator[HistoryLine]:
    """Ordinary commits that follow each other as one line, and so the beginning of a run with its end."""
    gathered: list[CommitRecord] = []
    for moment in chain(moments, [None]):
        if moment is not None and (not gathered or _belongs(gathered, moment)):
            gathered.append(moment)
            continue
        if gathered:
            yield _line(gathered)
        gathered = [] if moment is None else [moment]


def _belongs(gathered: Sequence[CommitRecord], older: CommitRecord) -> bool:
    newer = gathered[-1]
    if newer.happening in _ORDINARY and older.happening in _ORDINARY:
        return newer.version == older.version
    if newer.happening in _ENDS and older.happening is CommitKind.STEP_BEGUN:
        return {run.event for run in newer.runs} <= {run.event for run in older.runs}
    return False


def _line(moments: Sequence[CommitRecord]) -> HistoryLine:
    happenings = {moment.happening for moment in moments}
    is_changed = CommitKind.CHANGED in happenings
    return HistoryLine(CommitKind.CHANGED if is_changed else moments[0].happening, moments[0].version, tuple(moments))
