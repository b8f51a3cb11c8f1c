"""What keeps a log small and quick: checkpoints, the retention frontier, expiry, vacuum and the sweep of orphans.

Over the Log protocol alone. Whatever changes what the log holds goes through `compare_and_append`; files are deleted
only when no state from the frontier on refers to them and nobody can commit them any more. Stopped at any point, it
leaves more than is needed and never less.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from catalog.errors import CatalogError, RetiredError, RetryableError, StepRunningError
from catalog.log.files import file_fence
from catalog.log.protocol import Change, Log, Mark, Operation, State

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Policy:
    """How much is kept, and how often what is not is cleared away."""

    checkpoint_every: int = 20
    """In commits. Opening reads as many entries at most."""
    clean_every: int = 500
    """In commits. Cleaning reads all that is retained of the log, hence seldom."""
    retention_ms: int = 7 * _DAY_MS
    """Every state that was the newest within this time can be read. Longer than the longest migration."""
    orphan_ms: int = _DAY_MS
    """An uncommitted file of the present fence is left alone for this long. Longer than the longest transaction."""


@dataclass(frozen=True, slots=True)
class Maintained:
    """What maintenance did."""

    state: State
    """The newest state, which it may have moved on."""
    checkpoint: int | None = None
    """The version it made a checkpoint of."""
    frontier: int | None = None
    """Where it moved the retention frontier."""
    deleted: tuple[str, ...] = ()
    """The data files it removed."""
    cleaned: bool = False
    """Whether it looked for any."""
    postponed: CatalogError | None = None
    """Why cleaning was left for another time."""


def maintain(log: Log, state: State, policy: Policy) -> Maintained:
    """Do what is due, if anything is: quick to call after every commit."""
    last = log.checkpointed()
    if state.version - last < policy.checkpoint_every:
        return Maintained(state)
    log.checkpoint(state.version)
    if state.version // policy.clean_every == last // policy.clean_every:
        return Maintained(state, state.version)
    try:
        return replace(clean(log, state, policy), checkpoint=state.version)
    except (RetryableError, StepRunningError) as postponed:
        return Maintained(state, state.version, postponed=postponed)


def clean(log: Log, state: State, policy: Policy) -> Maintained:
    """Move the frontier to where retention has ended, and clear away whatever lies before it."""
    require_no_step(log, state.marks)
    before = state.frontier
    frontier = due_frontier(log, state, policy)
    if frontier > before:
        change = Change(Operation.RETAIN, uuid.uuid4().hex, marks={Mark.FRONTIER: frontier})
        state = state.after(log.compare_and_append(state, change))
    deleted = vacuum(log, state, policy, since=before)
    log.expire(frontier)
    return Maintained(state, frontier=frontier if frontier > before else None, deleted=deleted, cleaned=True)


def due_frontier(log: Log, state: State, policy: Policy) -> int:
    """The version that was the newest when the retention time began: whatever was before it can go."""
    cutoff_ms = log.now_ms() - policy.retention_ms
    ended = itertools.takewhile(
        lambda commit: commit.timestamp_ms <= cutoff_ms, log.commits(state.frontier + 1, state.version)
    )
    return max((commit.version for commit in ended), default=state.frontier)


def vacuum(log: Log, state: State, policy: Policy, *, since: int | None = None) -> tuple[str, ...]:
    """Delete the files that no retained state refers to and that nobody can commit any more; answer their paths."""
    doomed = find_doomed(log, state, policy, since=since)
    log.delete(doomed)
    return doomed


def find_doomed(
    log: Log, state: State, policy: Policy, *, since: int | None = None, frontier: int | None = None
) -> tuple[str, ...]:
    """The files that a vacuum would delete, or would if the frontier were there.

    Nobody can commit a file again that was committed `since` a version and retired, nor one of a lower fence, whose
    writer is fenced. Any other of the present fence may be about to be committed, and is left until it is too old.
    """
    retained_from = state.frontier if frontier is None else frontier
    present = list(log.files())
    # The log is read after the files were listed: whatever was committed meanwhile counts as retained.
    start = log.state(retained_from if since is None else since)
    live, marks = set(start.files), dict(start.marks)
    known, retained = set(live), set(live) if start.version == retained_from else set[str]()
    for commit in log.commits(start.version + 1, log.head(state.version)):
        added = [file.path for file in commit.adds]
        live.difference_update(commit.removed_paths)
        live.update(added)
        known.update(added)
        marks.update(commit.marks)
        if commit.version >= retained_from:
            retained.update(live if commit.version == retained_from else added)
    require_no_step(log, marks)
    too_old_ms = log.now_ms() - policy.orphan_ms
    return tuple(
        file.path
        for file in present
        if file.path not in retained
        and (file.path in known or file_fence(file.path) < state.fence or file.modified_ms < too_old_ms)
    )


def require_no_step(log: Log, marks: Mapping[Mark, int]) -> None:
    """Refuse while a migration runs: its files are not committed yet, and those it reads may be retired."""
    if step := marks.get(Mark.RUNNING_STEP, 0):
        raise StepRunningError(log.uri, step)


def require_retained(log: Log, state: State, version: int) -> None:
    """Refuse to read at a version before the retention frontier: its files may be gone."""
    if version < state.frontier:
        raise RetiredError(log.uri, version, state.frontier)
