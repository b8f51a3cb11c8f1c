"""Maintenance of a log: checkpoints, the retention frontier, expiry, vacuum and the sweep of orphans.

Works on the Log protocol alone. Whatever changes what the log holds goes through `compare_and_append`; files are
deleted only when no state from the frontier on refers to them and no process can commit them any more. Stopped at any
point, it leaves more than is needed and never less.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from catalog.engine.log.data_files import file_fence
from catalog.engine.log.protocol import AppTxn, CommitRequest, Log, LogState, Operation
from catalog.errors import CatalogError, RetiredError, RetryableError, StepRunningError

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of what is kept, and the rhythm in which the rest is deleted."""

    checkpoint_every: int = 20
    """In commits. Opening reads as many entries at most."""
    clean_every: int = 500
    """In commits. Cleaning reads all that is retained of the log, hence seldom."""
    retention_ms: int = 7 * _DAY_MS
    """Every state that was the newest within this time can be read. Longer than the longest migration."""
    orphan_ms: int = 7 * _DAY_MS
    """An uncommitted file of the present fence is left alone for this long, whatever the retention: its writer may be
    alive. Longer than the longest transaction."""
    keep_from: Callable[[LogState], int | None] | None = None
    """Returns the earliest version that work under way still reads at a state, however old it is; none if there is no
    such work. Its uncommitted files are younger than that version, and are left alone too."""


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """The result of one maintenance."""

    state: LogState
    """The newest state, which it may have moved on."""
    checkpoint: int | None = None
    """The version it made a checkpoint of."""
    frontier: int | None = None
    """The version to which it moved the retention frontier."""
    deleted: tuple[str, ...] = ()
    """The data files it removed."""
    cleaned: bool = False
    """True if it looked for files to remove."""
    postponed: CatalogError | None = None
    """The error that made it leave cleaning for the next time."""


def maintain(log: Log, state: LogState, policy: Policy) -> MaintenanceResult:
    """Make a checkpoint and clean if that is due; quick enough to call after every commit."""
    last = log.last_checkpoint()
    if state.version - last < policy.checkpoint_every:
        return MaintenanceResult(state)
    log.checkpoint(state.version)
    if state.version // policy.clean_every == last // policy.clean_every:
        return MaintenanceResult(state, state.version)
    try:
        return replace(clean(log, state, policy), checkpoint=state.version)
    except (RetryableError, RetiredError, StepRunningError) as postponed:  # retired: another process cleans
        return MaintenanceResult(state, state.version, postponed=postponed)


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """The files that cleaning deletes, and the frontier that it moves to."""

    frontier: int
    spent: tuple[str, ...]
    """Files that no process can commit any more: they were committed and retired, or their writer is fenced."""
    orphans: tuple[str, ...]
    """Uncommitted files of the present fence that are old. Their writers may be alive."""


def clean(log: Log, state: LogState, policy: Policy) -> MaintenanceResult:
    """Move the frontier to where retention has ended, and delete what lies before it.

    A commit comes before the deletion of orphans. Rows carry the ts of their commit, so a writer that was about to
    commit such a file has to write it again; see `is_cleaned` for files that are merged from others. So a wrong clock,
    of a process or of the place, loses no commit.
    """
    planned = plan_cleaning(log, state, policy)
    is_moved = planned.frontier > state.frontier
    if is_moved or planned.orphans:
        change = CommitRequest(Operation.RETAIN, uuid.uuid4().hex, app_txns={AppTxn.FRONTIER: planned.frontier})
        state = state.after(log.compare_and_append(state, change))
    deleted = (*planned.spent, *planned.orphans)
    log.delete(deleted)
    log.expire(planned.frontier)
    return MaintenanceResult(state, frontier=planned.frontier if is_moved else None, deleted=deleted, cleaned=True)


def is_cleaned(log: Log, first: int, last: int) -> bool:
    """Tell if a cleaning was committed among these versions: files that were written before may be deleted."""
    try:
        return any(commit.operation is Operation.RETAIN for commit in log.commits(first, last))
    except RetiredError:
        return True


def plan_cleaning(log: Log, state: LogState, policy: Policy) -> CleaningPlan:
    """Find the frontier and the files to delete; the clock of the place alone tells their age."""
    require_no_step(log, state.app_txns)
    now_ms = log.place_ms()  # before the files are listed: a later one is younger than it seems, never older
    ended = itertools.takewhile(
        lambda entry: entry[1] <= now_ms - policy.retention_ms, log.entry_times(state.frontier + 1, state.version)
    )
    frontier = max((version for version, _ in ended), default=state.frontier)
    orphan_before_ms = now_ms - policy.orphan_ms
    if policy.keep_from is not None and (needed := policy.keep_from(state)) is not None:
        frontier = max(state.frontier, min(frontier, needed))
        begun_ms = next((written_ms for _, written_ms in log.entry_times(needed, needed)), 0)
        orphan_before_ms = min(orphan_before_ms, begun_ms)
    present = list(log.files())
    # The log is read after the files were listed: whatever was committed meanwhile counts as retained.
    start = log.state(state.frontier)
    live, app_txns = set(start.files), dict(start.app_txns)
    known, retained = set(live), set(live) if start.version == frontier else set[str]()
    for commit in log.commits(start.version + 1, log.head(state.version)):
        added = [file.path for file in commit.adds]
        live.difference_update(commit.removed_paths)
        live.update(added)
        known.update(added)
        app_txns.update(commit.app_txns)
        if commit.version >= frontier:
            retained.update(live if commit.version == frontier else added)
    require_no_step(log, app_txns)
    unretained = [file for file in present if file.path not in retained]
    spent = {file.path for file in unretained if file.path in known or file_fence(file.path) < state.fence}
    orphans = (f.path for f in unretained if f.path not in spent and f.modified_ms < orphan_before_ms)
    return CleaningPlan(frontier, tuple(spent), tuple(orphans))


def require_no_step(log: Log, app_txns: Mapping[AppTxn, int]) -> None:
    """Refuse while a migration runs: its files are not committed yet, and those it reads may be retired."""
    if step := app_txns.get(AppTxn.RUNNING_STEP, 0):
        raise StepRunningError(log.uri, step)


def require_retained(log: Log, state: LogState, version: int) -> None:
    """Refuse to read at a version before the retention frontier: its files may be gone."""
    if version < state.frontier:
        raise RetiredError(log.uri, version, state.frontier)
