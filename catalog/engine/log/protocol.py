"""The log: an ordered sequence of atomic commits over immutable files, and the only way to write to it.

A version is the number of a commit. `compare_and_append` is the only write; everything else reads, or prepares or
removes files that no commit refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from catalog.engine.base.fence import Fence
from catalog.engine.base.lazy_arrow import pa
from catalog.engine.log.digests import moved, part_digest
from catalog.engine.storage.base import StoredFile
from catalog.errors import CatalogError

Row = tuple[bytes, bytes, int, int]
"""A row of a data file: key, value, ts, diff."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - an Arrow schema, made when it is first needed
    """Return `ROWS`: the columns of a data file; its collection is its partition."""
    if name != "ROWS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    types = {"key": pa.binary(), "value": pa.binary(), "ts": pa.int64(), "diff": pa.int32()}
    globals()[name] = found = pa.schema([pa.field(own, type_, nullable=False) for own, type_ in types.items()])
    return found


class FileKind(StrEnum):
    TAIL = "tail"
    """Rows of one transaction: `diff` is +1 or -1, `ts` the version of its commit."""
    BASE = "base"
    """A consolidation: unique keys in order, all `diff` +1, `ts` the version that it consolidates."""
    LAYER = "layer"
    """The newest change of each of many keys: unique keys in order, `diff` is +1 or -1, `ts` any up to its commit's."""


@dataclass(frozen=True, slots=True)
class DataFile:
    path: str
    """Relative to the log. It tells collection, kind, the fence of the writer and the checksum of the content."""
    collection: str
    kind: FileKind
    size: int
    rows: int
    ts_min: int
    ts_max: int

    @property
    def digest(self) -> int:
        """Return the digest of the file as a part of a state; its path tells the rest."""
        return part_digest("file", self.path, self.size, self.rows, self.ts_min, self.ts_max)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """The smallest piece of a file that is read by itself."""

    first: bytes
    """No key in it is before this, and none after `last`."""
    last: bytes
    rows: int
    size: int
    """In bytes, before compression."""


class GroupedFile(Protocol):
    """A file that is read by row groups: what its footer tells, and each group when it is asked for."""

    @property
    def groups(self) -> tuple[RowGroup, ...]: ...

    @property
    def footer_size(self) -> int:
        """Return the size of the footer in bytes, which is about what this object holds in memory."""

    def read(self, number: int) -> pa.Table:
        """Return the rows of one group after checking its pages and bounds; no other bytes of the file are read."""


class Operation(StrEnum):
    """The purpose of a commit."""

    CREATE = "create"
    TRANSACTION = "transaction"
    FENCE = "fence"
    CONSOLIDATE = "consolidate"
    MIGRATE = "migrate"
    UNDO = "undo"
    RETAIN = "retain"
    """Moves the retention frontier."""
    SEAL = "seal"
    """Takes a version so that an earlier commit of unknown outcome can never land."""
    LOAD = "load"
    """Adds the rows of a bulk write."""
    REORGANISE = "reorganise"
    """Replaces files; no row that a reader sees changes."""
    CLAIM = "claim"
    """Asks others to hold back for a moment; changes nothing."""


MERGING: Final = frozenset({Operation.CONSOLIDATE, Operation.REORGANISE})
"""The operations that replace files by others with the same rows, which carry the ts of earlier commits."""


class AppTxn(StrEnum):
    """The id of an app transaction: a number of the store that changes in the same commit as what it stands for."""

    STASH_VERSION = "stash_version"
    DEPLOY_GENERATION = "deploy_generation"
    EPOCH = "epoch"
    FRONTIER = "frontier"
    """The earliest version whose rows can still be read."""
    RUNNING_STEP = "running_step"
    """The version that a running migration leads to; 0 if none runs. Nothing is vacuumed meanwhile."""
    FOLLOWED = "followed"
    """Of a shard whose rows follow from those of the stash: the ts of the stash up to which they do."""
    TABLES_FORMAT = "tables_format"
    """Of a log of tables: the version of the format of its rows and of the engine's messages in it."""


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """The content of a commit to be made, as plain data."""

    operation: Operation
    txid: str
    adds: tuple[DataFile, ...] = ()
    removes: tuple[DataFile, ...] = ()
    app_txns: Mapping[AppTxn, int] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    """For people, and for feeds; nothing is decided by them."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that is in the log."""

    version: int
    operation: Operation
    txid: str
    adds: tuple[DataFile, ...]
    removed_paths: tuple[str, ...]
    app_txns: Mapping[AppTxn, int]
    details: Mapping[str, str]
    timestamp_ms: int
    state_digest: str = field(default="", compare=False)
    """The digest of the state that it leads to, as its writer knew it; empty if a build without digests wrote it."""


@dataclass(frozen=True, slots=True)
class LogState:
    """All that the log holds at a version."""

    version: int
    files: Mapping[str, DataFile]
    app_txns: Mapping[AppTxn, int]
    _digest: int | None = field(default=None, compare=False, repr=False)

    @property
    def digest(self) -> int:
        """Return the digest of all files and app transactions; computed once, and then carried on by `after`."""
        if self._digest is None:
            added = sum(file.digest for file in self.files.values()) + _sum(self.app_txns)
            object.__setattr__(self, "_digest", moved(0, added, 0))
        return self._digest or 0

    @property
    def fence(self) -> Fence:
        return Fence(self.app_txns.get(AppTxn.DEPLOY_GENERATION, 0), self.app_txns.get(AppTxn.EPOCH, 0))

    @property
    def stash_version(self) -> int | None:
        """Return the version of the store's rows; none before the store is initialised."""
        return self.app_txns.get(AppTxn.STASH_VERSION)

    @property
    def frontier(self) -> int:
        return self.app_txns.get(AppTxn.FRONTIER, 0)

    def files_of(self, collection: str, kind: FileKind | None = None) -> list[DataFile]:
        """List the files of a collection, of all kinds or of one."""
        return [f for f in self.files.values() if f.collection == collection and (kind is None or f.kind is kind)]

    def after(self, commit: Commit) -> LogState:
        """Return the state that a commit leads to from this one."""
        removed = frozenset(commit.removed_paths)
        files = {path: file for path, file in self.files.items() if path not in removed}
        files |= {file.path: file for file in commit.adds}
        app_txns = {**self.app_txns, **commit.app_txns}
        digest = None if self._digest is None else self.digest_after(commit)
        return LogState(commit.version, files, app_txns, digest)

    def digest_after(self, commit: Commit) -> int:
        """Return the digest of the state that a commit leads to from this one."""
        replaced = {name: number for name, number in self.app_txns.items() if name in commit.app_txns}
        gone = [self.files[path] for path in {*commit.removed_paths} & self.files.keys()]
        added = sum(file.digest for file in commit.adds) + _sum(commit.app_txns)
        return moved(self.digest, added, sum(file.digest for file in gone) + _sum(replaced))


def _sum(app_txns: Mapping[AppTxn, int]) -> int:
    return sum(part_digest("app transaction", name, number) for name, number in app_txns.items())


class FaultPoint(StrEnum):
    """A place in a write where a process may stop or an answer may be lost."""

    CREATE_BEFORE_LOG = "create:before-log"
    CREATE_AFTER_LOG = "create:after-log"
    WRITE_BEFORE_FILE = "write:before-file"
    WRITE_AFTER_FILE = "write:after-file"
    COMMIT_BEFORE_LOG = "commit:before-log"
    COMMIT_AFTER_LOG = "commit:after-log"
    """The entry is there, and not yet durable."""
    COMMIT_AFTER_SYNC = "commit:after-sync"
    """The entry is durable, and not yet acknowledged."""
    COMMIT_PROBE = "commit:probe"
    COMMIT_SEAL = "commit:seal"
    CHECKPOINT_BEFORE = "checkpoint:before"
    CHECKPOINT_AFTER_FILE = "checkpoint:after-file"
    """The checkpoint is there, and not yet durable."""
    CHECKPOINT_AFTER = "checkpoint:after"
    ARCHIVE_BEFORE = "archive:before"
    ARCHIVE_BEFORE_REMOVAL = "archive:before-removal"
    """All is in the archive, and some may still be in the log."""
    EXPIRE_BEFORE_ENTRY = "expire:before-entry"
    DELETE_BEFORE_FILE = "delete:before-file"


FaultHook = Callable[[FaultPoint], None]
"""Told each point of a write as it is passed; tests stop there."""


def no_fault(_point: FaultPoint) -> None:
    """Do nothing: the fault hook outside of tests."""


class Log(Protocol):
    @property
    def uri(self) -> str: ...

    def now_ms(self) -> int:
        """Return the time by the clock of this process: for people, and never to tell the age of anything."""

    def place_ms(self) -> int:
        """Return the time by the clock of the place, which dates files and entries; it is read from a new file."""

    def entry_times(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield these versions in order, each with the time at which its entry was written by the clock of the place;
        end at one that is gone.
        """

    def create(self, txid: str) -> bool:
        """Make an empty log at version 0; return false if there is one of ours already."""

    def verify(self) -> int:
        """Check that the newest entry is whole and ours; return its version."""

    def head(self, known: int) -> int:
        """Return the newest version, searched from a known one upwards."""

    def state(self, version: int) -> LogState:
        """Return all that the log held at a version.

        Raises RetiredError if it was expired, NoSuchVersionError if it is yet to come.
        """

    def commit(self, version: int) -> Commit:
        """Return one commit; raises as `state` does."""

    def commits(self, first: int, last: int) -> Iterator[Commit]:
        """Yield the commits of these versions, both included, in order; raises as `state` does."""

    def write(self, collection: str, kind: FileKind, fence: Fence, rows: pa.Table) -> DataFile:
        """Make a durable file that no commit refers to yet; rows have the columns key, value, ts and diff."""

    def write_tail(self, collection: str, fence: Fence, rows: Sequence[Row]) -> DataFile:
        """Make a durable file as `write` does, of the rows of a transaction; few are written without Arrow."""

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None
    ) -> pa.Table:
        """Return the rows of a file, or of some of its row groups, after checking that it is what was written."""

    def rows(self, file: DataFile) -> list[Row]:
        """Return the rows of a file after the same check; few are read without Arrow."""

    def groups(self, file: DataFile) -> tuple[RowGroup, ...]:
        """Return the row groups of a file, in their order; as few of its rows as possible are read."""

    def grouped(self, file: DataFile) -> GroupedFile:
        """Return a file to be read by row groups, of which only the footer is read at once.

        The checksum of each page is checked instead of that of the file. Raises MissingFileError or CorruptFileError,
        now or when a group is read.
        """

    def compare_and_append(self, expected: LogState, change: CommitRequest) -> Commit:
        """Commit a change if nothing was committed since `expected`; it is durable when this returns.

        Raises InvalidChangeError, MissingFileError or CorruptFileError before anything is done, ConflictError if
        something was committed, CommitFailedError if nothing landed or ever will, IndeterminateError if that cannot be
        known. After any of the last three the newest version may be a seal: read the head again.
        """

    def checkpoint(self, version: int) -> None:
        """Write a checkpoint, which makes opening at a version quick; replaces checkpoints that are damaged."""

    def last_checkpoint(self) -> int:
        """Return the version of the newest checkpoint as `_last_checkpoint` names it; 0 if there is none."""

    def checkpoints(self) -> Iterator[tuple[int, LogState | CatalogError]]:
        """Yield the version of every checkpoint, and the state that it holds or what is wrong with it."""

    def expire(self, before: int) -> None:
        """Forget commits before a version, or fewer; states from there on stay."""

    def files(self) -> Iterator[StoredFile]:
        """Yield every data file of ours, committed or not."""

    def delete(self, paths: Sequence[str]) -> None:
        """Remove data files that nothing refers to."""
