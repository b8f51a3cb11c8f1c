"""What becomes of a batch of rows: read with the old types, changed, written with the new ones, both verified.

A row that breaks a rule is set aside and named, and the others go on; whether that stops the step is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from google.protobuf.text_format import MessageToString

from catalog.actions import Columnar, Delete, PerRow
from catalog.codec import first_difference
from catalog.engine.prints import Kind, Wanted, follow, key_kind, unique_kind
from catalog.engine.types import Columns, RowType
from catalog.engine.violations import LISTED_MAX, Rule, Violations
from catalog.errors import CatalogError, UndecodableRowError, UnfitColumnError
from catalog.stash.arrays import binary_column
from catalog.stash.collections import Collection, Registry, encode

SAMPLE = 64
"""One row in so many is read and written by protobuf itself as well."""


class Rows(NamedTuple):
    """Rows of one collection: their bytes, and the columns these decode to where they were needed."""

    keys: pa.BinaryArray
    values: pa.BinaryArray
    decoded: tuple[pa.StructArray, pa.StructArray] | None = None

    def without(self, row: int) -> Rows:
        return Rows(*(pa.concat_arrays([column[:row], column[row + 1 :]]) for column in self[:2]))


class Fault(Exception):  # noqa: N818 - no error of the program: found and handled here
    """One row breaks a rule."""

    def __init__(self, rule: Rule, row: int, found: str) -> None:
        super().__init__(found)
        self.rule, self.row, self.found = rule, row, found


class TooManyFaults(Exception):  # noqa: N818
    """There is no point in going on."""


@dataclass(slots=True)
class Judge:
    """Sets faulty rows aside, and says when it has seen enough."""

    violations: Violations
    sample: int = SAMPLE
    faults_max: int = 1

    def settle(self, rows: Rows, collection: str, show: Callable[[bytes], str], attempt: Callable[[Rows], Any]) -> Any:  # noqa: ANN401
        """What an attempt makes of rows, after those that it faults were set aside."""
        while True:
            try:
                return attempt(rows)
            except Fault as fault:
                self.add(fault.rule, collection, show(rows.keys[fault.row].as_py()), fault.found)
                rows = rows.without(fault.row)

    def add(self, rule: Rule, collection: str, key: str, found: str) -> None:
        self.violations.add(rule, collection, key, found)
        if self.violations.counts.total() >= self.faults_max:
            raise TooManyFaults


def shown(row_type: RowType, key: bytes) -> str:
    """A key as text, for people."""
    try:
        if not isinstance(row_type, Collection):
            return key.decode()
        return MessageToString(row_type.decode(key, b"")[0], as_one_line=True) or "all fields empty"
    except (DecodeError, ValueError):
        return f"bytes {key.hex()}"


def verified(columns: Columns, rows: Rows, *, sample: int, rule: Rule) -> tuple[pa.StructArray, pa.StructArray]:
    """The decoded columns of rows that lose nothing when they are written again; faults the first that does."""
    try:
        decoded = columns.decode(rows.keys, rows.values)
    except UndecodableRowError as error:
        raise Fault(Rule.DECODE, error.row, error.what) from error
    if decoded == rows.decoded:  # what was encoded to these bytes, which therefore are written again the same
        _sampled(columns.collection, rows, sample, rule)
        return decoded
    again = columns.encode(*decoded)
    for stored, written in zip(rows[:2], again, strict=True):
        if (row := first_difference(stored, written)) is not None:
            raise Fault(rule, row, "written again, its bytes differ")
    _sampled(columns.collection, rows, sample, rule)
    return decoded


def _sampled(collection: Collection, rows: Rows, sample: int, rule: Rule) -> None:
    for row in range(0, len(rows.keys), sample):
        for column, kind in zip(rows[:2], (collection.key_type, collection.value_type), strict=True):
            stored = column[row].as_py()
            try:
                message = kind.FromString(stored)
            except DecodeError as error:
                raise Fault(Rule.DECODE, row, str(error)) from error
            if encode(message) != stored:
                raise Fault(rule, row, "protobuf writes other bytes for it")


class Rewrite:
    """One action on the rows of one collection."""

    def __init__(self, old: RowType, new: Registry, judge: Judge) -> None:
        self.old, self.new, self.judge = old, new, judge
        self.keys_changed = False
        self.differing: set[Kind] = set()
        self.changed = 0
        self.ids_used = 0

    def batch(self, rows: Rows) -> dict[str, Rows]:
        """What rows become, by collection."""
        raise NotImplementedError

    def read(self, rows: Rows) -> tuple[Rows, tuple[pa.StructArray, pa.StructArray]]:
        """The rows that can be read without loss."""
        columns = Columns(self._protobuf)

        def attempt(rest: Rows) -> tuple[Rows, tuple[pa.StructArray, pa.StructArray]]:
            return rest, verified(columns, rest, sample=self.judge.sample, rule=Rule.UNKNOWN_FIELDS)

        settled: tuple[Rows, tuple[pa.StructArray, pa.StructArray]] = self.judge.settle(
            rows, self.old.name, self.show, attempt
        )
        return settled

    def written(self, collection: str, rows: Rows) -> Rows:
        """New rows, verified under the new types, with their columns."""
        kind = self.new.named(collection)

        def attempt(rest: Rows) -> Rows:
            return rest._replace(decoded=verified(Columns(kind), rest, sample=self.judge.sample, rule=Rule.ENCODE))

        made: Rows = self.judge.settle(rows, collection, lambda key: shown(kind, key), attempt)
        return made

    def show(self, key: bytes) -> str:
        return shown(self.old, key)

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

        def attempt(rest: Rows) -> tuple[Rows, Rows]:
            given = decoded if rest is rows else Columns(self._protobuf).decode(*rest[:2])
            return rest, self._change(given)

        before, after = self.judge.settle(rows, collection, self.show, attempt)
        self.keys_changed |= not after.keys.equals(before.keys)
        self.changed += len(after.keys)
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

    def _change(self, decoded: tuple[pa.StructArray, pa.StructArray]) -> Rows:
        """The changed rows; faults the first that the migration cannot take."""
        batch = pa.record_batch(list(decoded), names=["key", "value"])
        try:
            return self._applied(batch)
        except Exception as error:
            low, high = 0, batch.num_rows
            while high - low > 1:
                middle = (low + high) // 2
                if self._fails(batch[low:middle]):
                    high = middle
                else:
                    low = middle
            raise Fault(Rule.ROWS if isinstance(error, _RowsDifferError) else Rule.CHANGE, low, _said(error)) from error

    def _fails(self, batch: pa.RecordBatch) -> bool:
        try:
            self._applied(batch)
        except Exception:  # noqa: BLE001 - whatever a migration raises
            return True
        return False

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
                self.judge.add(Rule.CHANGE, own, self.show(key), _said(error))
                continue
            for collection, *row in new:
                keys, values = made.setdefault(collection, ([], []))
                keys.append(row[0])
                values.append(row[1])
            self.changed += any(collection != own or row != [key, value] for collection, *row in new) or not new
        self.keys_changed |= made.get(own, ([], []))[0] != rows.keys.to_pylist()
        self.ids_used = self.ids.used
        return {
            name: self.written(name, Rows(*(binary_column(column).combine_chunks() for column in columns)))
            for name, columns in made.items()
        }

    def _decoded(self, rows: Rows) -> Iterator[tuple[bytes, bytes, tuple[Any, Any]]]:
        if isinstance(self.old, Collection):
            rows, _ = self.read(rows)
        for key, value in zip(rows.keys.to_pylist(), rows.values.to_pylist(), strict=True):
            try:
                decoded = self.old.decode(key, value)
            except ValueError as error:
                self.judge.add(Rule.DECODE, self.old.name, self.show(key), str(error))
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
            except Exception as error:  # noqa: BLE001 - whatever a migration raises
                self.judge.add(Rule.CHANGE, self.old.name, self.show(key), _said(error))
                kept.append(False)
        mask = pa.array(kept, pa.bool_())
        self.keys_changed |= not all(kept)
        self.changed += kept.count(False)
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


def _said(error: BaseException) -> str:
    return error.what if isinstance(error, CatalogError) else f"{type(error).__name__}: {error}"


def judged(faults_max: int | None, sample: int) -> Judge:
    """A judge for a task: of `faults_max`, or of as many as are listed."""
    return Judge(Violations(), sample, LISTED_MAX if faults_max is None else faults_max)
