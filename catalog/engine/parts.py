"""How the live rows of a collection are divided among tasks, and how a task reads its part.

Parts are in the order of keys and disjoint. Where base files do not overlap and the tail is small, a part is some row
groups of the base, and each task applies the tail by itself. Otherwise the rows go through a shuffle first, divided by
the same bounds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import CorruptFileError
from catalog.log.protocol import ROWS, DataFile, FileKind, Log, RowGroup, State
from catalog.stash.view import merged, overlaid

PART_BYTES = 32 * 2**20
"""Before compression: enough to outweigh the start of a task, and little enough for several tasks to a core."""
TAIL_BYTES_MAX = 8 * 2**20
"""Of the files of a tail that every task reads by itself."""
_SAMPLED_GROUPS = 8
_PAIRS = pa.schema([ROWS.field("key"), ROWS.field("value")])


@dataclass(frozen=True, slots=True)
class Piece:
    file: DataFile
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """The live rows whose keys are from `low` to before `high`."""

    collection: str
    number: int
    low: bytes
    high: bytes | None
    """None: to the end."""
    pieces: tuple[Piece, ...]
    """All of the base in these bounds; none if the rows come through a shuffle."""
    tail: tuple[DataFile, ...]
    rows: int
    """About as many."""
    size: int


@dataclass(frozen=True, slots=True)
class Division:
    parts: tuple[Part, ...]
    shuffled: tuple[DataFile, ...] = ()
    """The files whose rows go through a shuffle; none if each part reads its own."""


@dataclass(slots=True)
class Taken:
    """How many stored rows were read for a part, so that nobody has to believe that none was left out."""

    base: int = 0
    tail: int = 0


def divide(log: Log, state: State, collection: str, *, part_bytes: int = PART_BYTES) -> Division:
    """Divide a collection at a state; a collection without files has no parts."""
    files = [file for file in state.files.values() if file.collection == collection]
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
        return Division(())
    runs: list[list[tuple[RowGroup, DataFile, int]]] = [[]]
    for found in groups:
        if runs[-1] and sum(group.size for group, *_ in runs[-1]) + found[0].size > part_bytes:
            runs.append([])
        runs[-1].append(found)
    lows = [b"", *(run[0][0].first for run in runs[1:])]
    highs = [*lows[1:], None]
    return Division(
        tuple(
            Part(
                collection,
                number,
                low,
                high,
                _pieces(run),
                tail,
                sum(group.rows for group, *_ in run) + sum(file.rows for file in tail) // len(runs),
                sum(group.size for group, *_ in run) + sum(file.size for file in tail) // len(runs),
            )
            for number, (run, low, high) in enumerate(zip(runs, lows, highs, strict=True))
        )
    )


def live_rows(log: Log, files: Iterable[DataFile]) -> int:
    """How many rows the files of a collection come to; of its base no row is read."""
    found = list(files)
    tails = (log.read(file, ["diff"])["diff"] for file in found if file.kind is FileKind.TAIL)
    return sum(file.rows for file in found if file.kind is FileKind.BASE) + sum(int(pc.sum(d).as_py()) for d in tails)


def read_part(log: Log, part: Part, taken: Taken) -> Iterator[pa.Table]:
    """The live rows of a part in the order of keys: the columns key and value."""
    tables = [log.read(piece.file, _PAIRS.names, piece.groups) for piece in part.pieces]
    base = pa.concat_tables(tables) if tables else _PAIRS.empty_table()
    _require_bounds(log, part, base)
    taken.base += base.num_rows
    found = [_between(log.read(file), part.low, part.high) for file in part.tail]
    rows = pa.concat_tables([ROWS.empty_table(), *found])
    taken.tail += rows.num_rows
    yield from _merged(base, rows)


def read_shuffled(rows: pa.Table, taken: Taken) -> Iterator[pa.Table]:
    """The live rows of a part whose stored rows came through a shuffle, marked as of base or tail."""
    is_base = pc.equal(rows["kind"], FileKind.BASE.value)
    base = pa.Table.from_arrays(rows.filter(is_base).select(_PAIRS.names).columns, schema=_PAIRS)
    tail = rows.filter(pc.invert(is_base)).select(ROWS.names)
    taken.base += base.num_rows
    taken.tail += tail.num_rows
    yield from _merged(base.sort_by("key"), tail)


def part_numbers(lows: Sequence[bytes], keys: pa.Array) -> list[int]:
    """Which part each key belongs to."""
    return [bisect_right(lows, key) - 1 for key in keys.to_pylist()]


def _merged(base: pa.Table, tail: pa.Table) -> Iterator[pa.Table]:
    if not tail.num_rows:
        if base.num_rows:
            yield base
        return
    happened = sorted(
        zip(*(tail[name].to_pylist() for name in ROWS.names), strict=True), key=lambda row: (row[2], row[3])
    )
    overlay = overlaid({}, happened)
    yield from merged(base, sorted(overlay), overlay)


def _pieces(run: Sequence[tuple[RowGroup, DataFile, int]]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for _, file, number in run:
        if pieces and pieces[-1].file is file:
            pieces[-1] = Piece(file, (*pieces[-1].groups, number))
        else:
            pieces.append(Piece(file, (number,)))
    return tuple(pieces)


def _shuffled(log: Log, collection: str, files: tuple[DataFile, ...], part_bytes: int) -> Division:
    """Bounds from a sample of the keys, since files do not tell them."""
    groups = [(file, number, group) for file in files for number, group in enumerate(log.groups(file))]
    rows, size = sum(file.rows for file in files), sum(group.size for *_, group in groups)
    wanted = max(1, -(-size // part_bytes))
    step = max(1, len(groups) // _SAMPLED_GROUPS)
    sampled = [log.read(file, ["key"], [number])["key"] for file, number, _ in groups[::step]] if wanted > 1 else []
    keys = sorted(key for column in sampled for key in column.unique().to_pylist())
    lows = [b"", *sorted({keys[len(keys) * cut // wanted] for cut in range(1, wanted)} if keys else set())]
    highs = [*lows[1:], None]
    return Division(
        tuple(
            Part(collection, number, low, high, (), (), rows // len(lows), size // len(lows))
            for number, (low, high) in enumerate(zip(lows, highs, strict=True))
        ),
        files,
    )


def _between(rows: pa.Table, low: bytes, high: bytes | None) -> pa.Table:
    inside = pc.greater_equal(rows["key"], pa.scalar(low, pa.binary()))
    if high is not None:
        inside = pc.and_(inside, pc.less(rows["key"], pa.scalar(high, pa.binary())))
    return rows.filter(inside)


def _require_bounds(log: Log, part: Part, base: pa.Table) -> None:
    """Footers, which bounds were read from, are not covered by the checksum until the whole file is."""
    if base.num_rows:
        first, last = base["key"][0].as_py(), base["key"][-1].as_py()
        if first < part.low or (part.high is not None and last >= part.high):
            raise CorruptFileError(log.uri, part.pieces[0].file.path, "its footer tells other bounds than its keys")
