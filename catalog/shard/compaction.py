"""Compaction: several runs become one of the latest schema, equal rows added up; no reader sees a difference.

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

from catalog.errors import CatalogError
from catalog.log.protocol import Change, DataFile, Fence, FileKind, Operation, State
from catalog.shard.batches import Batch, Run, bounded, migrated, read_batch, write_batches
from catalog.shard.evolution import Incompatible
from catalog.shard.head import Head
from catalog.shard.migration import Migration
from catalog.shard.order import consolidate, row_ranks
from catalog.shard.schema import SchemaId


@dataclass(frozen=True, slots=True)
class Shape:
    """When a shard is due, and how much is merged at once."""

    runs_max: int = 8
    fan_in_max: int = 8
    """Runs that are merged at once, of each of which a batch is held."""


class Due(StrEnum):
    UNORDERED = "deleting a field left rows out of order"
    SCATTERED = "rows are in too many runs"


@dataclass(frozen=True, slots=True)
class Merged:
    """What a compaction made."""

    schema_id: SchemaId
    """The latest schema when it was asked for, which all that it made has."""
    runs: int
    """That it merged."""
    unordered: int
    """Batches that it had to leave out of order, which makes the next compaction due."""
    change: Change


def due(found: Sequence[Batch], shape: Shape) -> Due | None:
    if any(batch.run.unordered for batch in found):
        return Due.UNORDERED
    return Due.SCATTERED if len({batch.run.id for batch in found}) > shape.runs_max else None


def merge(head: Head, state: State, fence: Fence, shape: Shape, bytes_max: int) -> Merged | None:
    """Write what takes the place of some runs; none if there is nothing to gain."""
    latest = head.latest(state)
    runs = [list(own) for _, own in groupby(head.batches(state), key=lambda batch: batch.run.id)]
    if latest is None or not runs:
        return None
    migrations = {registered.id: registered.migration_to(latest.schema) for registered in head.sequence(state)}
    runs.sort(key=lambda run: (not run[0].run.unordered, sum(batch.file.size for batch in run)))
    chosen = [_Source(head, run, _must(migrations[run[0].run.schema_id])) for run in runs[: max(shape.fan_in_max, 2)]]
    broken = [source for source in chosen if source.falls_apart]
    whole = [source for source in chosen if not source.falls_apart]
    if len(whole) == 1 and whole[0].is_done:
        whole = []
    if not whole and not broken:
        return None
    adds: list[DataFile] = []
    write = partial(write_batches, head.log, fence, FileKind.BASE, ts=state.version)
    try:
        with head.there(state.version):
            for file in write(Run.new(latest.id), _cut(_merged(whole), bytes_max)):
                adds.append(file)  # noqa: PERF402 - what was written before a failure is to be known
            ordered = len(adds)
            for source in broken:
                for rows in source.batches():
                    adds += write(Run.new(latest.id, unordered=True), [rows])
    except CatalogError:
        head.log.delete([file.path for file in adds])
        raise
    removes = tuple(batch.file for source in (*whole, *broken) for batch in source.run)
    change = Change(Operation.CONSOLIDATE, uuid.uuid4().hex, tuple(adds), removes)
    return Merged(latest.id, len(whole) + len(broken), len(adds) - ordered, change)


@dataclass(frozen=True, slots=True)
class _Source:
    """A run that is read in the latest schema."""

    head: Head
    run: list[Batch]
    migration: Migration

    @property
    def falls_apart(self) -> bool:
        return len(self.run) > 1 and not self.migration.preserves_order

    @property
    def is_done(self) -> bool:
        return self.migration.is_noop and not self.run[0].run.unordered

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self.run:
            rows = consolidate(migrated(read_batch(self.head.log, batch), self.migration))
            if rows.num_rows:
                yield rows


def _merged(sources: Sequence[_Source]) -> Iterator[pa.RecordBatch]:
    """The rows of all sources in order, equal ones added up.

    Of what is held, rows before the last of every source that goes on are complete: whatever comes is at or after it.
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


def _cut(parts: Iterator[pa.RecordBatch], bytes_max: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches as large as they may be."""
    waiting: list[pa.RecordBatch] = []
    for part in parts:
        waiting.append(part)
        if sum(rows.nbytes for rows in waiting) >= bytes_max:
            *full, last = bounded(_joined(waiting), bytes_max)
            yield from full
            waiting = [last]
    if waiting:
        yield from bounded(_joined(waiting), bytes_max)


def _joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def _must(migration: Migration | Incompatible) -> Migration:
    if isinstance(migration, Incompatible):  # the sequence would never have taken it
        raise TypeError(migration.why)
    return migration
