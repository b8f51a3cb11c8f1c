"""The log on Delta Lake, through delta-rs; the only module that imports `deltalake`.

delta-rs decides who wins a version, and this module takes its word for nothing else: it validates before the call,
makes durable what was written after it, and after any exception reads the log to learn what became of the commit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction  # noqa: TID251
from deltalake.transaction import AddAction, RemoveAction  # noqa: TID251 - here, and nowhere else

from catalog.errors import (
    CatalogError,
    ConflictError,
    CorruptFileError,
    DamagedError,
    ForeignTableError,
    IndeterminateError,
    MissingFileError,
    NoStoreError,
    StoreUnreachableError,
    TornLogError,
)
from catalog.log.archive import Archive
from catalog.log.commits import attempt, check_change, check_size, committed, sealing
from catalog.log.entries import (
    ARCHIVE_FOLDER,
    LOG_FOLDER,
    archived,
    checkpoint_path,
    entry_path,
    metadata,
    sealing_entry,
    stats,
)
from catalog.log.files import check_rows, decode_rows, describe, encode_rows, is_data_file, name_file
from catalog.log.footers import read_groups
from catalog.log.object_storage import delta_options
from catalog.log.protocol import (
    ROWS,
    Change,
    Commit,
    DataFile,
    Fence,
    FileKind,
    Operation,
    Point,
    Reached,
    RowGroup,
    State,
    StoredFile,
    pass_on,
)
from catalog.log.snapshots import HINT, Snapshots
from catalog.log.storage import Storage, each, is_panic, open_storage

_SCHEMA = ROWS.insert(0, pa.field("collection", pa.string(), nullable=False))
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_PROPERTIES = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
"""Checkpoints forget removed files at once; the files themselves stay until our own vacuum."""

_BATCH = 64
"""Entries that are read at once."""
_HELD_FOR = 20
"""Commits for which a table stays open: opening anew reads all since the last checkpoint, but one kept slows down."""
_STALLED_MS = 60_000
"""A commit over the network that took longer may have landed below the retention frontier, where nobody looks."""


class DeltaLog:
    """One Delta table, on any storage. Goes to other processes as what it was made from."""

    def __init__(
        self,
        uri: str,
        options: Mapping[str, str] | None = None,
        *,
        reached: Reached = pass_on,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._storage: Storage = open_storage(uri, options or {})
        self._options = dict(options or {})
        self._delta_options = delta_options(self._options)
        self._reached = reached
        self._clock = clock
        self._archive = Archive(self._storage, reached)
        self._snapshots = Snapshots(self._storage, self._archive)
        self._settled = -1
        self._held: tuple[int, DeltaTable] | None = None
        self.uri = self._storage.uri

    def __reduce__(self) -> tuple[type[DeltaLog], tuple[str, dict[str, str]]]:
        return DeltaLog, (self.uri, self._options)

    def now_ms(self) -> int:
        return int(self._clock() * 1000)

    def create(self, txid: str) -> bool:
        if self._snapshots.hint() is not None or any(self._archive.listed()):
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
        change = Change(Operation.CREATE, txid)
        try:
            with self._attempt(0, change, _cannot_seal):
                self._reached(Point.CREATE_BEFORE_LOG)
                self._create(change)
                self._reached(Point.CREATE_AFTER_LOG)
        except ConflictError:
            return False
        self._settle(0)
        return True

    def verify(self) -> int:
        head = self._snapshots.newest()
        self.commit(head)
        if (missing := self._snapshots.gap(head)) is not None:
            raise TornLogError(self.uri, missing, "it is missing, and later ones are there")
        return head

    def head(self, known: int) -> int:
        found = self._snapshots.walk(known)
        return self._snapshots.newest() if found is None else found

    def commit(self, version: int) -> Commit:
        return self._snapshots.commit(version)

    def commits(self, first: int, last: int) -> Iterator[Commit]:
        for start in range(first, last + 1, _BATCH):
            yield from each(self._storage, self.commit, range(start, min(start + _BATCH, last + 1)))

    def state(self, version: int) -> State:
        return self._snapshots.state(version)

    def write(self, collection: str, kind: FileKind, fence: Fence, rows: pa.Table) -> DataFile:
        check_rows(collection, kind, rows)
        content = encode_rows(rows)
        path = name_file(collection, kind, fence, content)
        self._reached(Point.WRITE_BEFORE_FILE)
        self._storage.write(path, content)
        self._reached(Point.WRITE_AFTER_FILE)
        return describe(path, content.nbytes, rows)

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None
    ) -> pa.Table:
        content = self._storage.read(file.path)
        if content is None:
            raise MissingFileError(self.uri, file.path)
        return decode_rows(self.uri, file, content, columns, groups)

    def groups(self, file: DataFile) -> tuple[RowGroup, ...]:
        def read_end(count: int) -> bytes:
            end = self._storage.read_range(file.path, file.size - count, file.size)
            if end is None:
                raise MissingFileError(self.uri, file.path)
            if len(end) != count:
                raise CorruptFileError(self.uri, file.path, f"it has fewer bytes than {file.size}")
            return end

        return read_groups(self.uri, file, read_end, lambda: self.read(file, ["key"]))

    def compare_and_append(self, expected: State, change: Change) -> Commit:
        check_change(expected, change)
        sizes = each(self._storage, self._storage.size, [file.path for file in change.adds])
        for file, size in zip(change.adds, sizes, strict=True):
            check_size(self.uri, file, size)
        table = self._open_to_append(expected)
        self._settle(expected.version)
        version, now_ms = expected.version + 1, self.now_ms()
        with self._attempt(version, change, lambda: self._seal(version, change)):
            self._reached(Point.COMMIT_BEFORE_LOG)
            self._append(table, change, now_ms)
            self._reached(Point.COMMIT_AFTER_LOG)
        try:
            self._settle(version)
            self._reached(Point.COMMIT_AFTER_SYNC)
            self._check_landed(expected, change, now_ms)
        except ConflictError:
            raise
        except Exception as error:
            raise IndeterminateError(self.uri, version, change.txid, f"not known to be durable: {error}") from error
        return committed(version, change, now_ms)

    def checkpoint(self, version: int) -> None:
        self.state(version)  # a damaged entry must not be made a part of a checkpoint
        if not self._archive.is_current(version):
            return  # there are newer checkpoints
        self._reached(Point.CHECKPOINT_BEFORE)
        with self._translated("checkpoint"):
            self._open(version).create_checkpoint()
        self._reached(Point.CHECKPOINT_AFTER_FILE)
        self._storage.settle(checkpoint_path(version))
        self._storage.settle(HINT)
        self._reached(Point.CHECKPOINT_AFTER)
        self._archive.put()

    def checkpointed(self) -> int:
        return self._snapshots.hint() or 0

    def checkpoints(self) -> Iterator[tuple[int, State | CatalogError]]:
        return self._snapshots.checkpoints()

    def expire(self, before: int) -> None:
        """Keeps all since the second newest checkpoint before the version, in case the newest is damaged."""
        usable = [version for version in self._archive.listed()[1] if version <= before][-2:]
        if len(usable) < 2:  # noqa: PLR2004 - one to use, one in reserve
            return
        reserve, newest = usable
        if self._snapshots.state_from(newest, newest) != self._snapshots.state_from(reserve, newest):
            raise DamagedError(
                f"nothing was expired in {self.uri}: checkpoints {reserve} and {newest} disagree",
                "one of them is damaged, and the entries before them are needed to tell which",
                "compare both with the log entries, and restore the one that is wrong",
            )
        for path in self._archive.before(reserve):
            self._reached(Point.EXPIRE_BEFORE_ENTRY)
            self._storage.delete(path)

    def files(self) -> Iterator[StoredFile]:
        return (entry for entry in self._storage.entries(LOG_FOLDER, ARCHIVE_FOLDER) if is_data_file(entry.path))

    def delete(self, paths: Sequence[str]) -> None:
        def delete(path: str) -> None:
            self._reached(Point.DELETE_BEFORE_FILE)
            self._storage.delete(path)

        each(self._storage, delete, paths)

    def _create(self, change: Change) -> None:
        DeltaTable.create(
            self.uri,
            _SCHEMA,
            mode="error",
            partition_by=["collection"],
            configuration=dict(_PROPERTIES),
            storage_options=self._delta_options,
            commit_properties=CommitProperties(custom_metadata=metadata(change, self.now_ms())),
            post_commithook_properties=_NO_HOOKS,
        )

    def _check_empty(self) -> None:
        """Refuse to make a log among files of others; what a crash left of an earlier attempt does not matter."""
        found = self._storage.found()
        if found not in {None, "nothing is there"}:
            raise NoStoreError(self.uri, f"{found}")
        if not self._storage.remote and (escape := re.search("%[0-9A-Fa-f]{2}", self.uri)):
            raise NoStoreError(self.uri, f"{escape[0]} in a path is taken for another character by delta-rs")
        other = next((path for path in self._storage.paths("") if not path.startswith(LOG_FOLDER)), None)
        if other is not None:
            raise ForeignTableError(self.uri, f"it holds other files, such as {other}")

    def _open_to_append(self, expected: State) -> DeltaTable:
        """The table at its newest version, if that is the expected one; nothing is under way yet if this fails."""
        following = expected.version + 1
        if not self._storage.remote and self._storage.size(entry_path(following)) is not None:
            raise ConflictError(self.uri, expected.version, following)  # a look costs less than to catch up and lose
        held, self._held = self._held, None
        if held is not None and 0 <= expected.version - held[0] < _HELD_FOR and self._caught_up(held[1], expected):
            opened, table = held
        else:
            opened, table = expected.version, self._open(None)
        if table.version() != expected.version:
            raise ConflictError(self.uri, expected.version, table.version())
        self._held = opened, table
        return table

    def _caught_up(self, table: DeltaTable, expected: State) -> bool:
        """Whether a table that was opened for an earlier commit will do; if in doubt, it will not.

        delta-rs does not promise to tell a log whose next entries are gone from one that has none. They go in order:
        while the expected entry is there, so is whatever follows it.
        """
        try:
            table.update_incremental()
            return self._archive.is_current(expected.version)
        except Exception:  # noqa: BLE001 - opening anew tells what is wrong
            return False

    def _open(self, version: int | None) -> DeltaTable:
        """The table as delta-rs sees it, which knows no archive and gives up at a damaged checkpoint.

        If it cannot open the table and the state can be told all the same, it gets back what it needs from the archive,
        and damaged checkpoints are removed.
        """
        try:
            with self._translated("open"):
                return DeltaTable(self.uri, version=version, storage_options=self._delta_options)
        except StoreUnreachableError as error:
            newest = self.verify()
            usable, damaged = self._snapshots.usable_checkpoint(newest if version is None else version)
            try:
                self.state(newest)
            except DamagedError as worse:
                raise (damaged[0] if damaged else worse) from error
        self._archive.bring_back(usable)
        for checkpoint in damaged:
            path = checkpoint_path(checkpoint.version)
            self._storage.delete(path)
            self._storage.delete(archived(path))
        if self._snapshots.hint() != usable:
            self._storage.delete(HINT)
        with self._translated("open"):
            return DeltaTable(self.uri, version=version, storage_options=self._delta_options)

    def _append(self, table: DeltaTable, change: Change, now_ms: int) -> None:
        data_change = change.operation is not Operation.CONSOLIDATE
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size, {"collection": file.collection}, now_ms, data_change, stats(file))
            for file in change.adds
        ]
        actions += [
            RemoveAction(file.path, data_change, now_ms, file.size, {"collection": file.collection})
            for file in change.removes
        ]
        table.create_write_transaction(
            actions,
            mode="append",
            schema=_SCHEMA,
            partition_by=["collection"],
            commit_properties=CommitProperties(
                custom_metadata=metadata(change, now_ms),
                max_commit_retries=0,
                app_transactions=[Transaction(mark, number) for mark, number in change.marks.items()],
            ),
            post_commithook_properties=_NO_HOOKS,
        )

    def _check_landed(self, expected: State, change: Change, started_ms: int) -> None:
        """Refuse a commit that took the name of an entry which had left the log; quick if none has, as is the rule."""
        quick = self._storage.remote and self.now_ms() - started_ms <= _STALLED_MS
        if quick or self._archive.is_current(expected.version):
            return
        landed = self._snapshots.probe(expected.version + 1)
        if landed is None or not self._archive.holds(expected.version):
            raise LookupError("the log was expired beyond it meanwhile")
        if landed.txid != change.txid:
            self._storage.delete(entry_path(landed.version))
            raise ConflictError(self.uri, expected.version, self.head(landed.version))

    def _attempt(self, version: int, change: Change, seal: Callable[[], bool]) -> AbstractContextManager[None]:
        def probe() -> Commit | None:
            self._reached(Point.COMMIT_PROBE)
            return self._snapshots.probe(version)

        can_arrive_late = self._storage.remote
        return attempt(self.uri, version, change, probe=probe, seal=seal if can_arrive_late else None)

    def _seal(self, version: int, change: Change) -> bool:
        self._reached(Point.COMMIT_SEAL)
        return self._storage.create(entry_path(version), sealing_entry(sealing(change), self.now_ms()))

    def _settle(self, version: int) -> None:
        """Make an entry durable before anything is built on it, whoever wrote it."""
        if version > self._settled:
            try:
                self._storage.settle(entry_path(version))
            except StoreUnreachableError:
                if self._storage.size(archived(entry_path(version))) is None:
                    raise
            self._settled = version

    @contextmanager
    def _translated(self, verb: str) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if not (isinstance(error, Exception) or is_panic(error)):
                raise
            raise StoreUnreachableError(self.uri, verb, str(error)) from error


def _cannot_seal() -> bool:
    raise LookupError("the first entry makes the table, and nothing else can take its place")
