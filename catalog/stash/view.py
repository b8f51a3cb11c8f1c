"""The rows at one state of the log, merged from base and tail.

A view never changes: what was read once is read again the same, whatever is committed meanwhile. Once its retention
has ended, what of it was not read yet is retired.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import MissingFileError
from catalog.log.maintenance import require_retained
from catalog.log.protocol import ROWS, DataFile, FileKind, Log, State
from catalog.stash.arrays import binary_column

Overlay = Mapping[bytes, bytes | None]
"""What the tail says of each key that it touches: its value, or nothing if the row is gone."""

Happened = tuple[bytes, bytes, int, int]
"""A row of the tail: key, value, ts, diff."""

_PAIRS = pa.schema([ROWS.field("key"), ROWS.field("value")])
_PAIRS_EMPTY = pa.Table.from_batches([], _PAIRS)
_PART_BYTES_MAX = 64 * 1024 * 1024
_SPLICED_SHARE = 64
"""A tail that touches less than one in so many rows is put between those of the base; any other is sorted in."""
_CACHE_BYTES_MAX = 256 * 1024 * 1024


@dataclass(slots=True)
class Bases:
    """Base files that were read, as long as there is room; shared by the views of a process."""

    log: Log
    _tables: OrderedDict[str, pa.Table] = field(default_factory=OrderedDict)
    _bounds: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def table(self, file: DataFile) -> pa.Table:
        with self._lock:
            found = self._tables.get(file.path)
            if found is not None:
                self._tables.move_to_end(file.path)
                return found
        table = self.log.read(file, ["key", "value"]).combine_chunks()
        with self._lock:
            self._bounds[file.path] = (table["key"][0].as_py(), table["key"][-1].as_py())
            self._tables[file.path] = table
            while len(self._tables) > 1 and sum(table.nbytes for table in self._tables.values()) > _CACHE_BYTES_MAX:
                self._tables.popitem(last=False)
        return table

    def bounds(self, file: DataFile) -> tuple[bytes, bytes]:
        """The first and the last key of a file; remembered when its rows are not."""
        if file.path not in self._bounds:
            self.table(file)
        return self._bounds[file.path]


@dataclass(frozen=True, slots=True)
class View:
    bases: Bases
    state: State
    overlays: Mapping[str, Overlay]

    def get(self, collection: str, key: bytes) -> bytes | None:
        """The value of a key; none if there is no such row."""
        overlay = self.overlays.get(collection, {})
        if key in overlay:
            return overlay[key]
        for file in self._base(collection):
            first, last = self._bounds(file)
            if first <= key <= last:
                table = self._table(file)
                position = _search(table["key"], key)
                if position < table.num_rows and table["key"][position].as_py() == key:
                    return bytes(table["value"][position].as_py())
        return None

    def table(self, collection: str) -> pa.Table:
        """Every row as bytes, in the order of keys: the columns key and value."""
        return pa.concat_tables([_PAIRS_EMPTY, *self.tables(collection)])

    def tables(self, collection: str) -> Iterator[pa.Table]:
        """The same in parts, of which only one needs to be in memory."""
        overlay = self.overlays.get(collection, {})
        touched, done = sorted(overlay), 0
        for last, files in self.runs(collection):
            base = pa.concat_tables([self._table(file) for file in files])
            if len(files) > 1:
                base = _sorted(base)
            end = bisect_right(touched, last, done)
            yield from merged(base, touched[done:end], overlay)
            done = end
        yield from merged(_PAIRS_EMPTY, touched[done:], overlay)

    def rows(self, collection: str, changed: Overlay | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Every row, in the order of keys; with changes on top, as the rows will be."""
        if not changed:
            return self._stored(collection)
        stored = (row for row in self._stored(collection) if row[0] not in changed)
        return heapq.merge(stored, sorted((key, value) for key, value in changed.items() if value is not None))

    def _stored(self, collection: str) -> Iterator[tuple[bytes, bytes]]:
        for table in self.tables(collection):
            for batch in table.to_batches():
                yield from zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)

    def runs(self, collection: str) -> list[tuple[bytes, list[DataFile]]]:
        """Base files in the order of keys, those together whose keys overlap; each with its last key."""
        runs: list[tuple[bytes, list[DataFile]]] = []
        bounded = [(*self._bounds(file), file) for file in self._base(collection)]
        for first, last, file in sorted(bounded, key=itemgetter(0)):
            if runs and first <= runs[-1][0]:
                runs[-1] = (max(last, runs[-1][0]), [*runs[-1][1], file])
            else:
                runs.append((last, [file]))
        return runs

    def collections(self) -> set[str]:
        return {file.collection for file in self.state.files.values()}

    def _base(self, collection: str) -> Iterable[DataFile]:
        return (f for f in self.state.files.values() if f.collection == collection and f.kind is FileKind.BASE)

    def _table(self, file: DataFile) -> pa.Table:
        with there_or_retired(self.bases.log, self.state.version):
            return self.bases.table(file)

    def _bounds(self, file: DataFile) -> tuple[bytes, bytes]:
        with there_or_retired(self.bases.log, self.state.version):
            return self.bases.bounds(file)


@contextmanager
def there_or_retired(log: Log, version: int) -> Iterator[None]:
    """Tell files of a version that are gone since its retention ended from those that are lost."""
    try:
        yield
    except MissingFileError:
        require_retained(log, log.state(log.head(version)), version)
        raise


def load_view(bases: Bases, state: State, collections: Collection[str] | None = None) -> View:
    """A view of any retained state, of all collections or of some."""
    tails = {file.collection for file in state.files.values() if file.kind is FileKind.TAIL}
    tails = tails if collections is None else tails.intersection(collections)
    return View(bases, state, {name: load_overlay(bases.log, state, name) for name in tails})


def load_overlay(log: Log, state: State, collection: str) -> Overlay:
    files = [f for f in state.files.values() if f.collection == collection and f.kind is FileKind.TAIL]
    with there_or_retired(log, state.version):
        return overlaid({}, changes(log, files))


def changes(log: Log, files: Iterable[DataFile]) -> list[Happened]:
    """The rows of tail files in the order in which they happened."""
    rows: list[Happened] = []
    for file in files:
        for batch in log.read(file).to_batches():
            rows += zip(*(batch[name].to_pylist() for name in ROWS.names), strict=True)
    rows.sort(key=itemgetter(2, 3))
    return rows


def overlaid(overlay: Overlay, happened: Iterable[Happened]) -> Overlay:
    """An overlay after more rows of the tail."""
    after = dict(overlay)
    for key, value, _, diff in happened:
        after[key] = value if diff > 0 else None
    return after


def merged(base: pa.Table, touched: list[bytes], overlay: Overlay) -> Iterator[pa.Table]:
    """Rows of the base and what the tail says of some keys, in parts that no 32-bit offset limits."""
    if touched and len(touched) * _SPLICED_SHARE < base.num_rows:
        yield pa.concat_tables(_spliced(base, touched, overlay))
        return
    if touched:
        base = base.filter(pc.invert(pc.is_in(base["key"], value_set=binary_column(touched))))
    start = 0
    for live in _parts([(key, value) for key in touched if (value := overlay[key]) is not None]):
        stop = start + _search(base["key"].slice(start), live[-1][0])
        tail = _pairs(live)
        yield _sorted(pa.concat_tables([base.slice(start, stop - start), tail])) if stop > start else tail
        start = stop
    if start < base.num_rows:
        yield base.slice(start)


def _spliced(base: pa.Table, touched: list[bytes], overlay: Overlay) -> Iterator[pa.Table]:
    """The base in slices, and between them what the tail puts there: nothing is sorted or copied."""
    keys, start = base["key"], 0
    waiting: list[tuple[bytes, bytes]] = []
    for key in touched:
        place = start + _search(keys.slice(start), key)
        if place > start:
            yield _pairs(waiting)
            yield base.slice(start, place - start)
            waiting = []
        start = place + int(place < len(keys) and keys[place].as_py() == key)
        if (value := overlay[key]) is not None:
            waiting.append((key, value))
    yield _pairs(waiting)
    yield base.slice(start)


def _pairs(rows: list[tuple[bytes, bytes]]) -> pa.Table:
    columns = [binary_column([key for key, _ in rows]), binary_column([value for _, value in rows])]
    return pa.Table.from_arrays(columns, schema=_PAIRS)


def _parts(rows: list[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    start, size = 0, 0
    for position, (key, value) in enumerate(rows):
        if size and size + len(key) + len(value) > _PART_BYTES_MAX:
            yield rows[start:position]
            start, size = position, 0
        size += len(key) + len(value)
    if rows[start:]:
        yield rows[start:]


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.take(pc.sort_indices(rows, [("key", "ascending")]))


def _search(keys: pa.ChunkedArray, wanted: bytes) -> int:
    """Where a key stands, or would stand, in an ordered column."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle].as_py() < wanted:
            low = middle + 1
        else:
            high = middle
    return low
