"""Readers of a shard, each with a schema of its own: a snapshot at a ts, and the changes after one.

The schema is checked against the exact state that is read. If the shard's schema has evolved so that it does not fit,
the reader is fenced: it gets an error before any row of that state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from catalog.engine.log.protocol import Commit, Log, LogState, Operation
from catalog.engine.shard import batches, schema_registry
from catalog.engine.shard.array_migration import ArrayMigration
from catalog.engine.shard.batches import Batch, describe_batch, migrated, read_batch
from catalog.engine.shard.replica import ShardReplica
from catalog.engine.shard.row_order import consolidate
from catalog.engine.shard.schema import Schema, SchemaId
from catalog.engine.shard.schema_rules import Incompatible
from catalog.errors import ReaderFencedError, TableTooLargeError, TimedOutError

_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class BatchScan:
    """A batch, and how to read it: all that another process needs."""

    batch: Batch
    migration: ArrayMigration

    def read(self, log: Log, names: pa.Schema) -> pa.RecordBatch:
        """Return its rows by the names of the reader's columns, and the diff."""
        return pa.RecordBatch.from_arrays(migrated(read_batch(log, self.batch), self.migration).columns, schema=names)


@dataclass(frozen=True, slots=True)
class ShardSnapshot:
    """The rows at a ts, whatever is committed meanwhile. They can be read as long as the ts is retained."""

    replica: ShardReplica
    ts: int
    schema: Schema
    pieces: tuple[BatchScan, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in batches as they are stored: a row may come more than once, with diffs to be added up."""
        for piece in self.pieces:
            with self.replica.retired_if_missing(self.ts):
                rows = piece.read(self.replica.log, self.schema.outer)
            yield rows

    def table(self) -> pa.Table:
        """Return the rows in order and each once, with a diff that counts it.

        Raises TableTooLargeError for more than a table has room for.
        """
        return _consolidated(self.replica.log.uri, self.ts, self.schema, list(self.batches()))


@dataclass(frozen=True, slots=True)
class ShardReader:
    replica: ShardReplica
    schema: Schema
    pause: Callable[[float], None]
    clock: Callable[[], float]

    def snapshot(self, as_of: int | None = None, *, wait_s: float = 0) -> ShardSnapshot:
        """Return the rows at a ts, or at the newest; with `wait_s`, wait for a ts that is yet to come.

        Raises ReaderFencedError, RetiredError, and for a ts that is yet to come NoSuchVersionError, or TimedOutError if
        it was waited for.
        """
        newest = self._reach(as_of, wait_s)
        state = newest if as_of is None else self.replica.at(as_of)
        migrations = self._migrations(state)
        pieces = tuple(BatchScan(batch, migrations[batch.run.schema_id]) for batch in self.replica.batches(state))
        return ShardSnapshot(self.replica, state.version, self.schema, pieces)

    def listen(self, since: int, *, until: int | None = None, wait_s: float = 0) -> Iterator[tuple[int, pa.Table]]:
        """Yield the changes of every commit after a ts, in order, up to a ts or the newest: its ts, and rows as in a
        snapshot.

        Compactions change no row. Raises as `snapshot` does; ReaderFencedError where the schema evolved, after all
        changes that were committed before.
        """
        newest = self._reach(until, wait_s)
        state = self.replica.at(since)
        migrations = self._migrations(state)
        for commit in self.replica.log.commits(since + 1, newest.version if until is None else until):
            state = state.after(commit)
            if any(file.collection == schema_registry.COLLECTION for file in commit.adds):
                migrations = self._migrations(state)
            if (happened := self._happened(commit, migrations)) is not None and happened.num_rows:
                yield commit.version, happened

    def order_ever_changed(self) -> bool:
        """Tell if rows that had been in order may not be, as this reader sees them: fields it leaves out count."""
        return not all(m.preserves_order for m in self._migrations(self.replica.catch_up()).values())

    def _happened(self, commit: Commit, migrations: dict[SchemaId, ArrayMigration]) -> pa.Table | None:
        files = [file for file in commit.adds if file.collection == batches.COLLECTION]
        if commit.operation is Operation.CONSOLIDATE or not files:
            return None
        with self.replica.retired_if_missing(commit.version):
            found = [describe_batch(self.replica.log, file) for file in files]
            pieces = [BatchScan(batch, migrations[batch.run.schema_id]) for batch in found]
            rows = [piece.read(self.replica.log, self.schema.outer) for piece in pieces]
        return _consolidated(self.replica.log.uri, commit.version, self.schema, rows)

    def _migrations(self, state: LogState) -> dict[SchemaId, ArrayMigration]:
        """Return the migrations from each schema of a state to the reader's own."""
        found: dict[SchemaId, ArrayMigration] = {}
        for registered in reversed(self.replica.sequence(state)):  # what the latest says is what people know
            migration = registered.migration_to(self.schema)
            if isinstance(migration, Incompatible):
                raise ReaderFencedError(self.replica.log.uri, registered.id, migration.field, migration.why)
            found[registered.id] = migration
        return found

    def _reach(self, ts: int | None, wait_s: float) -> LogState:
        """Return the newest state, after waiting for a ts; raise if the ts is yet to come and was not waited for."""
        deadline = self.clock() + wait_s
        while (state := self.replica.catch_up()).version < (ts or 0) and wait_s:
            left = deadline - self.clock()
            if left <= 0:
                raise TimedOutError(f"ts {ts} of {self.replica.log.uri}", wait_s)
            self.pause(min(_PAUSE_S, left))
        if ts is not None and ts > state.version:
            self.replica.at(ts)
        return state


def _consolidated(uri: str, ts: int, schema: Schema, found: list[pa.RecordBatch]) -> pa.Table:
    if not found:
        return pa.Table.from_batches([], schema.outer)
    try:
        joined = pa.concat_batches(found)
    except pa.ArrowInvalid as error:  # offsets of 32 bits
        raise TableTooLargeError(uri, ts) from error
    return pa.Table.from_batches([consolidate(joined)])
