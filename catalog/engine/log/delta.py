"""The log on Delta Lake.

The storage decides which commit takes a version: a local entry is linked to its name, which fails if there is one of
that name; in an object store delta-rs puts it on the same condition. Neither is trusted with anything else: this module
validates before, makes durable what was written, and reads the log after any exception to learn the outcome.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from catalog.engine.base.fence import Fence
from catalog.engine.base.lazy_arrow import pa
from catalog.engine.base.steady_clock import steady_s
from catalog.engine.log.archive import Archive
from catalog.engine.log.commit_rules import attempt, check_change, check_size, committed, sealing
from catalog.engine.log.data_files import (
    check_rows,
    decode_row_list,
    decode_rows,
    describe,
    describe_tail,
    encode_rows,
    encode_tail,
    is_data_file,
    name_file,
)
from catalog.engine.log.delta_entries import (
    ARCHIVE_FOLDER,
    LOG_FOLDER,
    archived,
    checkpoint_path,
    clock_path,
    commit_entry,
    entry_path,
)
from catalog.engine.log.held_table import HELD_COMMITS_MAX, HeldTable
from catalog.engine.log.parquet_footers import ParquetGroups, read_groups
from catalog.engine.log.protocol import (
    Commit,
    CommitRequest,
    DataFile,
    FaultHook,
    FaultPoint,
    FileKind,
    LogState,
    Operation,
    Row,
    RowGroup,
    no_fault,
)
from catalog.engine.log.state_reader import LAST_CHECKPOINT, StateReader
from catalog.engine.storage.base import NOTHING, Storage, StoredFile, map_concurrently, open_storage, place_ms
from catalog.errors import (
    CatalogError,
    CheckpointMismatchError,
    CommitFailedError,
    ConflictError,
    DamagedError,
    FilesLostError,
    ForeignTableError,
    IndeterminateError,
    MissingFileError,
    NoStoreError,
    RetiredError,
    StoreUnreachableError,
)
from catalog.errors.redaction import secrets_of

_BATCH = 64
"""Entries that are read at once."""
_STALLED_S = 60
"""A commit over the network that took longer may have landed below the retention frontier, where no reader looks."""


class DeltaLog:
    """One Delta table, on any storage. Picklable: another process opens it again by its URI and options."""

    def __init__(
        self,
        uri: str,
        options: Mapping[str, str] | None = None,
        *,
        reached: FaultHook = no_fault,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._storage: Storage = open_storage(uri, options or {})
        self._options = dict(options or {})
        self._reached = reached
        self._clock = clock
        self._archive = Archive(self._storage, reached)
        self._reader = StateReader(self._storage, self._archive)
        self._table = HeldTable(self._storage, self._options, self._archive, self._reader)
        self._settled = -1
        self.uri = self._storage.uri

    def __reduce__(self) -> tuple[type[DeltaLog], tuple[str, dict[str, str]]]:
        return DeltaLog, (self.uri, self._options)

    @property
    def options(self) -> dict[str, str]:
        """Return the options of the storage, which may hold credentials."""
        return dict(self._options)

    def now_ms(self) -> int:
        return int(self._clock() * 1000)

    def place_ms(self) -> int:
        return place_ms(self._storage, clock_path(self._reader.newest_read or 0))

    def entry_times(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        for start in range(first, last + 1, _BATCH):
            versions = range(start, min(start + _BATCH, last + 1))
            for version, written_ms in zip(
                versions, map_concurrently(self._storage, self._archive.modified_ms, versions), strict=True
            ):
                if written_ms is None:
                    return
                yield version, written_ms

    def create(self, txid: str) -> bool:
        if self._reader.last_checkpoint() is not None or any(self._archive.listed()):
            self.verify()
            return False
        try:
            self._check_empty()
        except ForeignTableError:
            if not any(self._archive.listed()):
                raise
            self.verify()  # another process made and filled the log since we looked
            return False
        self._storage.prepare(LOG_FOLDER)
        change = CommitRequest(Operation.CREATE, txid)
        try:
            with self._attempt(0, change, _cannot_seal):
                self._reached(FaultPoint.CREATE_BEFORE_LOG)
                self._table.create(change, self.now_ms())
                self._reached(FaultPoint.CREATE_AFTER_LOG)
        except ConflictError:
            return False
        self._settle(0)
        return True

    def verify(self) -> int:
        return self._reader.verify()

    def head(self, known: int) -> int:
        found = self._reader.walk(known)
        return self._reader.newest() if found is None else found

    def commit(self, version: int) -> Commit:
        return self._reader.commit(version)

    def commits(self, first: int, last: int) -> Iterator[Commit]:
        for start in range(first, last + 1, _BATCH):
            found = map_concurrently(self._storage, self.commit, range(start, min(start + _BATCH, last + 1)))
            self._reader.require_unexpired(start)
            yield from found

    def state(self, version: int) -> LogState:
        return self._reader.state(version)

    def write(self, collection: str, kind: FileKind, fence: Fence, rows: pa.Table) -> DataFile:
        check_rows(collection, kind, rows)
        content = encode_rows(rows, kind)
        return describe(self._write(collection, kind, fence, content), content.nbytes, rows)

    def write_tail(self, collection: str, fence: Fence, rows: Sequence[Row]) -> DataFile:
        content = encode_tail(collection, rows)
        return describe_tail(self._write(collection, FileKind.TAIL, fence, content), content.nbytes, rows)

    def _write(self, collection: str, kind: FileKind, fence: Fence, content: memoryview) -> str:
        path = name_file(collection, kind, fence, content)
        self._reached(FaultPoint.WRITE_BEFORE_FILE)
        self._storage.write(path, content)
        self._reached(FaultPoint.WRITE_AFTER_FILE)
        return path

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None
    ) -> pa.Table:
        return decode_rows(self.uri, file, self._content(file), columns, groups)

    def rows(self, file: DataFile) -> list[Row]:
        return decode_row_list(self.uri, file, self._content(file))

    def _content(self, file: DataFile) -> bytes:
        return self._there(file, self._storage.read(file.path))

    def _there(self, file: DataFile, content: bytes | None) -> bytes:
        if content is None:
            raise MissingFileError(self.uri, file.path)
        return content

    def groups(self, file: DataFile) -> tuple[RowGroup, ...]:
        return read_groups(self.uri, file, partial(self._range, file), lambda: self.read(file, ["key"]))

    def grouped(self, file: DataFile) -> ParquetGroups:
        return ParquetGroups.opened(self.uri, file, partial(self._range, file))

    def _range(self, file: DataFile, start: int, end: int) -> bytes:
        return self._there(file, self._storage.read_range(file.path, start, end))

    def compare_and_append(self, expected: LogState, change: CommitRequest) -> Commit:
        check_change(expected, change)
        started_s = steady_s()
        for file, size in self._sizes(change):
            check_size(self.uri, file, size)
        append = self._appender(expected)
        version, now_ms = expected.version + 1, self.now_ms()
        try:
            self._settle(expected.version)  # else a power cut could leave this commit, and not the one it builds on
        except StoreUnreachableError as error:
            if not self._archive.is_current(expected.version):  # archived meanwhile, since others committed more
                raise ConflictError(self.uri, expected.version, self.head(expected.version)) from error
            raise CommitFailedError(self.uri, version, error.what) from error
        with self._attempt(version, change, lambda: self._seal(expected, change)):
            self._reached(FaultPoint.COMMIT_BEFORE_LOG)
            append(change, now_ms)
            self._reached(FaultPoint.COMMIT_AFTER_LOG)
        try:
            self._settle(version)
            self._reached(FaultPoint.COMMIT_AFTER_SYNC)
            self._check_landed(expected, change, started_s)
            self._check_kept(version, change, started_s)
        except (ConflictError, FilesLostError):
            raise
        except Exception as error:
            found = error.what if isinstance(error, CatalogError) else str(error)
            raise IndeterminateError(self.uri, version, change.txid, f"not known to be durable: {found}") from error
        return committed(version, change, now_ms)

    def checkpoint(self, version: int) -> None:
        try:
            self.state(version)  # a damaged entry must not be made a part of a checkpoint
            if not self._archive.is_current(version):
                return  # there are newer checkpoints
            self._make_checkpoint(version)
        except (RetiredError, StoreUnreachableError):
            if self._archive.is_current(version):
                raise
            return  # the same: other processes made them, and archived this one, meanwhile
        self._reached(FaultPoint.CHECKPOINT_AFTER)
        self._archive.put()

    def _make_checkpoint(self, version: int) -> None:
        self._reached(FaultPoint.CHECKPOINT_BEFORE)
        self._table.create_checkpoint(version)
        self._reached(FaultPoint.CHECKPOINT_AFTER_FILE)
        self._storage.write_again(checkpoint_path(version))
        with self._unless_gone(LAST_CHECKPOINT):  # a hint
            self._storage.settle(LAST_CHECKPOINT)

    def last_checkpoint(self) -> int:
        return self._reader.last_checkpoint() or 0

    def checkpoints(self) -> Iterator[tuple[int, LogState | CatalogError]]:
        return self._reader.checkpoints()

    def expire(self, before: int) -> None:
        """Delete what lies before the second newest checkpoint before the version, in case the newest is damaged."""
        usable = self._usable(before)
        if len(usable) < 2:  # noqa: PLR2004 - one to use, one in reserve
            return
        reserve, newest = usable
        try:
            is_same = self._reader.state_from(newest, newest) == self._reader.state_from(reserve, newest)
        except DamagedError:
            if self._usable(before) == usable and self._reader.newest_state().frontier <= before:
                raise
            return  # another process expires as much, or more, meanwhile
        if not is_same:
            raise CheckpointMismatchError(self.uri, reserve, newest)
        for kept in usable:  # a sync of them may have failed when they were made
            self._write_again(checkpoint_path(kept))
        for path in self._archive.before(reserve):
            self._reached(FaultPoint.EXPIRE_BEFORE_ENTRY)
            self._storage.delete(path)

    def _usable(self, before: int) -> list[int]:
        """Return the two newest checkpoints up to a version."""
        return [version for version in self._archive.listed()[1] if version <= before][-2:]

    def files(self) -> Iterator[StoredFile]:
        return (entry for entry in self._storage.entries(LOG_FOLDER, ARCHIVE_FOLDER) if is_data_file(entry.path))

    def delete(self, paths: Sequence[str]) -> None:
        def delete(path: str) -> None:
            self._reached(FaultPoint.DELETE_BEFORE_FILE)
            self._storage.delete(path)

        map_concurrently(self._storage, delete, paths)

    def _check_empty(self) -> None:
        """Refuse to make a log among files of others; leftovers of a crashed attempt are allowed."""
        found = self._storage.found()
        if found not in {None, NOTHING}:
            raise NoStoreError(self.uri, f"{found}")
        if not self._storage.remote and (escape := re.search("%[0-9A-Fa-f]{2}", self.uri)):
            raise NoStoreError(self.uri, f"{escape[0]} in a path is taken for another character by delta-rs")
        other = next((path for path in self._storage.paths("") if not path.startswith(LOG_FOLDER)), None)
        if other is not None:
            raise ForeignTableError(self.uri, f"it holds other files, such as {other}")

    def _appender(self, expected: LogState) -> Callable[[CommitRequest, int], None]:
        """Return the function that commits after the expected version; nothing is under way yet if this fails."""
        if self._storage.remote:
            return self._table.appender(expected)
        following = expected.version + 1
        if self._storage.size(entry_path(following)) is not None or not self._archive.is_current(expected.version):
            raise ConflictError(self.uri, expected.version, self.head(expected.version))
        read = self._reader.newest_read
        if read is None or expected.version - read >= HELD_COMMITS_MAX:
            try:
                self.state(expected.version)  # nothing is added to a log that nobody could read any more
            except RetiredError as error:
                raise ConflictError(self.uri, expected.version, self.head(expected.version)) from error
        return partial(self._append_by_link, expected)

    def _append_by_link(self, expected: LogState, change: CommitRequest, now_ms: int) -> None:
        version = expected.version + 1
        if not self._storage.create(entry_path(version), commit_entry(expected, change, now_ms)):
            raise FileExistsError(f"there is an entry {version}")
        self._settled = version

    def _check_landed(self, expected: LogState, change: CommitRequest, started_s: float) -> None:
        """Refuse a commit that took the name of an entry which had left the log; quick if none has left, as is the
        rule.
        """
        quick = self._storage.remote and steady_s() - started_s <= _STALLED_S
        if quick or self._archive.is_current(expected.version):
            return
        landed = self._reader.probe(expected.version + 1)
        if landed is None or not self._archive.holds(expected.version):
            checkpoints = self._archive.listed()[1]
            if landed is not None and landed.txid == change.txid and checkpoints and landed.version < checkpoints[0]:
                self._storage.delete(entry_path(landed.version))  # nothing leads to it, or it has expired
            raise LookupError("the log was expired beyond it meanwhile")
        if landed.txid != change.txid:
            self._storage.delete(entry_path(landed.version))
            raise ConflictError(self.uri, expected.version, self.head(landed.version))

    def _check_kept(self, version: int, change: CommitRequest, started_s: float) -> None:
        """Look again if the files of a commit that landed are there.

        Maintenance of this build deletes none of them. An earlier build, whose clock tells it the age of files, or
        another program may. Over the network only a commit that took long is looked at again.
        """
        if self._storage.remote and steady_s() - started_s <= _STALLED_S:
            return
        lost = next((file.path for file, size in self._sizes(change) if size != file.size), None)
        if lost is not None:
            raise FilesLostError(self.uri, version, lost)

    def _sizes(self, change: CommitRequest) -> Iterator[tuple[DataFile, int | None]]:
        sizes = map_concurrently(self._storage, self._storage.size, [file.path for file in change.adds])
        return zip(change.adds, sizes, strict=True)

    def _attempt(self, version: int, change: CommitRequest, seal: Callable[[], bool]) -> AbstractContextManager[None]:
        def probe() -> Commit | None:
            self._reached(FaultPoint.COMMIT_PROBE)
            return self._reader.probe(version)

        can_arrive_late = self._storage.remote
        late, secrets = seal if can_arrive_late else None, secrets_of(self._options, self.uri)
        return attempt(self.uri, version, change, probe=probe, seal=late, secrets=secrets)

    def _seal(self, expected: LogState, change: CommitRequest) -> bool:
        self._reached(FaultPoint.COMMIT_SEAL)
        entry = commit_entry(expected, sealing(change), self.now_ms())
        return self._storage.create(entry_path(expected.version + 1), entry)

    def _settle(self, version: int) -> None:
        """Make an entry of any process durable before anything is built on it."""
        if version > self._settled:
            path = entry_path(version)
            make_durable = self._storage.settle if version else self._storage.write_again  # the first is of delta-rs
            with self._unless_gone(path, archived(path)):
                make_durable(path)
            self._settled = version

    def _write_again(self, path: str) -> None:
        """Write a checkpoint again where it is, in the log or in the archive."""
        for place in (path, archived(path)):
            with self._unless_gone(place):
                if self._storage.size(place) is not None:
                    self._storage.write_again(place)

    @contextmanager
    def _unless_gone(self, path: str, moved_to: str = "") -> Iterator[None]:
        """Let a file fail to be made durable that another process has removed meanwhile, or moved."""
        try:
            yield
        except StoreUnreachableError:
            if self._storage.size(path) is not None or (moved_to and self._storage.size(moved_to) is None):
                raise


def _cannot_seal() -> bool:
    raise LookupError("the first entry makes the table, and nothing else can take its place")
