"""A shard: a log with a schema sequence and batches of rows.

Every commit is made for the exact state that it was checked against. A shard does not decide which process may write:
its fence only names its files.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from catalog.engine.base.fence import Fence
from catalog.engine.log.maintenance import Policy, is_cleaned
from catalog.engine.log.protocol import AppTxn, CommitRequest, FileKind, Log, LogState, Operation
from catalog.engine.shard.batches import BATCH_BYTES_MAX, BatchRun, log_row, write_batches
from catalog.engine.shard.compaction import CompactionReason, CompactionResult, RunPolicy, due, merge
from catalog.engine.shard.ingest import Diffs, incoming
from catalog.engine.shard.reader import ShardReader
from catalog.engine.shard.replica import ShardReplica
from catalog.engine.shard.schema import FINALIZED, Schema, SchemaId
from catalog.engine.shard.schema_registry import RegisteredSchema, order_changed, write_registered
from catalog.engine.shard.schema_rules import Incompatible
from catalog.errors import (
    CommitFailedError,
    ConflictError,
    MissingFileError,
    ShardFinalizedError,
    WriterSchemaError,
)


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
    replica: ShardReplica
    fence: Fence
    policy: Policy = field(default_factory=Policy)
    compaction: RunPolicy = field(default_factory=RunPolicy)
    batch_bytes_max: int = BATCH_BYTES_MAX
    pause: Callable[[float], None] = time.sleep
    """Waits before a reader looks for a newer ts again."""
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def create(cls, log: Log, fence: Fence) -> Shard:
        """Open the shard in this place; make it if there is none."""
        log.create(uuid.uuid4().hex)
        return cls.open(log, fence)

    @classmethod
    def open(cls, log: Log, fence: Fence) -> Shard:
        """Open a shard; raises NoStoreError if there is none. A finalised one raises when it is used."""
        return cls(ShardReplica.open(log), fence)

    @property
    def log(self) -> Log:
        return self.replica.log

    @property
    def state(self) -> LogState:
        """Return the newest state that this process has seen."""
        return self.replica.state

    @property
    def ts(self) -> int:
        """Return the newest ts; all that was committed before can be read at it."""
        return self.replica.catch_up().version

    @property
    def finalized(self) -> bool:
        self.replica.follow()
        return self.replica.finalized

    def latest(self) -> RegisteredSchema | None:
        """Return the newest schema; none before the first is set."""
        return self.replica.latest(self.replica.catch_up())

    def sequence(self) -> tuple[RegisteredSchema, ...]:
        return self.replica.sequence(self.replica.catch_up())

    def order_ever_changed(self) -> bool:
        """Tell if a field was ever deleted so that rows which had been in order may not be any more."""
        return order_changed(self.sequence())

    def compare_and_evolve_schema(self, expected: SchemaId | None, new: Schema) -> Ok | Incompatible | ExpectedMismatch:
        """Make a schema the latest if the latest is the expected one and the rules allow it to follow.

        One commit, however much the shard holds. If the schema is the latest already, returns Ok without a commit,
        whatever was expected: so a call whose answer was lost can be repeated.
        """
        while True:
            state = self.replica.catch_up()
            latest = self.replica.latest(state)
            if latest is not None and latest.schema == new:
                return Ok(latest.id)
            found = ExpectedMismatch(None, None) if latest is None else ExpectedMismatch(latest.id, latest.schema)
            if found.id != expected:
                return found
            registered = RegisteredSchema.first(new) if latest is None else latest.followed_by(new)
            if isinstance(registered, Incompatible):
                return registered
            file = write_registered(self.log, self.fence, registered, state.version + 1)
            change = CommitRequest(
                Operation.TRANSACTION, uuid.uuid4().hex, (file,), details={"schema": str(registered.id)}
            )
            with suppress(ConflictError):
                self._commit(state, change)
                return Ok(registered.id)

    def reader(self, schema: Schema) -> ShardReader:
        """Return a reader with a schema of its own, the latest or not; each read checks that it fits."""
        return ShardReader(self.replica, schema, self.pause, self.clock)

    def append(
        self,
        schema: Schema,
        rows: pa.Table | pa.RecordBatch,
        diffs: Diffs | None = None,
        *,
        expected: int | None = None,
        followed: int | None = None,
    ) -> int:
        """Write rows by the names of their columns, each +1 unless `diffs` say otherwise; return their ts.

        The schema must be the latest of the very state that the commit is made for. With `expected`, a ts, raises
        ConflictError if anything was committed since. With `followed`, records that number. Rows that add up to
        nothing make no commit, unless there is a number to record.
        """
        app_txns = {} if followed is None else {AppTxn.FOLLOWED: followed}
        parts = incoming(schema, rows, diffs, self.batch_bytes_max)
        while True:
            state = self.replica.catch_up()
            if expected is not None and state.version != expected:
                raise ConflictError(self.log.uri, expected, state.version)
            latest = self.replica.latest(state)
            if latest is None or latest.schema != schema:
                raise WriterSchemaError(self.log.uri, None if latest is None else latest.id)
            if not parts and all(state.app_txns.get(name) == number for name, number in app_txns.items()):
                return state.version
            ts = state.version + 1
            files = tuple(
                file
                for part in parts
                for file in write_batches(self.log, self.fence, FileKind.TAIL, BatchRun.new(latest.id), [part], ts)
            )
            with suppress(ConflictError):
                self._commit(state, CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, files, app_txns=app_txns))
                return ts

    def due(self) -> CompactionReason | None:
        """Return why the shard should be compacted; none if it need not be."""
        state = self.replica.catch_up()
        return due(self.replica.batches(state), self.compaction)

    def compact(self) -> CompactionResult | None:
        """Merge runs into one of the latest schema; no row changes, and every ts that could be read still can be.

        Return none if there was nothing to gain, or another compaction was first. What it leaves is due again.
        """
        state = self.replica.catch_up()
        merged = merge(self.replica, state, self.fence, self.compaction, self.batch_bytes_max)
        if merged is None:
            return None
        try:
            made_at = state.version
            while all(file.path in state.files for file in merged.change.removes):
                if is_cleaned(self.log, made_at + 1, state.version):
                    break
                with suppress(ConflictError):
                    self._commit(state, merged.change, retried=True)
                    return merged
                state = self.replica.catch_up()
        except ShardFinalizedError:
            self._delete_files(merged.change)
            raise
        self._delete_files(merged.change)
        return None

    def finalize(self) -> None:
        """Give the shard up for ever, then delete its rows; called again, it goes on where it was stopped."""
        while True:
            state = self.replica.follow()
            if self.replica.finalized:
                break
            ts = state.version + 1
            row = log_row(b"shard", pa.py_buffer(b"finalised"), ts)
            file = self.log.write(FINALIZED, FileKind.TAIL, self.fence, row)
            removes = tuple(state.files.values())
            change = CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, (file,), removes, {AppTxn.FRONTIER: ts})
            with suppress(ConflictError, ShardFinalizedError):
                self._commit(state, change)
        self.log.delete([file.path for file in self.log.files() if file.path not in self.state.files])

    def _commit(self, state: LogState, change: CommitRequest, *, retried: bool = False) -> None:
        """Append, adopt, maintain. Files of a commit that lost are deleted, unless it is retried after a conflict."""
        try:
            commit = self.replica.append(state, change)
        except (ConflictError, CommitFailedError, MissingFileError, ShardFinalizedError) as lost:
            if not (retried and isinstance(lost, ConflictError)):
                self._delete_files(change)
            raise
        self.replica.adopt(commit, state)
        with self.replica.best_effort():
            self.replica.maintain(self.policy)

    def _delete_files(self, change: CommitRequest) -> None:
        self.log.delete([file.path for file in change.adds])
