"""Folding of tables: files of a collection become fewer, or larger, and no row that a reader sees changes.

Small files of a tail are merged; a tail that has grown too large for memory is spilled into a layer; base, layers and
tail are folded into a base. Each removes exactly the files that were read, so rows committed meanwhile stay on top of
the result. At most one file of what is written is in memory, and of what is read a row group of each file at a place.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from catalog.engine.base.fence import Fence
from catalog.engine.codec.columns import rebatch
from catalog.engine.log.data_files import rows_table, with_ts
from catalog.engine.log.protocol import CommitRequest, DataFile, FileKind, Log, Operation, Row
from catalog.engine.log.replica import retired_if_missing
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.tails import REMOVED, Change, TailRun, change_of

FILE_BYTES_MAX = 64 * 2**20
"""Of keys and values of a file that is written, before compression."""


@dataclass(frozen=True, slots=True)
class FoldingPolicy:
    """Limits beyond which the files of a collection are merged, spilled or folded."""

    tail_files_max: int = 16
    tail_bytes_max: int = 64 * 2**20
    """Of keys and values as every process holds them, however small the files are that they were written to."""
    small_tail_bytes_max: int = 2**20
    """Of a tail file that is merged with others; larger ones are left until the tail is spilled."""
    layers_max: int = 8
    """That can hold one key."""


class FoldingTask(StrEnum):
    MERGE = "merge"
    """Of small tail files into one; `merge_tails`."""
    SPILL = "spill"
    """Of the tail into a layer."""
    FOLD = "fold"
    """Of everything into a base."""


def due(view: LayeredView, collection: str, policy: FoldingPolicy) -> FoldingTask | None:
    """Return the task that a collection needs most; none if its files are in proportion."""
    if view.depth(collection) > policy.layers_max:
        return FoldingTask.FOLD
    files = list(view.tail_files(collection).values())
    known = view.tails.get(collection)
    held = known.size if known is not None else sum(file.size for file in files)
    if files and held > policy.tail_bytes_max:
        return FoldingTask.SPILL
    if len(files) <= policy.tail_files_max:
        return None
    is_mostly_small = 2 * len(_small(files, policy)) > len(files)
    return FoldingTask.MERGE if is_mostly_small else FoldingTask.SPILL


def merge_tails(
    log: Log, view: LayeredView, collection: str, fence: Fence, policy: FoldingPolicy | None = None
) -> CommitRequest:
    """Write one tail file in place of the small ones: the newest change of each of their keys, with its own ts."""
    small = _small(view.tail_files(collection).values(), policy or FoldingPolicy())
    with retired_if_missing(log, view.state.version):
        run = TailRun.of(change_of(row) for file in small for row in log.rows(file))
    adds = (log.write_tail(collection, fence, _rows((key, run.changes[key]) for key in run.keys)),) if run.keys else ()
    return _reorganised(adds, small)


def spill(log: Log, view: LayeredView, collection: str, fence: Fence) -> CommitRequest:
    """Write the newest change of each key of the tail, removed rows included, as a layer in place of the tail."""
    changed = view.tail(collection).between(b"", None)
    tables = (rows_table(_rows(changed)),) if changed else ()
    return _reorganised(_layer(log, collection, fence, tables), view.tail_files(collection).values())


def fold(log: Log, view: LayeredView, collection: str, fence: Fence, *, keep_tombstones: bool) -> CommitRequest:
    """Write all rows as base files, dated at the version of the view, in place of all files of the collection.

    If removed rows must be remembered, because rows dated earlier may still come, the newest change of each key is
    written as a layer instead, with its own ts.
    """
    if keep_tombstones:
        adds = _layer(log, collection, fence, view.newest(collection))
    else:
        batches = rebatch(view.tables(collection), FILE_BYTES_MAX)
        adds = tuple(log.write(collection, FileKind.BASE, fence, with_ts(rows, view.state.version)) for rows in batches)
    return _reorganised(adds, view.files_of(collection))


def _layer(log: Log, collection: str, fence: Fence, tables: Iterable[pa.Table]) -> tuple[DataFile, ...]:
    batches = (pa.Table.from_batches([batch]) for batch in rebatch(tables, FILE_BYTES_MAX))
    return tuple(log.write(collection, FileKind.LAYER, fence, rows) for rows in batches if rows.num_rows)


def _reorganised(adds: tuple[DataFile, ...], removes: Iterable[DataFile]) -> CommitRequest:
    return CommitRequest(Operation.REORGANISE, uuid.uuid4().hex, adds, tuple(removes))


def _small(files: Iterable[DataFile], policy: FoldingPolicy) -> list[DataFile]:
    return [file for file in files if file.size <= policy.small_tail_bytes_max]


def _rows(changed: Iterable[tuple[bytes, Change]]) -> list[Row]:
    return list(_as_rows(changed))


def _as_rows(changed: Iterable[tuple[bytes, Change]]) -> Iterator[Row]:
    for key, (ts, rank, value) in changed:
        yield key, value, ts, -1 if rank == REMOVED else 1
