"""The division of a collection's live rows among tasks, and the reading of one part.

Parts are in the order of keys and disjoint. Where base files do not overlap and the tail is small, a part is some row
groups of the base, and each task applies the tail by itself. Otherwise the rows go through a shuffle first, divided by
the same bounds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.log.protocol import ROWS, DataFile, FileKind, Log, LogState, RowGroup
from catalog.engine.stash.view import apply_tail, merged
from catalog.errors import CorruptFileError

PART_BYTES = 32 * 2**20
"""Before compression: enough to outweigh the start of a task, and little enough for several tasks to a core."""
SLOW_PART_BYTES = 8 * 2**20
"""The same where a migration is called for every row, which takes several times as long."""
TAIL_BYTES_MAX = 8 * 2**20
"""A tail up to this size is read by every task; a larger one makes the rows go through a shuffle."""
SHUFFLED_ROWS = "part int, kind string, key binary, value binary, ts long, diff int"
"""The rows that `rows_to_shuffle` yields, as Spark declares them."""
_SAMPLED_GROUPS = 8
_Group = tuple[RowGroup, DataFile, int]
"""A row group, its file, and its number in it."""
_PAIRS = pa.schema([ROWS.field("key"), ROWS.field("value")])


@dataclass(frozen=True, slots=True)
class RowGroupRange:
    file: DataFile
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """The live rows whose keys are from `low` to before `high`."""

    collection: str
    number: int
    low: bytes
    high: bytes | None
    """None for the last part."""
    pieces: tuple[RowGroupRange, ...] = ()
    """All of the base in these bounds; none if the rows come through a shuffle."""
    tail: tuple[DataFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The parts of one collection, in the order of keys."""

    parts: tuple[Partition, ...]
    shuffled: tuple[DataFile, ...] = ()
    """The files whose rows go through a shuffle; none if each part reads its own."""


class RowsRead(NamedTuple):
    """The number of stored rows that were read for a part; the driver compares the sum with the log's count."""

    base: int
    tail: int


NOTHING_READ = RowsRead(0, 0)


def divide(log: Log, state: LogState, collection: str, *, part_bytes: int = PART_BYTES) -> Partitioning:
    """Divide a collection at a state into parts; a collection without files has none."""
    files = state.files_of(collection)
    base = [file for file in files if file.kind is FileKind.BASE]
    tail = tuple(sorted((file for file in files if file.kind is FileKind.TAIL), key=lambda file: file.path))
    groups = sorted(
        ((group, file, number) for file in base for number, group in enumerate(log.groups(file))),
        key=lambda found: found[0].first,
    )
    overlap = any(after[0].first <= before[0].last for before, after in pairwise(groups))
    if overlap or sum(file.size for file in tail) > TAIL_BYTES_MAX:
        return _shuffled(log, collection, tuple(files), part_bytes)
    if not files:
        return Partitioning(())
    runs = _runs(groups, part_bytes)
    lows = [b"", *(run[0][0].first for run in runs[1:])]
    return Partitioning(
        tuple(
            Partition(collection, number, low, high, _pieces(run), tail)
            for number, (run, low, high) in enumerate(zip(runs, lows, [*lows[1:], None], strict=True))
        )
    )


def read_part(log: Log, part: Partition) -> tuple[Iterator[pa.Table], RowsRead]:
    """Read a part: its live rows in the order of keys, as columns key and value, and how many stored rows that took."""
    tables = [log.read(piece.file, _PAIRS.names, piece.groups) for piece in part.pieces]
    base = pa.concat_tables(tables) if tables else _PAIRS.empty_table()
    _require_bounds(log, part, base)
    inside = [_between(log.read(file), part.low, part.high) for file in part.tail]
    tail = pa.concat_tables([ROWS.empty_table(), *inside])
    return _merged(base, tail), RowsRead(base.num_rows, tail.num_rows)


def read_shuffled(rows: pa.Table) -> tuple[Iterator[pa.Table], RowsRead]:
    """Read a part whose stored rows came through a shuffle, each marked as of base or tail."""
    is_base = pc.equal(rows["kind"], FileKind.BASE.value)
    base = pa.Table.from_arrays(rows.filter(is_base).select(_PAIRS.names).columns, schema=_PAIRS)
    tail = rows.filter(pc.invert(is_base)).select(ROWS.names)
    return _merged(base.sort_by("key"), tail), RowsRead(base.num_rows, tail.num_rows)


def rows_to_shuffle(log: Log, lows: Sequence[bytes], piece: tuple[DataFile, int]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one row group of a file, each with the number of its part."""
    file, number = piece
    for batch in log.read(file, None, [number]).to_batches(max_chunksize=8192):
        parts = pa.array([bisect_right(lows, key) - 1 for key in batch["key"].to_pylist()], pa.int32())
        kinds = pa.array([file.kind.value] * batch.num_rows, pa.string())
        yield pa.record_batch({"part": parts, "kind": kinds} | {name: batch[name] for name in ROWS.names})


def _merged(base: pa.Table, tail: pa.Table) -> Iterator[pa.Table]:
    if not tail.num_rows:
        if base.num_rows:
            yield base
        return
    happened = sorted(
        zip(*(tail[name].to_pylist() for name in ROWS.names), strict=True), key=lambda row: (row[2], row[3])
    )
    overlay = apply_tail({}, happened)
    yield from merged(base, sorted(overlay), overlay)


def _runs(groups: Sequence[_Group], part_bytes: int) -> list[list[_Group]]:
    """Divide row groups into runs of about the same size, so that no core waits for the last one."""
    size = max(1, sum(group.size for group, *_ in groups))
    wanted = -(-size // part_bytes)
    ends = accumulate(group.size for group, *_ in groups)
    # The run of a row group is the one that its middle is in.
    numbers = [(2 * end - found[0].size) * wanted // (2 * size) for found, end in zip(groups, ends, strict=True)]
    found = groupby(zip(numbers, groups, strict=True), key=itemgetter(0))
    return [[group for _, group in run] for _, run in found] or [[]]


def _pieces(run: Sequence[_Group]) -> tuple[RowGroupRange, ...]:
    pieces: list[RowGroupRange] = []
    for _, file, number in run:
        if pieces and pieces[-1].file is file:
            pieces[-1] = RowGroupRange(file, (*pieces[-1].groups, number))
        else:
            pieces.append(RowGroupRange(file, (number,)))
    return tuple(pieces)


def _shuffled(log: Log, collection: str, files: tuple[DataFile, ...], part_bytes: int) -> Partitioning:
    """Divide by bounds from a sample of the keys, because the bounds of overlapping files do not help."""
    groups = [(file, number, group) for file in files for number, group in enumerate(log.groups(file))]
    size = sum(group.size for *_, group in groups)
    wanted = max(1, -(-size // part_bytes))
    step = max(1, len(groups) // _SAMPLED_GROUPS)
    sampled = [log.read(file, ["key"], [number])["key"] for file, number, _ in groups[::step]] if wanted > 1 else []
    keys = sorted(key for column in sampled for key in column.unique().to_pylist())
    lows = [b"", *sorted({keys[len(keys) * cut // wanted] for cut in range(1, wanted)} if keys else set())]
    bounds = zip(lows, [*lows[1:], None], strict=True)
    return Partitioning(
        tuple(Partition(collection, number, low, high) for number, (low, high) in enumerate(bounds)), files
    )


def _between(rows: pa.Table, low: bytes, high: bytes | None) -> pa.Table:
    inside = pc.greater_equal(rows["key"], pa.scalar(low, pa.binary()))
    if high is not None:
        inside = pc.and_(inside, pc.less(rows["key"], pa.scalar(high, pa.binary())))
    return rows.filter(inside)


def _require_bounds(log: Log, part: Partition, base: pa.Table) -> None:
    """Raise if keys are outside the bounds: footers, which gave the bounds, are not covered by a file's checksum."""
    if base.num_rows:
        first, last = base["key"][0].as_py(), base["key"][-1].as_py()
        if first < part.low or (part.high is not None and last >= part.high):
            raise CorruptFileError(log.uri, part.pieces[0].file.path, "its keys are outside the bounds in its footer")
