"""A log entry that is damaged: found, judged, and restored or left out, with its bytes kept.

Its content is restored only if that can be proven: by its own digest, if one bit flipped, or because the files that
are there lead to the very state that it, or the entry after it, names. Else the newest entry is set aside and a seal
takes its version; it is not removed, so that no process can commit there meanwhile. An entry before others is left out
only on request, as its commit was acknowledged.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from catalog.engine.log.archive import Archive
from catalog.engine.log.commit_rules import committed
from catalog.engine.log.data_files import decode_row_list, describe_content, file_fence, is_data_file
from catalog.engine.log.delta_entries import (
    ARCHIVE_FOLDER,
    LOG_FOLDER,
    archived,
    checkpoint_path,
    commit_entry,
    entry_path,
    parse_entry,
    with_state,
)
from catalog.engine.log.digests import state_text
from catalog.engine.log.entry_proofs import rebuilt, with_one_bit_flipped
from catalog.engine.log.protocol import CommitRequest, DataFile, FileKind, LogState, Operation, no_fault
from catalog.engine.log.state_reader import LAST_CHECKPOINT, StateReader
from catalog.engine.storage.base import Storage, map_concurrently
from catalog.errors import (
    AlteredEntryError,
    CatalogError,
    CorruptFileError,
    DamagedError,
    DiagnosisOutdatedError,
    ForeignTableError,
    LogTooNewError,
    LossNotAcceptedError,
    MissingFileError,
    NotRepairableError,
    RetiredError,
    TornLogError,
)

QUARANTINE_FOLDER = "_quarantine"
_LEFT_OUT = "left out"
"""The detail of a barrier: the version that the entries up to it do without."""
_BATCH = 64
"""Entries that are read at once."""


class Remedy(StrEnum):
    """A way to repair an entry."""

    RESTORE = "restore"
    """Its content is known, and proven."""
    RETIRE = "retire"
    """A later checkpoint holds all that it led to; the states between can no longer be read."""
    SET_ASIDE = "set aside"
    """It is the newest: the store goes back to the state before it."""
    LEAVE_OUT = "leave out"
    """Others follow it: the store goes on without what it changed. Only on request."""


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    version: int
    found: str
    """The damage, in words."""
    size: int
    digest: str
    """Of its bytes, so that the same can be known again."""
    remedy: Remedy | None = None
    lost: str = ""
    """The loss that comes with the remedy, in words; empty if there is none."""
    obstacle: str = ""
    """The reason why there is no remedy; else empty."""
    restored: bytes = field(default=b"", repr=False)
    frontier: int = 0
    """The version of the checkpoint that holds what it led to."""
    orphans: tuple[str, ...] = ()
    """Files whose rows are of its ts: perhaps its own. They are kept beside its bytes."""

    @property
    def path(self) -> str:
        """Return the path of its kept bytes, within the log."""
        return f"{QUARANTINE_FOLDER}/{self.version:020d}.{self.digest[:16]}.json"


def find_damaged(storage: Storage) -> DamagedEntry | None:
    """Return the oldest damaged entry that is retained; none if all are whole, by any writer, or there is no log."""
    archive = Archive(storage, no_fault)
    reader, versions = StateReader(storage, archive), archive.listed()[0]
    if not versions:
        return None
    newest = versions[-1]
    usable = reader.usable_checkpoint(newest)[0]
    state = _first_state(reader, newest, usable)
    first = state.version + 1 if state is not None else min((usable or 0) + 1, newest)
    for version, raw in _entries(storage, archive, first, newest):
        content = raw or b""
        found = DamagedEntry(version, "it is missing", len(content), hashlib.sha256(content).hexdigest())
        try:
            commit = None if raw is None else parse_entry(storage.uri, version, raw)
        except (ForeignTableError, LogTooNewError):
            return None
        except (TornLogError, AlteredEntryError) as error:
            commit, found = None, replace(found, found=error.found)
        if commit is None:
            return _judged(storage, reader, found, content, newest, usable)
        state = None if state is None else state.after(commit)
        if state is not None and commit.state_digest not in {"", state_text(state.digest)}:
            return _unfit(replace(found, found="it leads to another state than those before it"), newest, usable)
    return None


def repair_entry(storage: Storage, damaged: DamagedEntry, now_ms: int, *, accept_loss: bool = False) -> None:
    """Apply the remedy of a damaged entry, after its bytes were kept beside the log."""
    if damaged.obstacle or damaged.remedy is None:
        raise NotRepairableError(storage.uri, damaged.version, damaged.obstacle)
    if damaged.remedy is Remedy.LEAVE_OUT and not accept_loss:
        raise LossNotAcceptedError(storage.uri, damaged.version, damaged.lost)
    found = find_damaged(storage)
    if found is None and storage.size(damaged.path) is not None:
        return  # another repair was quicker
    raw = Archive(storage, no_fault).read(entry_path(damaged.version)) or b""
    if found != damaged or hashlib.sha256(raw).hexdigest() != damaged.digest:
        raise DiagnosisOutdatedError(storage.uri, f"log entry {damaged.version}")
    storage.create(damaged.path, raw)
    if damaged.remedy is Remedy.RESTORE:
        _replace(storage, damaged.version, damaged.restored)
    elif damaged.remedy is not Remedy.RETIRE:  # which is a commit, made by the caller
        for path in damaged.orphans:
            storage.create(f"{QUARANTINE_FOLDER}/{path}", storage.read(path) or b"")
        _leave_out(storage, damaged, now_ms)


def _first_state(reader: StateReader, newest: int, checkpoint: int | None) -> LogState | None:
    """Return the earliest state that is retained; if that is unknown, the one of the newest usable checkpoint."""
    try:
        return reader.state(reader.state(newest).frontier)
    except (DamagedError, ForeignTableError, LogTooNewError, RetiredError):
        pass
    if checkpoint is None:
        return LogState(-1, {}, {})
    try:
        return reader.state(min(checkpoint, newest - 1))
    except CatalogError:
        return None


def _entries(storage: Storage, archive: Archive, first: int, last: int) -> Iterator[tuple[int, bytes | None]]:
    for start in range(first, last + 1, _BATCH):
        versions = range(start, min(start + _BATCH, last + 1))
        yield from zip(versions, map_concurrently(storage, archive.read, map(entry_path, versions)), strict=True)


def _judged(
    storage: Storage, reader: StateReader, found: DamagedEntry, raw: bytes, newest: int, checkpoint: int | None
) -> DamagedEntry:
    """Return a damaged entry with its remedy, or with the reason why there is none."""
    version = found.version
    before, obstacle = _state_before(reader, version)
    orphans = () if before is None else tuple(_orphans(storage, version, before))
    last = _last_before_barrier(reader, version, newest)
    if last == newest:  # else a repair has begun to leave it out
        whole = with_one_bit_flipped(storage.uri, version, raw)
        if whole is None and before is not None:
            whole = rebuilt(reader, before, raw, orphans)
        if whole is not None:
            return replace(found, remedy=Remedy.RESTORE, restored=whole)
        if checkpoint is not None and checkpoint >= version:
            return _retired(found, newest, checkpoint)
    if before is not None and version < last:
        obstacle = _needed_later(storage, reader, before, last, orphans)
    if obstacle:
        return replace(found, obstacle=obstacle)
    tails = [own for own in orphans if own.kind is FileKind.TAIL]
    rows = ", ".join(f"{own.rows} of `{own.collection}`" for own in tails)
    kept = f"rows of that ts were found, and are kept: {rows}" if rows else "no row of that ts was found"
    lost = f"the changes of the commit of ts {version} ({kept})"
    remedy = Remedy.SET_ASIDE if version == last else Remedy.LEAVE_OUT
    return replace(found, remedy=remedy, lost=lost, orphans=tuple(own.path for own in tails))


def _unfit(found: DamagedEntry, newest: int, checkpoint: int | None) -> DamagedEntry:
    """Return a whole entry that does not follow from those before it, with its remedy if a later state is known."""
    if checkpoint is not None and found.version <= checkpoint < newest:
        return _retired(found, newest, checkpoint)
    return replace(found, obstacle="it, or one before it, is of another history, and nothing tells which")


def _last_before_barrier(reader: StateReader, version: int, newest: int) -> int:
    """Return the newest version; if it is the barrier of a repair of this entry that stopped, the one before it."""
    try:
        is_barrier = version < newest and reader.commit(newest).details.get(_LEFT_OUT) == str(version)
    except CatalogError:
        return newest
    return newest - is_barrier


def _state_before(reader: StateReader, version: int) -> tuple[LogState | None, str]:
    """Return the state before an entry, or the reason why there is none."""
    if version == 0:
        return None, "it is the first, and there is no state before it"
    try:
        return reader.state(version - 1), ""
    except CatalogError as error:
        return None, f"the state before it cannot be read either: {error.what}"


def _retired(found: DamagedEntry, newest: int, checkpoint: int) -> DamagedEntry:
    """Return a damaged entry with its remedy if there is a checkpoint of it, or of a later state."""
    if found.version == newest:
        return replace(found, obstacle="a checkpoint was made of it, so it was whole once, and acknowledged")
    frontier = max(checkpoint, found.version + 1)
    return replace(found, remedy=Remedy.RETIRE, lost=f"the states before ts {frontier}", frontier=frontier)


def _orphans(storage: Storage, version: int, before: LogState) -> Iterator[DataFile]:
    """Yield the files that a commit may have written; those of commits that failed may be among them."""
    for stored in storage.entries(LOG_FOLDER, ARCHIVE_FOLDER, QUARANTINE_FOLDER):
        path = stored.path
        if path in before.files or not is_data_file(path) or file_fence(path) < before.fence:
            continue
        try:
            file = describe_content(storage.uri, path, storage.read(path) or b"")
        except CorruptFileError:
            continue
        if file.ts_max == version - (file.kind is FileKind.BASE):
            yield file


def _needed_later(
    storage: Storage, reader: StateReader, before: LogState, last: int, orphans: Sequence[DataFile]
) -> str:
    """Return why the commits after an entry cannot do without it; empty if they can."""
    state, version = before, before.version + 1
    if merged := [own.path for own in orphans if own.kind is FileKind.BASE]:
        return f"it may be the migration or consolidation that wrote {min(merged)}"
    for later in range(version + 1, last + 1):
        try:
            commit = reader.commit(later)
        except DamagedError as error:
            return f"a later entry is damaged too: {error.what}"
        if lacking := {*commit.removed_paths} - state.files.keys():
            return f"entry {later} replaces {min(lacking)}, which it added"
        state = state.after(commit)
        if state.fence.epoch and any(file_fence(file.path) > state.fence for file in commit.adds):  # 0 in a shard
            return f"entry {later} is of a leader that began with it"
    try:
        return _row_needed_later(storage, state, version)
    except CatalogError as error:
        return f"it is not known which rows depend on it: {error.what}"


def _row_needed_later(storage: Storage, state: LogState, version: int) -> str:
    """Return why the rows that were changed after an entry depend on it; empty if none does."""
    for collection in sorted({file.collection for file in state.files.values() if file.ts_max > version}):
        counts: Counter[tuple[bytes, bytes]] = Counter()
        for file in state.files_of(collection):
            content = storage.read(file.path)
            if content is None:
                raise MissingFileError(storage.uri, file.path)
            for key, value, _, diff in decode_row_list(storage.uri, file, content):
                counts[key, value] += diff
        present = [own for own, count in counts.items() if count]
        if any(counts[own] != 1 for own in present) or len({key for key, _ in present}) < len(present):
            return f"a later commit changed a row of `{collection}` that it wrote"
    return ""


def _leave_out(storage: Storage, damaged: DamagedEntry, now_ms: int) -> None:
    """Take the version of an entry by a seal, and let each entry after it name the state that it now leads to.

    First a barrier takes the next version: a process that holds the lost commit in memory cannot commit after it, and
    learns from the state that the barrier names that it must not go on. The seal is last: until then the entry is
    found damaged, and a repair that stopped is done again.
    """
    archive, version = Archive(storage, no_fault), damaged.version
    reader, (versions, checkpoints) = StateReader(storage, archive), archive.listed()
    before, last = reader.state(version - 1), _last_before_barrier(reader, version, versions[-1])
    seal = CommitRequest(Operation.SEAL, uuid.uuid4().hex, details={"quarantined": damaged.path})
    state, following = before.after(committed(version, seal, now_ms)), dict[int, tuple[bytes, bytes]]()
    for later in range(version + 1, last + 1):
        raw = archive.read(entry_path(later)) or b""
        state = state.after(parse_entry(storage.uri, later, raw))
        following[later] = raw, with_state(state, raw)
    if last == versions[-1]:
        barrier = CommitRequest(Operation.SEAL, uuid.uuid4().hex, details={_LEFT_OUT: str(version)})
        if not storage.create(entry_path(last + 1), commit_entry(state, barrier, now_ms)):
            raise DiagnosisOutdatedError(storage.uri, f"log entry {version}")
    for checkpoint in (own for own in checkpoints if own >= version):  # of a state that is no longer so
        storage.delete(checkpoint_path(checkpoint))
        storage.delete(archived(checkpoint_path(checkpoint)))
    if checkpoints and checkpoints[-1] >= version:
        storage.delete(LAST_CHECKPOINT)
    for later, (raw, entry) in following.items():
        if entry != raw:
            storage.create(f"{QUARANTINE_FOLDER}/{later:020d}.{hashlib.sha256(raw).hexdigest()[:16]}.json", raw)
            _replace(storage, later, entry)
    _replace(storage, version, commit_entry(before, seal, now_ms))


def _replace(storage: Storage, version: int, entry: bytes) -> None:
    """Write an entry over what is there, in the log and in the archive."""
    path = entry_path(version)
    if storage.size(archived(path)) is not None:
        storage.replace(archived(path), entry)
    if storage.size(path) is not None or storage.size(archived(path)) is None:
        storage.replace(path, entry)
