"""Reading a shard with a schema of one's own: a snapshot at a ts, and what happened after one.

Whether the schema fits is looked at in the exact state that is read. If the shard's schema has evolved so that it does
not, the reader is fenced: by an error before any row of that state, never by rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from catalog.errors import ReaderFencedError, TableTooLargeError, TimedOutError
from catalog.log.protocol import Commit, Log, Operation, State
from catalog.shard import batches, sequence
from catalog.shard.batches import Batch, describe_batch, migrated, read_batch
from catalog.shard.evolution import Incompatible
from catalog.shard.head import Head
from catalog.shard.migration import Migration
from catalog.shard.order import consolidate
from catalog.shard.schema import Schema, SchemaId

_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Piece:
    """A batch, and how to read it: all that another process needs."""

    batch: Batch
    migration: Migration

    def read(self, log: Log, names: pa.Schema) -> pa.RecordBatch:
        """Its rows by the names of the reader's columns, and the diff."""
        return pa.RecordBatch.from_arrays(migrated(read_batch(log, self.batch), self.migration).columns, schema=names)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows at a ts, whatever is committed meanwhile. They can be read as long as the ts is retained."""

    head: Head
    ts: int
    schema: Schema
    pieces: tuple[Piece, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, batch by batch as they are stored: a row may come more than once, with diffs to be added up."""
        for piece in self.pieces:
            with self.head.there(self.ts):
                rows = piece.read(self.head.log, self.schema.outer)
            yield rows

    def table(self) -> pa.Table:
        """The rows that are there, in order and each once; the diff says how often a row is there.

        Raises TableTooLargeError for more than a table has room for.
        """
        return _consolidated(self.head.log.uri, self.ts, self.schema, list(self.batches()))


@dataclass(frozen=True, slots=True)
class Reader:
    head: Head
    schema: Schema
    pause: Callable[[float], None]
    clock: Callable[[], float]

    def snapshot(self, as_of: int | None = None, *, wait_s: float = 0) -> Snapshot:
        """The rows at a ts, or at the newest; one that is yet to come is waited for as long as is allowed.

        Raises ReaderFencedError, RetiredError, and for a ts that is yet to come NoSuchVersionError, or TimedOutError if
        it was waited for.
        """
        newest = self._reach(as_of, wait_s)
        state = newest if as_of is None else self.head.at(as_of)
        migrations = self._migrations(state)
        pieces = tuple(Piece(batch, migrations[batch.run.schema_id]) for batch in self.head.batches(state))
        return Snapshot(self.head, state.version, self.schema, pieces)

    def listen(self, since: int, *, until: int | None = None, wait_s: float = 0) -> Iterator[tuple[int, pa.Table]]:
        """What every commit after a ts did to the rows, in order, up to a ts or the newest: its ts, and rows as in a
        snapshot. Compactions do nothing to them.

        Raises as `snapshot` does; ReaderFencedError where the schema evolved, after all that was committed before.
        """
        newest = self._reach(until, wait_s)
        state = self.head.at(since)
        migrations = self._migrations(state)
        for commit in self.head.log.commits(since + 1, newest.version if until is None else until):
            state = state.after(commit)
            if any(file.collection == sequence.COLLECTION for file in commit.adds):
                migrations = self._migrations(state)
            if (happened := self._happened(commit, migrations)) is not None and happened.num_rows:
                yield commit.version, happened

    def order_ever_changed(self) -> bool:
        """Whether rows that had been in order, as this reader sees them, may not be: fields it leaves out count."""
        return not all(m.preserves_order for m in self._migrations(self.head.catch_up()).values())

    def _happened(self, commit: Commit, migrations: dict[SchemaId, Migration]) -> pa.Table | None:
        files = [file for file in commit.adds if file.collection == batches.COLLECTION]
        if commit.operation is Operation.CONSOLIDATE or not files:
            return None
        with self.head.there(commit.version):
            found = [describe_batch(self.head.log, file) for file in files]
            pieces = [Piece(batch, migrations[batch.run.schema_id]) for batch in found]
            rows = [piece.read(self.head.log, self.schema.outer) for piece in pieces]
        return _consolidated(self.head.log.uri, commit.version, self.schema, rows)

    def _migrations(self, state: State) -> dict[SchemaId, Migration]:
        """From each schema of a state to the reader's own."""
        found: dict[SchemaId, Migration] = {}
        for registered in reversed(self.head.sequence(state)):  # what the latest says is what people know
            migration = registered.migration_to(self.schema)
            if isinstance(migration, Incompatible):
                raise ReaderFencedError(self.head.log.uri, registered.id, migration.field, migration.why)
            found[registered.id] = migration
        return found

    def _reach(self, ts: int | None, wait_s: float) -> State:
        """The newest state, after waiting for a ts; without waiting, whoever reads it says that it is yet to come."""
        deadline = self.clock() + wait_s
        while (state := self.head.catch_up()).version < (ts or 0) and wait_s:
            left = deadline - self.clock()
            if left <= 0:
                raise TimedOutError(f"ts {ts} of {self.head.log.uri}", wait_s)
            self.pause(min(_PAUSE_S, left))
        if ts is not None and ts > state.version:
            self.head.at(ts)
        return state


def _consolidated(uri: str, ts: int, schema: Schema, found: list[pa.RecordBatch]) -> pa.Table:
    if not found:
        return pa.Table.from_batches([], schema.outer)
    try:
        joined = pa.concat_batches(found)
    except pa.ArrowInvalid as error:  # offsets of 32 bits
        raise TableTooLargeError(uri, ts) from error
    return pa.Table.from_batches([consolidate(joined)])
