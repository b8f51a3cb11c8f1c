"""The log: an ordered sequence of atomic commits over immutable files, and the only way to write to it.

A version is the number of a commit. `compare_and_append` is the only write; everything else reads, or prepares or
removes files that no commit refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, Protocol

import pyarrow as pa

from catalog.errors import CatalogError

ROWS = pa.schema(
    [
        pa.field("key", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("diff", pa.int32(), nullable=False),
    ]
)
"""The columns of a data file; its collection is its partition."""


class FileKind(StrEnum):
    TAIL = "tail"
    """Rows of one transaction: `diff` is +1 or -1, `ts` the version of its commit."""
    BASE = "base"
    """A consolidation: unique keys in order, all `diff` +1, `ts` the version that it consolidates."""


class Fence(NamedTuple):
    """Who wrote: of two, the greater took over from the lesser."""

    generation: int
    epoch: int


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


@dataclass(frozen=True, slots=True)
class RowGroup:
    """The smallest piece of a file that is read by itself."""

    first: bytes
    """No key in it is before this, and none after `last`."""
    last: bytes
    rows: int
    size: int
    """In bytes, before compression."""


class Operation(StrEnum):
    """What a commit is for."""

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


class Mark(StrEnum):
    """A number of the store that changes in the same commit as what it stands for."""

    STASH_VERSION = "stash_version"
    DEPLOY_GENERATION = "deploy_generation"
    EPOCH = "epoch"
    FRONTIER = "frontier"
    """The earliest version whose rows can still be read."""
    RUNNING_STEP = "running_step"
    """The version that a running migration leads to; 0 if none runs. Nothing is vacuumed meanwhile."""
    FOLLOWED = "followed"
    """Of a shard whose rows follow from those of the stash: the ts of the stash up to which they do."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit is to do, as plain data."""

    operation: Operation
    txid: str
    adds: tuple[DataFile, ...] = ()
    removes: tuple[DataFile, ...] = ()
    marks: Mapping[Mark, int] = field(default_factory=dict)
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
    marks: Mapping[Mark, int]
    details: Mapping[str, str]
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class State:
    """All that the log holds at a version."""

    version: int
    files: Mapping[str, DataFile]
    marks: Mapping[Mark, int]

    @property
    def fence(self) -> Fence:
        return Fence(self.marks.get(Mark.DEPLOY_GENERATION, 0), self.marks.get(Mark.EPOCH, 0))

    @property
    def frontier(self) -> int:
        return self.marks.get(Mark.FRONTIER, 0)

    def after(self, commit: Commit) -> State:
        """The state that a commit leads to from this one."""
        removed = frozenset(commit.removed_paths)
        files = {path: file for path, file in self.files.items() if path not in removed}
        files |= {file.path: file for file in commit.adds}
        return replace(self, version=commit.version, files=files, marks={**self.marks, **commit.marks})


@dataclass(frozen=True, slots=True)
class StoredFile:
    path: str
    size: int
    modified_ms: int


class Point(StrEnum):
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


Reached = Callable[[Point], None]
"""Told each point of a write as it is passed; tests stop there."""


def pass_on(_point: Point) -> None:
    """What is done at each point outside of tests: nothing."""


class Log(Protocol):
    @property
    def uri(self) -> str: ...

    def now_ms(self) -> int:
        """The time, on the clock that commits and files are dated by."""

    def create(self, txid: str) -> bool:
        """Make an empty log at version 0; answer false if there is one of ours already."""

    def verify(self) -> int:
        """Check that the newest entry is whole and ours; answer its version."""

    def head(self, known: int) -> int:
        """The newest version, looked for from a known one upwards."""

    def state(self, version: int) -> State:
        """All that the log held at a version.

        Raises RetiredError if it was expired, NoSuchVersionError if it is yet to come.
        """

    def commit(self, version: int) -> Commit:
        """One commit; raises as `state` does."""

    def commits(self, first: int, last: int) -> Iterator[Commit]:
        """The commits of these versions, both included, in order; raises as `state` does."""

    def write(self, collection: str, kind: FileKind, fence: Fence, rows: pa.Table) -> DataFile:
        """Make a durable file that no commit refers to yet; rows have the columns key, value, ts and diff."""

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None
    ) -> pa.Table:
        """The rows of a file, or of some of its row groups, after checking that it is what was written."""

    def groups(self, file: DataFile) -> tuple[RowGroup, ...]:
        """The row groups of a file, in their order; of its rows as little as possible is read."""

    def compare_and_append(self, expected: State, change: Change) -> Commit:
        """Commit a change if nothing was committed since `expected`; it is durable when this returns.

        Raises InvalidChangeError, MissingFileError or CorruptFileError before anything is done, ConflictError if
        something was committed, CommitFailedError if nothing landed or ever will, IndeterminateError if that cannot be
        known. After any of the last three the newest version may be a seal: read the head again.
        """

    def checkpoint(self, version: int) -> None:
        """Make opening at a version quick; replaces checkpoints that are damaged."""

    def checkpointed(self) -> int:
        """The version of the newest checkpoint, as far as is known without looking far; 0 if there is none."""

    def checkpoints(self) -> Iterator[tuple[int, State | CatalogError]]:
        """Every checkpoint that is there: its version, and the state that it holds or what is wrong with it."""

    def expire(self, before: int) -> None:
        """Forget commits before a version, or fewer; states from there on stay."""

    def files(self) -> Iterator[StoredFile]:
        """Every data file of ours that is there, committed or not."""

    def delete(self, paths: Sequence[str]) -> None:
        """Remove data files that nothing refers to."""
