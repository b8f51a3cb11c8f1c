"""Row groups of layers and bases that were read, and the footers of their files, up to a size in bytes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from catalog.engine.base.arrow import repeated
from catalog.engine.base.lazy_arrow import pa, pc
from catalog.engine.log.protocol import DataFile, FileKind, GroupedFile, Log
from catalog.engine.schema_change.tails import FOLDED, REMOVED, Change

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """The rows of a row group: unique keys in order, each with the change of it."""

    rows: pa.Table
    """The columns key, value, ts and rank, each in one chunk."""
    keys: pa.BinaryArray
    size: int

    @classmethod
    def of(cls, file: DataFile, rows: pa.Table) -> LayerGroup:
        if file.kind is FileKind.BASE:
            ranks = repeated(pa.int32(), FOLDED, rows.num_rows)
        else:
            removed = repeated(pa.int32(), REMOVED, rows.num_rows)
            ranks = pc.max_element_wise(rows["diff"].chunk(0), removed)  # of +1 it is ADDED
        ranked = pa.Table.from_arrays(
            [rows["key"], rows["value"], rows["ts"], ranks], names=["key", "value", "ts", "rank"]
        )
        return cls(ranked, rows["key"].chunk(0), ranked.nbytes)

    def place(self, key: bytes) -> int:
        """Return where a key stands, or would stand."""
        low, high = 0, len(self.keys)
        while low < high:
            middle = (low + high) // 2
            if self.keys[middle].as_py() < key:
                low = middle + 1
            else:
                high = middle
        return low

    def find(self, key: bytes) -> Change | None:
        """Return the change of a key."""
        place = self.place(key)
        if place == len(self.keys) or self.keys[place].as_py() != key:
            return None
        return self.change(place)

    def change(self, place: int) -> Change:
        """Return the change in a place."""
        value, ts, rank = (self.rows.column(number)[place].as_py() for number in (1, 2, 3))
        return ts, rank, value


@dataclass(frozen=True, slots=True)
class LayerFooter:
    """The bounds of the row groups of a file, in order."""

    file: DataFile
    grouped: GroupedFile
    firsts: tuple[bytes, ...]
    lasts: tuple[bytes, ...]
    size: int

    @classmethod
    def of(cls, file: DataFile, grouped: GroupedFile) -> LayerFooter:
        firsts, lasts = tuple(own.first for own in grouped.groups), tuple(own.last for own in grouped.groups)
        return cls(file, grouped, firsts, lasts, grouped.footer_size + sum(map(len, firsts + lasts)))

    def number(self, key: bytes) -> int | None:
        """Return the number of the only group that can hold a key; none if the file cannot."""
        number = bisect_right(self.firsts, key) - 1
        return number if number >= 0 and key <= self.lasts[number] else None

    def numbers(self, first: bytes, before: bytes | None) -> range:
        """Return the numbers of the groups that can hold keys of a range."""
        end = len(self.firsts) if before is None else bisect_left(self.firsts, before)
        return range(bisect_left(self.lasts, first), end)


class _Recent(Generic[_Key, _Value]):
    """The values that were used last, up to the sum of their sizes; one that is too large by itself is kept alone."""

    def __init__(self, size_max: int) -> None:
        self._held: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()
        self._size, self._size_max, self._lock = 0, size_max, Lock()

    def get(self, key: _Key) -> _Value | None:
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def put(self, key: _Key, value: _Value, size: int) -> None:
        with self._lock:
            if key in self._held:
                return
            self._held[key] = value, size
            self._size += size
            while self._size > self._size_max and len(self._held) > 1:
                self._size -= self._held.popitem(last=False)[1][1]

    @property
    def size(self) -> int:
        return self._size


@dataclass(slots=True)
class LayerCache:
    """Row groups and footers that were read; shared by the views of a process, in any thread."""

    log: Log
    bytes_max: int = 256 * 2**20
    """Of row groups, as they are in memory."""
    footer_bytes_max: int = 64 * 2**20
    _groups: _Recent[tuple[str, int], LayerGroup] = field(init=False)
    _footers: _Recent[str, LayerFooter] = field(init=False)

    def __post_init__(self) -> None:
        self._groups, self._footers = _Recent(self.bytes_max), _Recent(self.footer_bytes_max)

    @property
    def size(self) -> int:
        """Return the bytes that are held."""
        return self._groups.size + self._footers.size

    def footer(self, file: DataFile) -> LayerFooter:
        found = self._footers.get(file.path)
        if found is None:
            found = LayerFooter.of(file, self.log.grouped(file))
            self._footers.put(file.path, found, found.size)
        return found

    def group(self, footer: LayerFooter, number: int, *, keep: bool = True) -> LayerGroup:
        """Return a row group; a scan of many groups keeps none of those that it reads."""
        place = footer.file.path, number
        found = self._groups.get(place)
        if found is None:
            found = LayerGroup.of(footer.file, footer.grouped.read(number))
            if keep:
                self._groups.put(place, found, found.size)
        return found
