"""The log as a check of a stash sees it: every entry that is retained, and whether they lead to one another.

Reads entry by entry and goes on after damage, which becomes findings; never changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from catalog.errors import (
    CatalogError,
    LogTooNewError,
    NoSuchVersionError,
    RetiredError,
    StoreUnreachableError,
    TornLogError,
)
from catalog.log.files import file_fence
from catalog.log.protocol import Commit, DataFile, FileKind, Log, Operation, State
from catalog.stash.findings import (
    CHECKPOINT_AGAIN,
    CHECKPOINT_ANEW,
    REPAIR_FIRST,
    RESTORE,
    SET_ASIDE,
    SPARE,
    Code,
    Findings,
    Severity,
)

_BEYOND = 16
"""Entries looked for after the newest, in case one between is missing."""
_BATCH = 64


@dataclass(frozen=True, slots=True)
class History:
    first: State | None
    """The state at the retention frontier; none if it cannot be read."""
    newest: State
    """The newest state that can be read."""
    commits: Mapping[int, Commit]
    """Those after the frontier that can be read."""
    checkpoints: Mapping[int, State]
    """Those that can be read."""
    whole: bool
    """Nothing that is retained of the log is missing here."""

    def files(self) -> dict[str, DataFile]:
        """Every file that a retained state refers to, as far as is known."""
        found = {**(self.first.files if self.first else {}), **self.newest.files}
        return found | {file.path: file for commit in self.commits.values() for file in commit.adds}


def read_history(log: Log, findings: Findings) -> tuple[History | None, int]:
    """All that is retained of a log, and how many entries were looked at; none if no state can be read."""
    try:
        head = _head(log)
    except CatalogError as error:
        findings.add(Code.NO_LOG, log.uri, error.what, f"cannot be repaired from here: {error.next}")
        return None, 0
    checkpoints = _checkpoints(log, findings)
    newest, reason = _newest_state(log, head)
    frontier = newest.frontier if newest else 0
    entries = dict(_entries(log, frontier, head))
    for version, entry in entries.items():
        if isinstance(entry, CatalogError):
            _add_entry(findings, version, entry, is_newest=version == head)
    if newest is None:
        findings.add(Code.STATE, f"ts {head}", f"no state can be read: {reason}", RESTORE)
        return None, len(entries)
    if newest.version != head:
        what = f"cannot be read: {reason}; files and rows were checked as of ts {newest.version}"
        findings.add(Code.STATE, f"ts {head}", what, REPAIR_FIRST)
    try:
        first = log.state(frontier)
    except CatalogError as error:
        first = None
        findings.add(Code.STATE, f"ts {frontier}", f"cannot be read: {error.what}", RESTORE)
    commits = {v: entry for v, entry in entries.items() if isinstance(entry, Commit) and v > frontier}
    whole = first is not None and newest.version == head and len(commits) == head - frontier
    return History(first, newest, commits, checkpoints, whole), len(entries) + _check_expired(log, findings, frontier)


def replay(log: Log, history: History, findings: Findings) -> dict[str, tuple[int, int]]:
    """Follow the entries from the frontier on; answer between which ts the rows of each file must be."""
    state = history.first
    if state is None:
        findings.unchecked(log.uri, "entries were not followed: the state that they begin with cannot be read")
        return {}
    born = dict.fromkeys(state.files, (0, state.version))
    txids: dict[str, int] = {}
    for version in range(state.version + 1, history.newest.version + 1):
        commit = history.commits.get(version)
        if commit is None:
            findings.unchecked(f"entry {version}", "entries from here on were not followed")
            return born
        for misfit in _misfits(state, commit, txids):
            findings.add(Code.SEQUENCE, f"entry {version}", misfit, RESTORE)
        txids[commit.txid] = version
        born |= {file.path: _lifetime(state, commit, file) for file in commit.adds}
        state = state.after(commit)
        if version in history.checkpoints and version != history.newest.version:
            _compare(state, history.checkpoints[version], findings)
    _compare(state, history.newest, findings)
    return born


def _head(log: Log) -> int:
    """The newest version, whatever is in its entry, and even if one before it is missing."""
    try:
        head = log.verify()
    except CatalogError as error:
        found = error.version if isinstance(error, TornLogError | LogTooNewError) else 0
        head = max(found, log.head(log.checkpointed()))
    for version in range(head + 2, head + _BEYOND):
        if not isinstance(_entry(log, version), NoSuchVersionError | StoreUnreachableError):
            head = version
    return head


def _checkpoints(log: Log, findings: Findings) -> dict[int, State]:
    """The checkpoints that can be read; the others are found."""
    readable: dict[int, State] = {}
    try:
        for version, found in log.checkpoints():
            if isinstance(found, State):
                readable[version] = found
            else:
                findings.add(Code.DAMAGED_CHECKPOINT, f"checkpoint {version}", found.what, CHECKPOINT_ANEW)
    except CatalogError as error:
        findings.unchecked(log.uri, f"not all checkpoints were looked at: {error.what}")
    return readable


def _newest_state(log: Log, head: int) -> tuple[State | None, str]:
    """The newest state that can be read, and why no newer one can."""
    reason = ""
    for version in range(head, -1, -1):
        state = _state(log, version)
        if isinstance(state, State):
            return state, reason
        reason = reason or state.what
        if isinstance(state, RetiredError):
            break
    return None, reason


def _state(log: Log, version: int) -> State | CatalogError:
    try:
        return log.state(version)
    except CatalogError as error:
        return error


def _entry(log: Log, version: int) -> Commit | CatalogError:
    try:
        return log.commit(version)
    except CatalogError as error:
        return error


def _entries(log: Log, first: int, last: int) -> Iterator[tuple[int, Commit | CatalogError]]:
    for start in range(first, last + 1, _BATCH):
        stop = min(start + _BATCH, last + 1)
        try:
            commits = list(log.commits(start, stop - 1))
        except CatalogError:
            yield from ((version, _entry(log, version)) for version in range(start, stop))
        else:
            yield from ((commit.version, commit) for commit in commits)


def _add_entry(findings: Findings, version: int, error: CatalogError, *, is_newest: bool) -> None:
    where = f"entry {version}"
    match error:
        case RetiredError():
            findings.unchecked(where, "it was retired while the check was running")
        case NoSuchVersionError():
            findings.add(Code.ENTRY, where, "it is missing, and later ones are there", RESTORE)
        case TornLogError():
            findings.add(Code.ENTRY, where, error.what, SET_ASIDE if is_newest and version else RESTORE)
        case _:
            findings.add(Code.ENTRY, where, error.what, f"cannot be repaired from here: {error.next}")


def _check_expired(log: Log, findings: Findings, frontier: int) -> int:
    """Look at the entries before the frontier that are still there; answer how many."""
    for version in range(frontier - 1, -1, -1):
        entry = _entry(log, version)
        if isinstance(entry, RetiredError) or (isinstance(entry, TornLogError) and entry.found == "it is missing"):
            return frontier - 1 - version
        if isinstance(entry, CatalogError):
            findings.add(Code.ENTRY, f"entry {version}", entry.what, SPARE, Severity.NOTE)
    return frontier


def _compare(replayed: State, state: State, findings: Findings) -> None:
    where = f"ts {replayed.version}"
    if state != replayed:
        paths = sorted({path for path, _ in replayed.files.items() ^ state.files.items()})
        marks = sorted({mark for mark, _ in replayed.marks.items() ^ state.marks.items()})
        what = f"the checkpoint and the entries disagree about {', '.join([*paths, *marks])}"
        findings.add(Code.CHECKPOINT, where, what, CHECKPOINT_AGAIN)


def _misfits(state: State, commit: Commit, txids: Mapping[str, int]) -> Iterator[str]:
    """In what a commit does not fit the state before it."""
    after = state.after(commit)
    for path in commit.removed_paths:
        if path not in state.files:
            yield f"it removes {path}, which was not there"
    for file in commit.adds:
        if file.path in state.files:
            yield f"it adds {file.path}, which was there already"
        if file_fence(file.path) < state.fence and commit.operation is not Operation.UNDO:
            yield f"it adds {file.path}, whose writer was fenced"
    if after.fence < state.fence:
        yield f"it takes the fence back from {tuple(state.fence)} to {tuple(after.fence)}"
    if not state.frontier <= after.frontier <= commit.version:
        yield f"it moves the retention frontier from {state.frontier} to {after.frontier}"
    if commit.txid in txids:
        yield f"it is entry {txids[commit.txid]} again: {commit.txid}"


def _lifetime(state: State, commit: Commit, file: DataFile) -> tuple[int, int]:
    """Between which ts the rows must be of a file that a commit adds."""
    if file.kind is FileKind.BASE or commit.operation is Operation.UNDO:
        return 0, commit.version
    if commit.operation is Operation.CONSOLIDATE:
        removed = [state.files[path] for path in commit.removed_paths if path in state.files]
        merged = [old for old in removed if old.collection == file.collection] or [file]
        return min(old.ts_min for old in merged), max(old.ts_max for old in merged)
    return commit.version, commit.version
