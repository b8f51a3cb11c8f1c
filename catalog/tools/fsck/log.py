"""The check of a log: every retained entry, and the states to which they lead.

Reads entry by entry and goes on after damage, which becomes findings. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from catalog.engine.log.data_files import file_fence
from catalog.engine.log.protocol import MERGING, Commit, DataFile, FileKind, Log, LogState, Operation
from catalog.errors import (
    AlteredEntryError,
    CatalogError,
    LogTooNewError,
    NoSuchVersionError,
    RetiredError,
    StoreUnreachableError,
    TornLogError,
)
from catalog.tools.fsck.findings import (
    CHECKPOINT_AGAIN,
    CHECKPOINT_ANEW,
    NEEDS_NO_DIGEST,
    REPAIR_ENTRY,
    REPAIR_FIRST,
    RESTORE,
    SPARE,
    FsckCode,
    FsckFindings,
    Severity,
)

_BEYOND = 16
"""The number of entries searched for after the newest, in case one between is missing."""
_BATCH = 64


@dataclass(frozen=True, slots=True)
class LogHistory:
    """The retained part of a log, as far as it can be read."""

    first: LogState | None
    """The state at the retention frontier; none if it cannot be read."""
    newest: LogState
    """The newest state that can be read."""
    commits: Mapping[int, Commit]
    """The readable commits after the frontier."""
    checkpoints: Mapping[int, LogState]
    """The readable checkpoints."""
    whole: bool
    """True if every retained entry was read."""

    def files(self) -> dict[str, DataFile]:
        """Return every file that a retained state refers to, as far as is known."""
        found = {**(self.first.files if self.first else {}), **self.newest.files}
        return found | {file.path: file for commit in self.commits.values() for file in commit.adds}


def read_history(log: Log, findings: FsckFindings) -> tuple[LogHistory | None, int]:
    """Read the retained part of a log, and count the entries read; return none if no state can be read."""
    try:
        head = _head(log)
    except CatalogError as error:
        findings.add(FsckCode.NO_LOG, log.uri, error.what, f"cannot be repaired from here: {error.next}")
        return None, 0
    checkpoints = _checkpoints(log, findings)
    newest, reason = _newest_state(log, head)
    frontier = newest.frontier if newest else 0
    entries = dict(_entries(log, frontier, head))
    for version, entry in entries.items():
        if isinstance(entry, CatalogError):
            _add_entry(findings, version, entry)
    _add_undigested(
        findings, [v for v, entry in entries.items() if isinstance(entry, Commit) and not entry.state_digest]
    )
    if newest is None:
        findings.add(FsckCode.STATE, f"ts {head}", f"no state can be read: {reason}", RESTORE)
        return None, len(entries)
    if newest.version != head:
        what = f"cannot be read: {reason}; files and rows were checked as of ts {newest.version}"
        findings.add(FsckCode.STATE, f"ts {head}", what, REPAIR_FIRST)
    try:
        first = log.state(frontier)
    except CatalogError as error:
        first = None
        findings.add(FsckCode.STATE, f"ts {frontier}", f"cannot be read: {error.what}", RESTORE)
    commits = {v: entry for v, entry in entries.items() if isinstance(entry, Commit) and v > frontier}
    whole = first is not None and newest.version == head and len(commits) == head - frontier
    return LogHistory(first, newest, commits, checkpoints, whole), len(entries) + _check_expired(
        log, findings, frontier
    )


def replay(log: Log, history: LogHistory, findings: FsckFindings) -> dict[str, tuple[int, int]]:
    """Replay the entries from the frontier on; return for each file the range of ts of its rows."""
    state = history.first
    if state is None:
        findings.unchecked(log.uri, "entries were not replayed: the state that they begin with cannot be read")
        return {}
    born = dict.fromkeys(state.files, (0, state.version))
    txids: dict[str, int] = {}
    for version in range(state.version + 1, history.newest.version + 1):
        commit = history.commits.get(version)
        if commit is None:
            findings.unchecked(f"entry {version}", "entries from here on were not replayed")
            return born
        for misfit in _misfits(state, commit, txids):
            findings.add(FsckCode.SEQUENCE, f"entry {version}", misfit, RESTORE)
        txids[commit.txid] = version
        born |= {file.path: _lifetime(state, commit, file) for file in commit.adds}
        state = state.after(commit)
        if version in history.checkpoints and version != history.newest.version:
            _compare(state, history.checkpoints[version], findings)
    _compare(state, history.newest, findings)
    return born


def _head(log: Log) -> int:
    """Return the newest version, even if its entry is damaged or an earlier one is missing."""
    try:
        head = log.verify()
    except CatalogError as error:
        found = error.version if isinstance(error, TornLogError | AlteredEntryError | LogTooNewError) else 0
        head = max(found, log.head(log.last_checkpoint()))
    for version in range(head + 2, head + _BEYOND):
        if not isinstance(_entry(log, version), NoSuchVersionError | StoreUnreachableError):
            head = version
    return head


def _checkpoints(log: Log, findings: FsckFindings) -> dict[int, LogState]:
    """Read the checkpoints; those that cannot be read become findings."""
    readable: dict[int, LogState] = {}
    try:
        for version, found in log.checkpoints():
            if isinstance(found, LogState):
                readable[version] = found
            else:
                findings.add(FsckCode.DAMAGED_CHECKPOINT, f"checkpoint {version}", found.what, CHECKPOINT_ANEW)
    except CatalogError as error:
        findings.unchecked(log.uri, f"not all checkpoints were checked: {error.what}")
    return readable


def _newest_state(log: Log, head: int) -> tuple[LogState | None, str]:
    """Return the newest state that can be read, and the reason why no newer one can."""
    reason = ""
    for version in range(head, -1, -1):
        state = _state(log, version)
        if isinstance(state, LogState):
            return state, reason
        reason = reason or state.what
        if isinstance(state, RetiredError):
            break
    return None, reason


def _state(log: Log, version: int) -> LogState | CatalogError:
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


def _add_entry(findings: FsckFindings, version: int, error: CatalogError) -> None:
    where = f"entry {version}"
    match error:
        case RetiredError():
            findings.unchecked(where, "it was retired during the check")
        case NoSuchVersionError():
            findings.add(FsckCode.ENTRY, where, "it is missing, but later entries exist", REPAIR_ENTRY)
        case TornLogError() | AlteredEntryError():
            findings.add(FsckCode.ENTRY, where, error.what, REPAIR_ENTRY if version else RESTORE)
        case _:
            findings.add(FsckCode.ENTRY, where, error.what, f"cannot be repaired from here: {error.next}")


def _add_undigested(findings: FsckFindings, versions: Sequence[int]) -> None:
    if versions:
        what = f"{len(versions)} of the retained entries carry no digest: an earlier build wrote them"
        where = f"entries {versions[0]} to {versions[-1]}"
        findings.add(FsckCode.NO_DIGEST, where, what, NEEDS_NO_DIGEST, Severity.NOTE)


def _check_expired(log: Log, findings: FsckFindings, frontier: int) -> int:
    """Check the entries before the frontier that still exist; return their number."""
    for version in range(frontier - 1, -1, -1):
        entry = _entry(log, version)
        if isinstance(entry, RetiredError) or (isinstance(entry, TornLogError) and entry.found == "it is missing"):
            return frontier - 1 - version
        if isinstance(entry, CatalogError):
            findings.add(FsckCode.ENTRY, f"entry {version}", entry.what, SPARE, Severity.NOTE)
    return frontier


def _compare(replayed: LogState, state: LogState, findings: FsckFindings) -> None:
    where = f"ts {replayed.version}"
    if state != replayed:
        paths = sorted({path for path, _ in replayed.files.items() ^ state.files.items()})
        marks = sorted({mark for mark, _ in replayed.app_txns.items() ^ state.app_txns.items()})
        what = f"the checkpoint and the entries disagree about {', '.join([*paths, *marks])}"
        findings.add(FsckCode.CHECKPOINT, where, what, CHECKPOINT_AGAIN)


def _misfits(state: LogState, commit: Commit, txids: Mapping[str, int]) -> Iterator[str]:
    """Yield every contradiction between a commit and the state before it."""
    after = state.after(commit)
    for path in commit.removed_paths:
        if path not in state.files:
            yield f"it removes {path}, which did not exist"
    for file in commit.adds:
        if file.path in state.files:
            yield f"it adds {file.path}, which existed already"
        if file_fence(file.path) < state.fence and commit.operation is not Operation.UNDO:
            yield f"it adds {file.path}, whose writer was fenced"
    if after.fence < state.fence:
        yield f"it takes the fence back from {tuple(state.fence)} to {tuple(after.fence)}"
    if not state.frontier <= after.frontier <= commit.version:
        yield f"it moves the retention frontier from {state.frontier} to {after.frontier}"
    if commit.txid in txids:
        yield f"it is entry {txids[commit.txid]} again: {commit.txid}"


def _lifetime(state: LogState, commit: Commit, file: DataFile) -> tuple[int, int]:
    """Return the range of ts of the rows of a file that a commit adds."""
    if file.kind is not FileKind.TAIL or commit.operation is Operation.UNDO:
        return 0, commit.version
    if commit.operation in MERGING:
        removed = [state.files[path] for path in commit.removed_paths if path in state.files]
        merged = [old for old in removed if old.collection == file.collection] or [file]
        return min(old.ts_min for old in merged), max(old.ts_max for old in merged)
    return commit.version, commit.version
