"""Compaction of a shard: several runs become one of the latest schema, equal rows added up; no reader sees a
difference.

Rows are merged in one pass, holding a batch of each run at a time. Deleting a field can leave a run out of order. A run
of one batch is then sorted anew. A longer one falls apart: each batch is sorted and becomes a run of its own that is
marked as unordered, and merging those is due next.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa

from catalog.engine.base.fence import Fence
from catalog.engine.codec.columns import rebatch
from catalog.engine.log.protocol import CommitRequest, DataFile, FileKind, LogState, Operation
from catalog.engine.shard.array_migration import ArrayMigration
from catalog.engine.shard.batches import Batch, BatchRun, migrated, read_batch, write_batches
from catalog.engine.shard.replica import ShardReplica
from catalog.engine.shard.row_order import consolidate, row_ranks
from catalog.engine.shard.schema import SchemaId
from catalog.engine.shard.schema_rules import Incompatible
from catalog.errors import CatalogError


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """Limits beyond which a shard is compacted, and of the runs that are merged at once."""

    runs_max: int = 8
    fan_in_max: int = 8
    """Runs that are merged at once, of each of which a batch is held."""


class CompactionReason(StrEnum):
    UNORDERED = "deleting a field left rows out of order"
    SCATTERED = "rows are in too many runs"


@dataclass(frozen=True, slots=True)
class CompactionResult:
    schema_id: SchemaId
    """The latest schema when it was asked for, which all that it made has."""
    runs: int
    """That it merged."""
    unordered: int
    """Batches that it had to leave out of order, which makes the next compaction due."""
    change: CommitRequest


def due(found: Sequence[Batch], shape: RunPolicy) -> CompactionReason | None:
    if any(batch.run.unordered for batch in found):
        return CompactionReason.UNORDERED
    return CompactionReason.SCATTERED if len({batch.run.id for batch in found}) > shape.runs_max else None


def merge(
    replica: ShardReplica, state: LogState, fence: Fence, shape: RunPolicy, bytes_max: int
) -> CompactionResult | None:
    """Write the files that replace some runs; return none if there is nothing to gain."""
    latest = replica.latest(state)
    runs = [list(own) for _, own in groupby(replica.batches(state), key=lambda batch: batch.run.id)]
    if latest is None or not runs:
        return None
    migrations = {registered.id: registered.migration_to(latest.schema) for registered in replica.sequence(state)}
    runs.sort(key=lambda run: (not run[0].run.unordered, sum(batch.file.size for batch in run)))
    chosen = [
        _Source(replica, run, _must(migrations[run[0].run.schema_id])) for run in runs[: max(shape.fan_in_max, 2)]
    ]
    broken = [source for source in chosen if source.falls_apart]
    whole = [source for source in chosen if not source.falls_apart]
    if len(whole) == 1 and whole[0].is_done:
        whole = []
    if not whole and not broken:
        return None
    adds: list[DataFile] = []
    write = partial(write_batches, replica.log, fence, FileKind.BASE, ts=state.version)
    try:
        with replica.retired_if_missing(state.version):
            for file in write(BatchRun.new(latest.id), rebatch(_merged(whole), bytes_max)):
                adds.append(file)  # noqa: PERF402 - what was written before a failure is to be known
            ordered = len(adds)
            for source in broken:
                for rows in source.batches():
                    adds += write(BatchRun.new(latest.id, unordered=True), [rows])
    except CatalogError:
        replica.log.delete([file.path for file in adds])
        raise
    removes = tuple(batch.file for source in (*whole, *broken) for batch in source.run)
    change = CommitRequest(Operation.CONSOLIDATE, uuid.uuid4().hex, tuple(adds), removes)
    return CompactionResult(latest.id, len(whole) + len(broken), len(adds) - ordered, change)


@dataclass(frozen=True, slots=True)
class _Source:
    """A run, read in the latest schema."""

    replica: ShardReplica
    run: list[Batch]
    migration: ArrayMigration

    @property
    def falls_apart(self) -> bool:
        return len(self.run) > 1 and not self.migration.preserves_order

    @property
    def is_done(self) -> bool:
        return self.migration.is_noop and not self.run[0].run.unordered

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self.run:
            rows = consolidate(migrated(read_batch(self.replica.log, batch), self.migration))
            if rows.num_rows:
                yield rows


def _merged(sources: Sequence[_Source]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all sources in order, equal ones added up.

    Of the rows that are held, those before the last row of every unfinished source are complete: later ones come at or
    after it.
    """
    waiting = [source.batches() for source in sources]
    ends: list[pa.RecordBatch | None] = [None] * len(waiting)
    held: list[pa.RecordBatch] = []
    while True:
        for number, source in enumerate(waiting):
            if ends[number] is None and (rows := next(source, None)) is not None:
                held.append(rows)
                ends[number] = rows.slice(rows.num_rows - 1)
        open_ends = [(number, end) for number, end in enumerate(ends) if end is not None]
        rows = consolidate(_joined(held)) if held else None
        if rows is None or not open_ends:
            if rows is not None and rows.num_rows:
                yield rows
            return
        bounds = _joined([end for _, end in open_ends])
        together = _joined([rows, bounds])
        ranks = row_ranks(together.columns[:-1], together.num_rows)
        bound = ranks[rows.num_rows :].min()
        complete = int(np.searchsorted(ranks[: rows.num_rows], bound))
        if complete:
            yield rows.slice(0, complete)
        held = [rows.slice(complete)]
        for (number, _), rank in zip(open_ends, ranks[rows.num_rows :], strict=True):
            if rank == bound:
                ends[number] = None


def _joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def _must(migration: ArrayMigration | Incompatible) -> ArrayMigration:
    if isinstance(migration, Incompatible):  # the sequence would never have taken it
        raise TypeError(migration.why)
    return migration
