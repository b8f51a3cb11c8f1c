"""The rows of tables at one state of their log, merged from tail, layers and base.

The greatest ts of a key wins; at one ts a base wins, then an added row, then a removed one. Of layers and bases only
the row groups are read that can hold what is asked for, so memory does not grow with rows. A view never changes. Once
its retention has ended, rows of it that were not read yet are retired.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import attrgetter

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.base.arrow import binary_array
from catalog.engine.log.protocol import DataFile, FileKind, LogState, Row
from catalog.engine.log.replica import retired_if_missing
from catalog.engine.schema_change.layer_cache import LayerCache, LayerFooter, LayerGroup
from catalog.engine.schema_change.merging import Changed, live, live_pairs, newest_of, newest_rows, stored
from catalog.engine.schema_change.tails import REMOVED, Change, Tail

__all__ = ["LayerCache", "LayeredView", "Tail", "after_prefix"]

_FEW_ROWS_MAX = 512
"""So many rows are merged quicker as Python values than by the column."""
_FEW_KEYS_MAX = 32
"""So many keys are searched in a row group quicker one by one than all at once."""
_KEPT_GROUPS_MAX = 32
"""A range of more row groups is a scan, and leaves the cache to lookups."""


@dataclass(frozen=True, slots=True)
class LayeredView:
    cache: LayerCache
    state: LogState
    tails: dict[str, Tail] = field(default_factory=dict)
    """The tails that were read so far, some of them those of earlier states."""
    _files: dict[str, list[DataFile]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The files of each collection; divided when they are first asked for."""
    _stored: dict[str, list[DataFile]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The layers and the base of collections that were asked for, those with the newest rows first."""

    def get(self, collection: str, key: bytes) -> bytes | None:
        """Return the value of a key; none if there is no such row."""
        newest = self.tail(collection).get(key)
        for file in self._layers_and_base(collection):
            if newest is not None and file.ts_max < newest[0]:
                break
            found = self._find(file, key)
            if found is not None and (newest is None or newest < found):
                newest = found
        return None if newest is None or newest[1] == REMOVED else newest[2]

    def prefixed(self, collection: str, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows whose keys begin with some bytes, in the order of keys."""
        return self.rows(collection, prefix, after_prefix(prefix))

    def rows(self, collection: str, first: bytes = b"", before: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows of a range, in the order of keys."""
        for pieces, changed in self._steps(collection, first, before):
            if sum(piece.num_rows for piece in pieces) + len(changed) <= _FEW_ROWS_MAX:
                yield from live_pairs(newest_of(pieces, changed))
            else:
                found = live(newest_rows(pieces, changed))
                yield from zip(found["key"].to_pylist(), found["value"].to_pylist(), strict=True)

    def tables(self, collection: str, first: bytes = b"", before: bytes | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a range as `rows` does, in tables of key and value of which one is in memory at a time."""
        for pieces, changed in self._steps(collection, first, before):
            found = live(newest_rows(pieces, changed))
            if found.num_rows:
                yield found

    def newest(self, collection: str, first: bytes = b"", before: bytes | None = None) -> Iterator[pa.Table]:
        """Yield the newest change of each key of a range, removed rows included, in the columns of a data file."""
        return (stored(newest_rows(pieces, changed)) for pieces, changed in self._steps(collection, first, before))

    def dated(self, collection: str, keys: Collection[bytes]) -> dict[bytes, tuple[int, bytes | None]]:
        """Return the ts and the value of keys, none for a removed row; keys that were never written are left out."""
        wanted, tail = sorted(set(keys)), self.tail(collection)
        newest = {key: change for key in wanted if (change := tail.get(key)) is not None}
        for file in self._layers_and_base(collection):
            older = [key for key in wanted if key not in newest or newest[key][0] <= file.ts_max]
            for key, change in self._find_all(file, older):
                if key not in newest or newest[key] < change:
                    newest[key] = change
        return {key: (ts, None if rank == REMOVED else value) for key, (ts, rank, value) in newest.items()}

    def after(self, state: LogState, own: Mapping[str, Sequence[Row]] | None = None) -> LayeredView:
        """Return the view after a commit; `own` holds its tail rows by collection, so that no file is read for them.

        Tails of other collections are brought up to date when they are next asked for.
        """
        following = LayeredView(self.cache, state, dict(self.tails))
        for collection, rows in (own or {}).items():
            known = self.tails.get(collection)
            files = following.tail_files(collection)
            if known is not None and known.version == self.state.version and known.files.keys() <= files.keys():
                following.tails[collection] = known.after(state.version, files, rows)
        return following

    def tail(self, collection: str) -> Tail:
        """Return the tail of a collection; of files that are known already none is read again."""
        known = self.tails.get(collection)
        if known is not None and known.version == self.state.version:
            return known
        files = self.tail_files(collection)
        with retired_if_missing(self.cache.log, self.state.version):
            found = (known or Tail()).at(self.cache.log, self.state.version, files)
        self.tails[collection] = found
        return found

    def tail_files(self, collection: str) -> dict[str, DataFile]:
        """Return the files of the tail of a collection by path."""
        return {file.path: file for file in self.files_of(collection) if file.kind is FileKind.TAIL}

    def files_of(self, collection: str) -> list[DataFile]:
        """Return the files of a collection."""
        if not self._files and self.state.files:
            found: dict[str, list[DataFile]] = {}
            for file in self.state.files.values():
                found.setdefault(file.collection, []).append(file)
            self._files.update(found)
        return self._files.get(collection, [])

    def collections(self) -> set[str]:
        return {file.collection for file in self.state.files.values()}

    def depth(self, collection: str) -> int:
        """Return the greatest number of layers that can hold one key."""
        layers = [file for file in self.files_of(collection) if file.kind is FileKind.LAYER]
        footers = [self._footer(file) for file in layers]
        begins = [(footer.firsts[0], 0, 1) for footer in footers]
        ends = [(footer.lasts[-1], 1, -1) for footer in footers]
        return max(accumulate(step for *_, step in sorted(begins + ends)), default=0)

    def _steps(
        self, collection: str, first: bytes, before: bytes | None
    ) -> Iterator[tuple[list[pa.Table], list[Changed]]]:
        """Yield a range in parts, in order: slices of row groups and changes of the tail, with all there is of a key.

        A row group is read when the range comes to its first key, and held until the range has passed its last.
        """
        changed, done = self.tail(collection).between(first, before), 0
        keys = [key for key, _ in changed]
        due = self._due(collection, first, before)
        held: list[tuple[LayerGroup, int, int]] = []
        for place, (_, _, footer, number) in enumerate(due):
            group = self._group(footer, number, keep=len(due) <= _KEPT_GROUPS_MAX)
            start = group.place(first) if footer.firsts[number] < first else 0
            is_cut = before is not None and footer.lasts[number] >= before
            held.append((group, start, group.place(before or b"") if is_cut else len(group.keys)))
            bound = due[place + 1][0] if place + 1 < len(due) else None
            if bound is not None and bound <= due[place][0]:
                continue
            cut = [end if bound is None else min(end, group.place(bound)) for group, _, end in held]
            end = len(keys) if bound is None else bisect_left(keys, bound, done)
            pieces = [
                group.rows.slice(start, stop - start)
                for (group, start, _), stop in zip(held, cut, strict=True)
                if stop > start
            ]
            if pieces or end > done:
                yield pieces, changed[done:end]
            held = [
                (group, max(start, stop), last)
                for (group, start, last), stop in zip(held, cut, strict=True)
                if max(start, stop) < last
            ]
            done = end
        if done < len(changed):
            yield [], changed[done:]

    def _due(self, collection: str, first: bytes, before: bytes | None) -> list[tuple[bytes, str, LayerFooter, int]]:
        """Return the row groups that can hold keys of a range in the order of their first keys."""
        footers = [self._footer(file) for file in self._layers_and_base(collection)]
        found = [
            (max(footer.firsts[number], first), footer.file.path, footer, number)
            for footer in footers
            for number in footer.numbers(first, before)
        ]
        return sorted(found, key=lambda own: own[:2])

    def _find(self, file: DataFile, key: bytes) -> Change | None:
        footer = self._footer(file)
        number = footer.number(key)
        return None if number is None else self._group(footer, number).find(key)

    def _find_all(self, file: DataFile, wanted: Sequence[bytes]) -> Iterator[tuple[bytes, Change]]:
        """Yield the changes of keys, which are in order, that a file has."""
        footer, start = self._footer(file), 0
        while (start := bisect_left(wanted, footer.firsts[0], start)) < len(wanted):
            number = bisect_left(footer.lasts, wanted[start])
            if number == len(footer.lasts):
                return
            end = bisect_right(wanted, footer.lasts[number], start)
            start = bisect_left(wanted, footer.firsts[number], start)
            if start < end:
                group = self._group(footer, number)
                for key, place in _places(group, wanted[start:end]):
                    yield key, group.change(place)
            start = end

    def _layers_and_base(self, collection: str) -> list[DataFile]:
        if collection not in self._stored:
            files = [file for file in self.files_of(collection) if file.kind is not FileKind.TAIL]
            self._stored[collection] = sorted(files, key=attrgetter("ts_max"), reverse=True)
        return self._stored[collection]

    def _footer(self, file: DataFile) -> LayerFooter:
        with retired_if_missing(self.cache.log, self.state.version):
            return self.cache.footer(file)

    def _group(self, footer: LayerFooter, number: int, *, keep: bool = True) -> LayerGroup:
        with retired_if_missing(self.cache.log, self.state.version):
            return self.cache.group(footer, number, keep=keep)


def after_prefix(prefix: bytes) -> bytes | None:
    """Return the first bytes that sort after all that begin with a prefix; none if there are none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _places(group: LayerGroup, keys: Sequence[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield the keys that a group has, and their places."""
    if len(keys) > _FEW_KEYS_MAX:
        found = pc.index_in(binary_array(keys), value_set=group.keys).to_pylist()
        yield from ((key, place) for key, place in zip(keys, found, strict=True) if place is not None)
        return
    for key in keys:
        place = group.place(key)
        if place < len(group.keys) and group.keys[place].as_py() == key:
            yield key, place
