"""The rows at one state of the log, merged from base and tail.

A view never changes: what was read once is read again the same, whatever is committed meanwhile. Files are read when
their rows are first asked for, few rows without Arrow. Once its retention has ended, rows of it that were not read yet
are retired.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from threading import Lock

from catalog.engine.base.arrow import binary_column
from catalog.engine.base.byte_budget import split_by_size
from catalog.engine.base.lazy_arrow import pa, pc
from catalog.engine.log import protocol
from catalog.engine.log.data_files import FEW_ROWS_MAX
from catalog.engine.log.protocol import DataFile, FileKind, Log, LogState, Row
from catalog.engine.log.replica import retired_if_missing

Overlay = Mapping[bytes, bytes | None]
"""The value of each key that the tail touches; none if the row is removed."""

TailRow = Row
"""A row of the tail: key, value, ts, diff."""

_PART_BYTES_MAX = 64 * 1024 * 1024
_SPLICED_SHARE = 64
"""A tail that touches less than one in so many rows is put between those of the base; any other is sorted in."""
_FEW_BYTES_MAX, _FEW_KEPT_MAX = 64 * 1024, 64
"""Of a base that is read as Python values, and of such files that are kept."""
_CACHE_BYTES_MAX = 256 * 1024 * 1024


@dataclass(slots=True)
class BaseFileCache:
    """Base files that were read, up to a size; shared by the views of a process."""

    log: Log
    _tables: OrderedDict[str, pa.Table] = field(default_factory=OrderedDict)
    _bounds: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    _few: dict[str, Mapping[bytes, bytes]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def few(self, file: DataFile) -> Mapping[bytes, bytes]:
        """Return the rows of a file that has few, by key and in their order."""
        found = self._few.get(file.path)
        if found is None:
            found = {key: value for key, value, *_ in self.log.rows(file)}
            if len(self._few) == _FEW_KEPT_MAX:
                self._few.clear()
            self._few[file.path] = found
        return found

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
        """Return the first and the last key of a file; kept when its rows are not."""
        if file.path not in self._bounds:
            self.table(file)
        return self._bounds[file.path]


@dataclass(frozen=True, slots=True)
class View:
    bases: BaseFileCache
    state: LogState
    overlays: dict[str, Overlay] = field(default_factory=dict)
    """The tails that were read so far."""

    def overlay(self, collection: str) -> Overlay:
        """Return the tail of a collection."""
        if collection not in self.overlays:
            self.overlays[collection] = load_overlay(self.bases.log, self.state, collection)
        return self.overlays[collection]

    def get(self, collection: str, key: bytes) -> bytes | None:
        """Return the value of a key; none if there is no such row."""
        overlay = self.overlay(collection)
        if key in overlay:
            return overlay[key]
        if (few := self._few(collection)) is not None:
            return few.get(key)
        for file in self._base(collection):
            first, last = self._bounds(file)
            if first <= key <= last:
                table = self._table(file)
                position = _search(table["key"], key)
                if position < table.num_rows and table["key"][position].as_py() == key:
                    return bytes(table["value"][position].as_py())
        return None

    def table(self, collection: str) -> pa.Table:
        """Return every row as bytes, in the order of keys: the columns key and value."""
        return pa.concat_tables([_pairs([]), *self.tables(collection)])

    def tables(self, collection: str) -> Iterator[pa.Table]:
        """Yield every row as `table` does, in parts of which only one needs to be in memory."""
        overlay = self.overlay(collection)
        touched, done = sorted(overlay), 0
        for last, files in self.runs(collection):
            base = pa.concat_tables([self._table(file) for file in files])
            if len(files) > 1:
                base = _sorted(base)
            end = bisect_right(touched, last, done)
            yield from merged(base, touched[done:end], overlay)
            done = end
        yield from merged(_pairs([]), touched[done:], overlay)

    def rows(self, collection: str, changed: Overlay | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield every row, in the order of keys; with changes on top, as the rows will be."""
        if not changed:
            return self._stored(collection)
        stored = (row for row in self._stored(collection) if row[0] not in changed)
        return heapq.merge(stored, sorted((key, value) for key, value in changed.items() if value is not None))

    def _stored(self, collection: str) -> Iterator[tuple[bytes, bytes]]:
        if (few := self._few(collection)) is not None:
            live = {**few, **self.overlay(collection)}
            yield from sorted((key, value) for key, value in live.items() if value is not None)
            return
        for table in self.tables(collection):
            for batch in table.to_batches():
                yield from zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)

    def runs(self, collection: str) -> list[tuple[bytes, list[DataFile]]]:
        """Return base files in the order of keys, those together whose keys overlap; each with its last key."""
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

    def _base(self, collection: str) -> list[DataFile]:
        return self.state.files_of(collection, FileKind.BASE)

    def _few(self, collection: str) -> Mapping[bytes, bytes] | None:
        """Return the rows of a base that has few; none if it has more."""
        files = self._base(collection)
        if sum(file.rows for file in files) > FEW_ROWS_MAX or sum(file.size for file in files) > _FEW_BYTES_MAX:
            return None
        with retired_if_missing(self.bases.log, self.state.version):
            return {key: value for file in files for key, value in self.bases.few(file).items()}

    def _table(self, file: DataFile) -> pa.Table:
        with retired_if_missing(self.bases.log, self.state.version):
            return self.bases.table(file)

    def _bounds(self, file: DataFile) -> tuple[bytes, bytes]:
        with retired_if_missing(self.bases.log, self.state.version):
            return self.bases.bounds(file)


def load_view(bases: BaseFileCache, state: LogState, collections: Collection[str] = ()) -> View:
    """Return a view of any retained state; the tails of some collections are read at once."""
    return View(bases, state, {name: load_overlay(bases.log, state, name) for name in collections})


def load_overlay(log: Log, state: LogState, collection: str) -> Overlay:
    files = state.files_of(collection, FileKind.TAIL)
    with retired_if_missing(log, state.version):
        return apply_tail({}, changes(log, files))


def changes(log: Log, files: Iterable[DataFile]) -> list[TailRow]:
    """Return the rows of tail files in the order of their commits."""
    return sorted((row for file in files for row in log.rows(file)), key=itemgetter(2, 3))


def apply_tail(overlay: Overlay, happened: Iterable[TailRow]) -> Overlay:
    """Return an overlay after more rows of the tail."""
    after = dict(overlay)
    for key, value, _, diff in happened:
        after[key] = value if diff > 0 else None
    return after


def merged(base: pa.Table, touched: list[bytes], overlay: Overlay) -> Iterator[pa.Table]:
    """Yield rows of the base with the tail applied to some keys, in parts that no 32-bit offset limits."""
    if touched and len(touched) * _SPLICED_SHARE < base.num_rows:
        yield pa.concat_tables(_spliced(base, touched, overlay))
        return
    if touched:
        base = base.filter(pc.invert(pc.is_in(base["key"], value_set=binary_column(touched))))
    start = 0
    added = ((key, value) for key in touched if (value := overlay[key]) is not None)
    for live in split_by_size(added, lambda row: len(row[0]) + len(row[1]), _PART_BYTES_MAX):
        stop = start + _search(base["key"].slice(start), live[-1][0])
        tail = _pairs(live)
        yield _sorted(pa.concat_tables([base.slice(start, stop - start), tail])) if stop > start else tail
        start = stop
    if start < base.num_rows:
        yield base.slice(start)


def _spliced(base: pa.Table, touched: list[bytes], overlay: Overlay) -> Iterator[pa.Table]:
    """Yield the base in slices, and the rows of the tail between them: nothing is sorted or copied."""
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
    return pa.Table.from_arrays(columns, schema=pa.schema([protocol.ROWS.field("key"), protocol.ROWS.field("value")]))


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.take(pc.sort_indices(rows, [("key", "ascending")]))


def _search(keys: pa.ChunkedArray, wanted: bytes) -> int:
    """Return where a key stands, or would stand, in an ordered column."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle].as_py() < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def live_rows(log: Log, files: Iterable[DataFile]) -> int:
    """Count the live rows of a collection's files; no row of its base is read."""
    found = list(files)
    tails = (log.read(file, ["diff"])["diff"] for file in found if file.kind is FileKind.TAIL)
    return sum(file.rows for file in found if file.kind is FileKind.BASE) + sum(int(pc.sum(d).as_py()) for d in tails)
