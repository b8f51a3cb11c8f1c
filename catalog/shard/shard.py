"""A shard: a log with a schema sequence and batches of rows, and all that is ever written to it.

Every commit is made for the exact state that it was checked against. Who may write is not a shard's business: the fence
it is given only names its files.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from catalog.errors import (
    CatalogError,
    CommitFailedError,
    ConflictError,
    MissingFileError,
    ShardFinalizedError,
    UnfitShardIdError,
    WriterSchemaError,
)
from catalog.log.maintenance import Policy, maintain
from catalog.log.protocol import Change, Fence, FileKind, Log, Mark, Operation, State
from catalog.log.storage import SHARDS, Storage
from catalog.shard.batches import BATCH_BYTES_MAX, Run, log_row, write_batches
from catalog.shard.compaction import Due, Merged, Shape, due, merge
from catalog.shard.evolution import Incompatible
from catalog.shard.head import FINALIZED, Head
from catalog.shard.incoming import Diffs, incoming
from catalog.shard.reader import Reader
from catalog.shard.schema import Schema, SchemaId
from catalog.shard.sequence import Registered, order_changed, write_registered


@dataclass(frozen=True, slots=True)
class Ok:
    id: SchemaId
    """Under which the schema is registered."""


@dataclass(frozen=True, slots=True)
class ExpectedMismatch:
    """The latest schema is another than was expected; none if there is no schema yet."""

    id: SchemaId | None
    schema: Schema | None


@dataclass(slots=True)
class Shard:
    head: Head
    fence: Fence
    policy: Policy = field(default_factory=Policy)
    shape: Shape = field(default_factory=Shape)
    batch_bytes_max: int = BATCH_BYTES_MAX
    pause: Callable[[float], None] = time.sleep
    """How a reader waits before it looks again."""
    clock: Callable[[], float] = time.monotonic
    postponed: CatalogError | None = None
    """Why maintenance was last left for another time."""

    @classmethod
    def create(cls, log: Log, fence: Fence) -> Shard:
        """The shard in this place, made if there is none."""
        log.create(uuid.uuid4().hex)
        return cls.open(log, fence)

    @classmethod
    def open(cls, log: Log, fence: Fence) -> Shard:
        """Raises NoStoreError if there is none; one that was finalised says so when it is used."""
        return cls(Head.open(log), fence)

    @property
    def ts(self) -> int:
        """The newest; whatever was committed before can be read at it."""
        return self.head.catch_up().version

    @property
    def finalized(self) -> bool:
        self.head.follow()
        return self.head.finalized

    def latest(self) -> Registered | None:
        """The newest schema; none before the first is set."""
        return self.head.latest(self.head.catch_up())

    def sequence(self) -> tuple[Registered, ...]:
        return self.head.sequence(self.head.catch_up())

    def order_ever_changed(self) -> bool:
        """Whether a field was ever deleted so that rows which had been in order may not be any more."""
        return order_changed(self.sequence())

    def compare_and_evolve_schema(self, expected: SchemaId | None, new: Schema) -> Ok | Incompatible | ExpectedMismatch:
        """Make a schema the latest if the latest is the expected one and the rules allow it to follow.

        One commit, whatever the shard holds. Answers Ok without one if it is the latest already, whatever was expected:
        whoever repeats a call whose answer was lost, or loses a race against its like, is done.
        """
        while True:
            state = self.head.catch_up()
            latest = self.head.latest(state)
            if latest is not None and latest.schema == new:
                return Ok(latest.id)
            found = ExpectedMismatch(None, None) if latest is None else ExpectedMismatch(latest.id, latest.schema)
            if found.id != expected:
                return found
            registered = Registered.first(new) if latest is None else latest.followed_by(new)
            if isinstance(registered, Incompatible):
                return registered
            file = write_registered(self.head.log, self.fence, registered, state.version + 1)
            change = Change(Operation.TRANSACTION, uuid.uuid4().hex, (file,), details={"schema": str(registered.id)})
            with suppress(ConflictError):
                self._commit(state, change)
                return Ok(registered.id)

    def reader(self, schema: Schema) -> Reader:
        """Reads with a schema of its own, the latest or not; whether it fits is looked at with each read."""
        return Reader(self.head, schema, self.pause, self.clock)

    def append(
        self,
        schema: Schema,
        rows: pa.Table | pa.RecordBatch,
        diffs: Diffs | None = None,
        *,
        expected: int | None = None,
        followed: int | None = None,
    ) -> int:
        """Write rows by the names of their columns, each +1 unless `diffs` say otherwise; answer their ts.

        The schema must be the latest of the very state that the commit is made for. With `expected`, a ts, raises
        ConflictError if anything was committed since. With `followed`, records that mark. Rows that add up to nothing
        make no commit, unless they have a mark to record.
        """
        marks = {} if followed is None else {Mark.FOLLOWED: followed}
        parts = incoming(schema, rows, diffs, self.batch_bytes_max)
        while True:
            state = self.head.catch_up()
            if expected is not None and state.version != expected:
                raise ConflictError(self.head.log.uri, expected, state.version)
            latest = self.head.latest(state)
            if latest is None or latest.schema != schema:
                raise WriterSchemaError(self.head.log.uri, None if latest is None else latest.id)
            if not parts and all(state.marks.get(mark) == number for mark, number in marks.items()):
                return state.version
            ts = state.version + 1
            files = tuple(
                file
                for part in parts
                for file in write_batches(self.head.log, self.fence, FileKind.TAIL, Run.new(latest.id), [part], ts)
            )
            with suppress(ConflictError):
                self._commit(state, Change(Operation.TRANSACTION, uuid.uuid4().hex, files, marks=marks))
                return ts

    def due(self) -> Due | None:
        """Why the shard should be compacted; none if it need not be."""
        state = self.head.catch_up()
        return due(self.head.batches(state), self.shape)

    def compact(self) -> Merged | None:
        """Merge runs into one of the latest schema; no row changes, and every ts that could be read still can be.

        Answers none if there was nothing to gain, or another compaction was first. What it leaves is due again.
        """
        state = self.head.catch_up()
        merged = merge(self.head, state, self.fence, self.shape, self.batch_bytes_max)
        if merged is None:
            return None
        while all(file.path in state.files for file in merged.change.removes):
            try:
                self._commit(state, merged.change, keep=True)
            except ConflictError:
                state = self._catch_up_or_drop(merged.change)
            else:
                return merged
        self._drop(merged.change)
        return None

    def finalize(self) -> None:
        """Give the shard up for ever, then delete its rows; done again, it goes on where it was stopped."""
        log = self.head.log
        while True:
            state = self.head.follow()
            if self.head.finalized:
                break
            ts = state.version + 1
            file = log.write(FINALIZED, FileKind.TAIL, self.fence, log_row(b"shard", pa.py_buffer(b"finalised"), ts))
            removes = tuple(state.files.values())
            change = Change(Operation.TRANSACTION, uuid.uuid4().hex, (file,), removes, {Mark.FRONTIER: ts})
            with suppress(ConflictError, ShardFinalizedError):
                self._commit(state, change)
        log.delete([file.path for file in log.files() if file.path not in self.head.state.files])

    def _commit(self, state: State, change: Change, *, keep: bool = False) -> None:
        """Commit for a state; files of a commit that lost are deleted unless they are to be tried again."""
        log = self.head.log
        try:
            commit = log.compare_and_append(state, change)
        except MissingFileError as swept:  # by a finalisation, which sweeps whatever was not committed by then
            self._drop(change)
            if self.head.catch_up().version == state.version:
                raise
            raise ConflictError(log.uri, state.version, self.head.state.version) from swept
        except (ConflictError, CommitFailedError) as lost:
            if not keep or isinstance(lost, CommitFailedError):
                self._drop(change)
            raise
        self.head.state = state.after(commit)
        self._maintain()

    def _catch_up_or_drop(self, change: Change) -> State:
        try:
            return self.head.catch_up()
        except ShardFinalizedError:
            self._drop(change)
            raise

    def _drop(self, change: Change) -> None:
        self.head.log.delete([file.path for file in change.adds])

    def _maintain(self) -> None:
        """Checkpoints and retention; what cannot be done now is no failure of the commit before it."""
        self.postponed = None
        try:
            done = maintain(self.head.log, self.head.state, self.policy)
            self.postponed = done.postponed
            self.head.state = done.state
        except CatalogError as postponed:
            self.postponed = postponed


def shard_uri(store: str, shard_id: str) -> str:
    """Where a shard of a store is; nothing outside of the store can be named."""
    if not is_shard_id(shard_id):
        raise UnfitShardIdError(shard_id)
    return f"{store.rstrip('/')}/{SHARDS}/{shard_id.removeprefix(f'{SHARDS}/')}"


def is_shard_id(text: str) -> bool:
    """Whether it names a folder among the shards of a store, by its path within the store or alone."""
    return re.fullmatch(rf"(?:{SHARDS}/)?[A-Za-z0-9_-]+", text) is not None


def shard_ids(storage: Storage) -> frozenset[str]:
    """The shards that a store has, used or not."""
    return frozenset(path.split("/")[1] for path in storage.paths(SHARDS))


def new_shard_id() -> str:
    return f"s{uuid.uuid4().hex}"
