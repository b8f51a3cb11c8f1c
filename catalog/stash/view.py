"""The rows at one state of the log, merged from base and tail.

A view never changes: what was read once is read again the same, whatever is committed meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from catalog.log.protocol import ROWS, DataFile, FileKind, Log, State
from catalog.stash.arrays import binary_column

Overlay = Mapping[bytes, bytes | None]
"""What the tail says of each key that it touches: its value, or nothing if the row is gone."""

Happened = tuple[bytes, bytes, int, int]
"""A row of the tail: key, value, ts, diff."""

_PAIRS = pa.schema([ROWS.field("key"), ROWS.field("value")])
_CACHE_BYTES_MAX = 256 * 1024 * 1024


@dataclass(slots=True)
class Bases:
    """Base files that were read, as long as there is room; shared by the views of a process."""

    log: Log
    _tables: OrderedDict[str, pa.Table] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def table(self, file: DataFile) -> pa.Table:
        with self._lock:
            found = self._tables.get(file.path)
            if found is not None:
                self._tables.move_to_end(file.path)
                return found
        table = self.log.read(file, ["key", "value"]).combine_chunks()
        with self._lock:
            self._tables[file.path] = table
            while len(self._tables) > 1 and sum(table.nbytes for table in self._tables.values()) > _CACHE_BYTES_MAX:
                self._tables.popitem(last=False)
        return table


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
            table = self.bases.table(file)
            position = _search(table["key"], key)
            if position is not None:
                return bytes(table["value"][position].as_py())
        return None

    def table(self, collection: str) -> pa.Table:
        """Every row as bytes, in the order of keys: the columns key and value."""
        tables = [self.bases.table(file) for file in self._base(collection)]
        base = pa.concat_tables(tables) if tables else pa.Table.from_batches([], _PAIRS)
        overlay = self.overlays.get(collection, {})
        if not overlay and len(tables) <= 1:
            return base
        touched = binary_column(list(overlay))
        kept = base.filter(pc.invert(pc.is_in(base["key"], value_set=touched)))
        live = [(key, value) for key, value in overlay.items() if value is not None]
        columns = [binary_column([key for key, _ in live]), binary_column([value for _, value in live])]
        tail = pa.Table.from_arrays(columns, schema=_PAIRS)
        merged = pa.concat_tables([kept, tail])
        return merged.take(pc.sort_indices(merged, [("key", "ascending")]))

    def rows(self, collection: str) -> Iterator[tuple[bytes, bytes]]:
        for batch in self.table(collection).to_batches():
            yield from zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)

    def collections(self) -> set[str]:
        return {file.collection for file in self.state.files.values()}

    def _base(self, collection: str) -> Iterable[DataFile]:
        return (f for f in self.state.files.values() if f.collection == collection and f.kind is FileKind.BASE)


def load_view(bases: Bases, state: State) -> View:
    """A view of any retained state."""
    tails = {file.collection for file in state.files.values() if file.kind is FileKind.TAIL}
    return View(bases, state, {name: load_overlay(bases.log, state, name) for name in tails})


def load_overlay(log: Log, state: State, collection: str) -> Overlay:
    files = [f for f in state.files.values() if f.collection == collection and f.kind is FileKind.TAIL]
    return overlaid({}, changes(log, files))


def changes(log: Log, files: Iterable[DataFile]) -> list[Happened]:
    """The rows of tail files in the order in which they happened."""
    tables = [log.read(file) for file in files]
    if not tables:
        return []
    rows = pa.concat_tables(tables)
    rows = rows.take(pc.sort_indices(rows, [("ts", "ascending"), ("diff", "ascending")]))
    return list(zip(*(rows[name].to_pylist() for name in ("key", "value", "ts", "diff")), strict=True))


def overlaid(overlay: Overlay, happened: Iterable[Happened]) -> Overlay:
    """An overlay after more rows of the tail."""
    after = dict(overlay)
    for key, value, _, diff in happened:
        after[key] = value if diff > 0 else None
    return after


def _search(keys: pa.ChunkedArray, wanted: bytes) -> int | None:
    """Where a key stands in an ordered column."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle].as_py() < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(keys) and keys[low].as_py() == wanted else None
