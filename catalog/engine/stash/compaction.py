"""Compaction of a stash: many small files become few, and no row changes.

A tail is merged into one file when it has too many, and into the base when it has grown to a share of it, or too large
to be held in memory. Each removes exactly the files that were read, so rows committed meanwhile stay beside the result.
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from catalog.engine.base.fence import Fence
from catalog.engine.base.lazy_arrow import pa
from catalog.engine.log.data_files import rows_table, with_ts
from catalog.engine.log.protocol import CommitRequest, DataFile, FileKind, Log, Operation
from catalog.engine.stash.view import Overlay, View, changes

FILE_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """Limits beyond which the files of a collection are compacted."""

    tail_files_max: int = 16
    tail_share_max: float = 0.25
    """Of the rows of the base."""
    tail_bytes_max: int = FILE_BYTES_MAX
    """Of keys and values as every process holds them, however small the files are that they were written to."""


@dataclass(frozen=True, slots=True)
class CompactionTask:
    collection: str
    kind: FileKind
    """Of the files to be made: a tail merges the tail alone, a base everything."""
    in_part: bool = False
    """Leaves base files alone that the tail does not reach."""


def due(view: View, shape: CompactionPolicy) -> Iterator[CompactionTask]:
    """Yield a task for each collection whose files are out of proportion."""
    files: dict[str, list[DataFile]] = {}
    for file in view.state.files.values():
        files.setdefault(file.collection, []).append(file)
    for name, found in sorted(files.items()):
        if sum(file.kind is FileKind.TAIL for file in found) > shape.tail_files_max:
            yield CompactionTask(name, FileKind.BASE if _share(found) > shape.tail_share_max else FileKind.TAIL)
        elif _held_bytes(view.overlays.get(name, {})) > shape.tail_bytes_max:
            yield CompactionTask(name, FileKind.BASE, in_part=True)


def merge(log: Log, view: View, wanted: CompactionTask, fence: Fence) -> CommitRequest:
    """Write the merged files; return the commit that replaces the files they were made from."""
    name = wanted.collection
    base = view.state.files_of(name, FileKind.BASE)
    tail = view.state.files_of(name, FileKind.TAIL)
    if wanted.kind is FileKind.TAIL:
        base, tables = [], iter([_merged_tail(log, tail)])
    elif wanted.in_part:
        parts = list(_reached(view, name))
        base = [file for part in parts for file in part.state.files.values()]
        tables = (table for part in parts for table in base_tables(part, name, view.state.version))
    else:
        tables = base_tables(view, name, view.state.version)
    adds = tuple(log.write(name, wanted.kind, fence, table) for table in tables if table.num_rows)
    return CommitRequest(Operation.CONSOLIDATE, uuid.uuid4().hex, adds, (*base, *tail))


def _reached(view: View, collection: str) -> Iterator[View]:
    """Yield the parts that the tail reaches, with no base file between them: the base files of a range and its tail."""
    overlay = view.overlay(collection)
    keys = sorted(overlay)
    files: list[DataFile] = []
    start = end = 0

    def part() -> View:
        state = replace(view.state, files={file.path: file for file in files})
        return replace(view, state=state, overlays={collection: {key: overlay[key] for key in keys[start:end]}})

    for last, run in view.runs(collection):
        before, end = end, bisect_right(keys, last, end)
        if end > before:
            files += run
        elif end > start:
            yield part()
            files, start = [], end
    end = len(keys)
    if end > start:
        yield part()


def _merged_tail(log: Log, files: list[DataFile]) -> pa.Table:
    """Return, of each key, the row that the tail first removed and the one that it leaves."""
    first: dict[bytes, tuple[bytes, bytes, int, int]] = {}
    last: dict[bytes, tuple[bytes, bytes, int, int]] = {}
    for row in changes(log, files):
        first.setdefault(row[0], row)
        last[row[0]] = row
    rows = [row for row in first.values() if row[3] < 0]
    rows += [row for row in last.values() if row[3] > 0]
    return rows_table(sorted(rows))


def base_tables(view: View, collection: str, ts: int) -> Iterator[pa.Table]:
    """Yield every row in the order of keys, as tables that fit a file and are dated at a ts."""
    from catalog.engine.codec.columns import rebatch  # noqa: PLC0415 - most commits compact nothing

    return (with_ts(batch, ts) for batch in rebatch(view.tables(collection), FILE_BYTES_MAX))


def _held_bytes(overlay: Overlay) -> int:
    return sum(map(len, overlay)) + sum(map(len, filter(None, overlay.values())))


def _share(files: list[DataFile]) -> float:
    base = sum(file.rows for file in files if file.kind is FileKind.BASE)
    tail = sum(file.rows for file in files if file.kind is FileKind.TAIL)
    return tail / base if base else 1.0
