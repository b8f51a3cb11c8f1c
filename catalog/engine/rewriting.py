"""What becomes of a batch of rows: read with the old types, changed, written with the new ones, both verified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import Message

from catalog.actions import Columnar, Delete, PerRow
from catalog.engine.judging import Fault, Judge, Rows, culprits, every_fault, said
from catalog.engine.prints import Kind, Wanted, follow, key_kind, unique_kind
from catalog.engine.types import Columns, RowType
from catalog.engine.violations import Rule
from catalog.errors import UnfitColumnError, UnwrittenStepError
from catalog.stash.arrays import binary_column
from catalog.stash.collections import Collection, Registry, encode


class Rewrite:
    """One action on the rows of one collection."""

    def __init__(self, old: RowType, new: Registry, judge: Judge) -> None:
        self.old, self.new, self.judge = old, new, judge
        self.keys_changed = False
        self.differing: set[Kind] = set()
        self.changed = 0
        """Stored rows that stay in their collection with other bytes."""
        self.deleted = 0
        """Stored rows of which nothing stays in their collection."""
        self.inserted: Counter[str] = Counter()
        """New rows beside the one that a stored row becomes, by collection."""
        self.ids_used = 0

    def batch(self, rows: Rows) -> dict[str, Rows]:
        """What rows become, by collection."""
        raise NotImplementedError

    def read(self, rows: Rows) -> tuple[Rows, tuple[pa.StructArray, pa.StructArray]]:
        """The rows that can be read without loss."""
        collection = self._protobuf

        def attempt(rest: Rows) -> tuple[Rows, tuple[pa.StructArray, pa.StructArray]]:
            return rest, self.judge.verified(Columns(collection), rest, Rule.UNKNOWN_FIELDS)

        def every(rest: Rows) -> list[Fault]:
            return every_fault(collection, rest, Rule.UNKNOWN_FIELDS)

        settled: tuple[Rows, tuple[pa.StructArray, pa.StructArray]] = self.judge.read(self.old, rows, attempt, every)
        return settled

    def written(self, collection: str, rows: Rows) -> Rows:
        """New rows, verified under the new types, with their columns."""
        return self.judge.written(self.new.named(collection), rows)

    @property
    def _protobuf(self) -> Collection:
        if not isinstance(self.old, Collection):
            raise TypeError(f"rows of {self.old.name} are not protobuf: they can only be rewritten row by row")
        return self.old


class RewriteColumns(Rewrite):
    def __init__(self, old: RowType, new: Registry, judge: Judge, action: Columnar, compared: Wanted) -> None:
        super().__init__(old, new, judge)
        self.action, self.compared = action, compared

    def batch(self, rows: Rows) -> dict[str, Rows]:
        collection = self.action.collection
        rows, decoded = self.read(rows)

        def given(rest: Rows) -> pa.RecordBatch:
            columns = decoded if rest is rows else Columns(self._protobuf).decode(*rest[:2])
            return pa.record_batch(list(columns), names=["key", "value"])

        def attempt(rest: Rows) -> tuple[Rows, Rows]:
            return rest, self._change(given(rest))

        if not len(rows.keys):
            return {}
        before, after = self.judge.read(self.old, rows, attempt, lambda rest: self._every(given(rest)))
        self.keys_changed |= not after.keys.equals(before.keys)
        differs = pc.or_(pc.not_equal(before.keys, after.keys), pc.not_equal(before.values, after.values))
        self.changed += differs.true_count
        written = self.written(collection, after)
        self._compare(decoded, written)
        return {collection: written}

    def _compare(self, before: tuple[pa.StructArray, pa.StructArray], after: Rows) -> None:
        """See in what of that which must be unique the rows differ."""
        if self.compared.keys and self.keys_changed:
            self.differing.add(key_kind(self.action.collection))
        for unique in self.compared.uniques:
            if any(follow(path, *before) != follow(path, *(after.decoded or before)) for path in unique.paths):
                self.differing.add(unique_kind(unique))

    def _change(self, batch: pa.RecordBatch) -> Rows:
        """The changed rows; faults the first that the migration cannot take."""
        if not batch.num_rows:
            return Rows(*(pa.array([], pa.binary()) for _ in "kv"))
        try:
            return self._applied(batch)
        except Exception as error:
            low, high = 0, 1 if self.judge.is_thorough else batch.num_rows
            while high - low > 1:
                middle = (low + high) // 2
                if self._failure(batch[low:middle]) is not None:
                    high = middle
                else:
                    low = middle
            raise _fault(low, error) from error

    def _every(self, batch: pa.RecordBatch) -> list[Fault]:
        """Every row that the migration cannot take; raises if it is not the rows that it fails on."""
        error, outside = self._failure(batch), self._failure(batch[:0])
        if error is None:
            return []
        if outside is not None and said(outside) == said(error):
            raise self._unable(f"fails on no rows at all: {said(error)}")
        found = [_fault(row, own) for row, own in culprits(batch.num_rows, lambda a, b: self._failure(batch[a:b]))]
        if not found:
            raise self._unable(f"takes every row by itself, and fails on {batch.num_rows} together: {said(error)}")
        return found

    def _unable(self, reason: str) -> UnwrittenStepError:
        return UnwrittenStepError(self.judge.step, f"its change of {self.action.collection} {reason}")

    def _failure(self, batch: pa.RecordBatch) -> Exception | None:
        try:
            self._applied(batch)
        except Exception as error:  # noqa: BLE001 - whatever a migration raises
            return error
        return None

    def _applied(self, batch: pa.RecordBatch) -> Rows:
        changed = self.action.change(batch)
        if changed.num_rows != batch.num_rows:
            raise _RowsDifferError(f"{batch.num_rows} rows became {changed.num_rows}, and columnar keeps their number")
        if changed.schema.names != ["key", "value"]:
            raise UnfitColumnError(self.action.collection, f"the columns {changed.schema.names}", "key and value")
        columns = Columns(self.new.named(self.action.collection))
        fitted = columns.fitted(changed["key"], changed["value"])
        return Rows(*columns.encode(*fitted), fitted)


class RewriteRows(Rewrite):
    def __init__(self, old: RowType, new: Registry, judge: Judge, action: PerRow, first_id: int) -> None:
        super().__init__(old, new, judge)
        self.action = action
        self.ids = _Ids(first_id)

    def batch(self, rows: Rows) -> dict[str, Rows]:
        made: dict[str, tuple[list[bytes], list[bytes]]] = {}
        own = self.action.collection
        for key, value, decoded in self._decoded(rows):
            try:
                new = [(collection, encode(k), encode(v)) for collection, k, v in self._changed(*decoded)]
            except Exception as error:  # noqa: BLE001 - whatever a migration raises
                self.judge.refuse(Rule.CHANGE, self.old, key, said(error))
                continue
            for collection, *row in new:
                keys, values = made.setdefault(collection, ([], []))
                keys.append(row[0])
                values.append(row[1])
            self._count((own, key, value), new)
        self.keys_changed |= made.get(own, ([], []))[0] != rows.keys.to_pylist()
        self.ids_used = self.ids.used
        return {
            name: self.written(name, Rows(*(binary_column(column).combine_chunks() for column in columns)))
            for name, columns in made.items()
        }

    def _count(self, stored: tuple[str, bytes, bytes], new: list[tuple[str, bytes, bytes]]) -> None:
        stays = False
        for row in new:
            if row[0] == stored[0] and not stays:
                stays = True
            else:
                self.inserted[row[0]] += 1
        self.deleted += not stays
        self.changed += stays and stored not in new

    def _decoded(self, rows: Rows) -> Iterator[tuple[bytes, bytes, tuple[Any, Any]]]:
        if isinstance(self.old, Collection):
            rows, _ = self.read(rows)
        for key, value in zip(rows.keys.to_pylist(), rows.values.to_pylist(), strict=True):
            try:
                decoded = self.old.decode(key, value)
            except ValueError as error:
                self.judge.refuse(Rule.DECODE, self.old, key, str(error))
            else:
                yield key, value, decoded

    def _changed(self, key: Any, value: Any) -> Iterator[tuple[str, Message, Message]]:  # noqa: ANN401 - a migration's own types
        answer = self.action.change(key, value, *([self.ids] if self.action.ids else []))
        for new_key, new_value in _as_rows(answer):
            collection = self.new.of_key(new_key)
            if collection.name not in {self.action.collection, *self.action.into}:
                raise ValueError(f"it makes a row of {collection.name}, which `into` does not name")
            if new_value.DESCRIPTOR.full_name != collection.value_type.DESCRIPTOR.full_name:
                raise ValueError(f"it makes a row of {collection.name} whose value is a {new_value.DESCRIPTOR.name}")
            yield collection.name, new_key, new_value


class DeleteRows(Rewrite):
    def __init__(self, old: RowType, new: Registry, judge: Judge, actions: Iterable[Delete]) -> None:
        super().__init__(old, new, judge)
        self.actions = tuple(actions)

    def batch(self, rows: Rows) -> dict[str, Rows]:
        rows, _ = self.read(rows)
        kept = []
        for key, value in zip(rows.keys.to_pylist(), rows.values.to_pylist(), strict=True):
            try:
                kept.append(not any(action.where(*self.old.decode(key, value)) for action in self.actions))
                self.deleted += not kept[-1]
            except Exception as error:  # noqa: BLE001 - whatever a migration raises
                self.judge.refuse(Rule.CHANGE, self.old, key, said(error))
                kept.append(False)
        mask = pa.array(kept, pa.bool_())
        self.keys_changed |= not all(kept)
        return {self.old.name: self.written(self.old.name, Rows(rows.keys.filter(mask), rows.values.filter(mask)))}


class _RowsDifferError(Exception):
    pass


@dataclass(slots=True)
class _Ids:
    """Ids from a first one on, counted as they are taken."""

    first: int
    used: int = 0
    _numbers: Iterator[int] = field(default_factory=count)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.used += 1
        return self.first + next(self._numbers)


def _as_rows(answer: Any) -> Iterable[tuple[Message, Message]]:  # noqa: ANN401 - a migration's own types
    if answer is None:
        return ()
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Message):  # noqa: PLR2004 - a row
        return (answer,)
    return answer  # type: ignore[no-any-return]


def _fault(row: int, error: Exception) -> Fault:
    return Fault(Rule.ROWS if isinstance(error, _RowsDifferError) else Rule.CHANGE, row, said(error))
