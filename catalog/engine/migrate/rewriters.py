"""The rewriters of actions: each makes new rows of the verified stored rows of one collection, a batch at a time.

A rewriter is registered in `REWRITERS` by the type of its action. It returns the new rows and
the rows that the migration refused; it neither verifies nor writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from types import GeneratorType
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError, Message

from catalog.actions import Action, Columnar, Delete, PerRow
from catalog.engine.base.raised_text import error_text
from catalog.engine.migrate.new_rows import NewRows, RewrittenBatch
from catalog.engine.migrate.row_errors import RowError
from catalog.engine.migrate.row_types import RowColumns, RowType
from catalog.engine.migrate.row_verifier import Columns, EncodedRows, failing_rows
from catalog.engine.migrate.violations import RowRule
from catalog.engine.stash.arguments import described
from catalog.engine.stash.registry import Collection, Registry
from catalog.errors import MigrationFailedError, UnfitColumnError

_ROWS_AT_ONCE = 4096
"""Stored rows that are objects of Python together, few enough for a processor's cache."""


class RewriterContext(NamedTuple):
    """The facts that every rewriter gets."""

    step: str
    old: RowType
    new: Registry
    first_id: int
    is_thorough: bool
    """True to find every row that the migration refuses; else the first one ends the batch."""


class Rewriter(Protocol):
    def rewrite(self, rows: EncodedRows, columns: Columns | None) -> RewrittenBatch:
        """Return what verified rows, whose columns are given for protobuf, become."""


@dataclass(frozen=True, slots=True)
class _ColumnarRewriter:
    """Applies a function of record batches."""

    context: RewriterContext
    action: Columnar

    def rewrite(self, rows: EncodedRows, columns: Columns | None) -> RewrittenBatch:
        old, errors = _protobuf(self.context.old), list[RowError]()
        while len(rows.keys):
            batch = pa.record_batch(list(columns or RowColumns(old).decode(*rows)), names=["key", "value"])
            outcome = self._change(batch)
            if not isinstance(outcome, Exception):
                return self._rewritten(rows, *outcome, errors)
            found = self._refused_rows(batch, rows.keys, outcome)
            errors += found
            if not self.context.is_thorough:
                break
            rows, columns = rows.without(error.row for error in found), None
        return RewrittenBatch(errors=errors)

    def _rewritten(
        self, before: EncodedRows, after: EncodedRows, columns: Columns, errors: list[RowError]
    ) -> RewrittenBatch:
        differs = pc.or_(pc.not_equal(before.keys, after.keys), pc.not_equal(before.values, after.values))
        return RewrittenBatch(
            {self.action.collection: after},
            {self.action.collection: columns},
            errors,
            changed=differs.true_count,
            keys_changed=not after.keys.equals(before.keys),
        )

    def _change(self, batch: pa.RecordBatch) -> tuple[EncodedRows, Columns] | Exception:
        """Return the changed batch, encoded and as columns, or what the migration raised."""
        collection = self.action.collection
        try:
            changed = self.action.change(batch)
            if not isinstance(changed, pa.RecordBatch):
                return TypeError(f"it returned {described(changed)}; needed: a RecordBatch")
            if changed.num_rows != batch.num_rows:
                return _RowsDifferError(
                    f"{batch.num_rows} rows became {changed.num_rows}, and columnar keeps their number"
                )
            if changed.schema.names != ["key", "value"]:
                return UnfitColumnError(collection, f"the columns {changed.schema.names}", "key and value")
            codec = RowColumns(self.context.new.named(collection))
            columns = codec.fitted(changed["key"], changed["value"])
            return EncodedRows(*codec.encode(*columns)), columns
        except Exception as error:  # noqa: BLE001 - whatever a migration raises
            return error

    def _failure(self, batch: pa.RecordBatch) -> Exception | None:
        outcome = self._change(batch)
        return outcome if isinstance(outcome, Exception) else None

    def _refused_rows(self, batch: pa.RecordBatch, keys: pa.BinaryArray, error: Exception) -> list[RowError]:
        """Return the rows that the migration refuses: the first, or every one; raise if it is not the rows."""
        if not self.context.is_thorough:
            row = self._first_refused(batch)
            return [_change_error(row, keys, error)]
        outside = self._failure(batch[:0])
        if outside is not None and error_text(outside) == error_text(error):
            raise self._unwritten(f"fails on no rows at all: {error_text(error)}")
        found = failing_rows(batch.num_rows, lambda low, high: self._failure(batch[low:high]))
        errors = [_change_error(row, keys, own) for row, own in found]
        if not errors:
            together = f"fails on {batch.num_rows} together: {error_text(error)}"
            raise self._unwritten(f"takes every row by itself, and {together}")
        return errors

    def _first_refused(self, batch: pa.RecordBatch) -> int:
        low, high = 0, batch.num_rows
        while high - low > 1:
            middle = (low + high) // 2
            if self._failure(batch[low:middle]) is not None:
                high = middle
            else:
                low = middle
        return low

    def _unwritten(self, reason: str) -> MigrationFailedError:
        return MigrationFailedError(self.context.step, f"its change of {self.action.collection} {reason}")


@dataclass(frozen=True, slots=True)
class _PerRowRewriter:
    """Applies a function of one row, which returns one row, none or many.

    Only what must happen row by row does: protobuf reads a row, the migration changes it, protobuf writes what it
    became. A message is written before the next one is read, so that few are alive; everything is counted afterwards.
    """

    context: RewriterContext
    action: PerRow
    ids: _Ids

    def rewrite(self, rows: EncodedRows, columns: Columns | None) -> RewrittenBatch:
        del columns
        batch, before = RewrittenBatch(), self.ids.used
        made = NewRows(self.context.new, self.action.collection, self.action.into)
        read_key, read_value = self.context.old.readers
        change, writers = self._change(), made.writers
        for first in range(0, len(rows.keys), _ROWS_AT_ONCE):
            made.into_columns()
            pairs = (column[first : first + _ROWS_AT_ONCE].to_pylist() for column in rows)
            for row, (key, value) in enumerate(zip(*pairs, strict=True), first):
                try:
                    old_key, old_value = read_key(key), read_value(value)
                except (DecodeError, ValueError) as error:
                    batch.errors.append(RowError(RowRule.DECODE, row, key, str(error)))
                    if not self.context.is_thorough:
                        return batch
                    continue
                try:
                    answer = change(old_key, old_value)
                    for new_key, new_value in answer if type(answer) is GeneratorType else _as_rows(answer):
                        writer = writers.get(type(new_key))
                        if writer is None or writer[0] is not type(new_value):
                            writer = made.writer_of(new_key, new_value)
                        _, write_key, write_value, add_key, add_value, add_origin = writer
                        key_bytes, value_bytes = write_key(new_key), write_value(new_value)
                        add_key(key_bytes)
                        add_value(value_bytes)
                        add_origin(row)
                except Exception as error:  # noqa: BLE001 - whatever a migration raises
                    made.forget(row)
                    batch.errors.append(RowError(RowRule.CHANGE, row, key, error_text(error)))
                    if not self.context.is_thorough:
                        return batch
        batch.ids = self.ids.used - before
        made.into_batch(rows, batch)
        return batch

    def _change(self) -> Callable[[Any, Any], Any]:
        """Return the migration's function of a key and a value: a call with a list of arguments takes longer."""
        if not self.action.ids:
            return self.action.change
        change, ids = self.action.change, self.ids
        return lambda key, value: change(key, value, ids)


@dataclass(frozen=True, slots=True)
class _DeleteRewriter:
    """Keeps the rows that none of the conditions matches."""

    context: RewriterContext
    actions: tuple[Delete, ...]

    def rewrite(self, rows: EncodedRows, columns: Columns | None) -> RewrittenBatch:
        del columns
        old, batch, kept = _protobuf(self.context.old), RewrittenBatch(), list[bool]()
        for row, (key, value) in enumerate(zip(rows.keys.to_pylist(), rows.values.to_pylist(), strict=True)):
            try:
                kept.append(not any(_is_matched(action.where(*old.decode(key, value))) for action in self.actions))
                batch.deleted += not kept[-1]
            except Exception as error:  # noqa: BLE001 - whatever a migration raises
                batch.errors.append(RowError(RowRule.CHANGE, row, key, error_text(error)))
                if not self.context.is_thorough:
                    return batch
                kept.append(False)
        batch.keys_changed = not all(kept)
        mask = pa.array(kept, pa.bool_())
        batch.rows = {old.name: EncodedRows(rows.keys.filter(mask), rows.values.filter(mask))}
        return batch


REWRITERS: Mapping[type[Action], Callable[[RewriterContext, tuple[Any, ...]], Rewriter]] = {
    Columnar: lambda context, actions: _ColumnarRewriter(context, actions[0]),
    PerRow: lambda context, actions: _PerRowRewriter(context, actions[0], _Ids(context.first_id)),
    Delete: _DeleteRewriter,
}
"""By the type of action: what makes the rewriter for all actions on one collection. Several only delete."""


class _RowsDifferError(Exception):
    """A columnar change returned another number of rows."""


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


def _protobuf(old: RowType) -> Collection:
    if not isinstance(old, Collection):
        raise TypeError(f"rows of {old.name} are not protobuf: they can only be rewritten row by row")
    return old


def _is_matched(answer: object) -> bool:
    """Return what a condition answered: any other value than a truth would keep or delete rows by accident."""
    if not isinstance(answer, bool):
        raise TypeError(f"it returned {described(answer)}; needed: True or False")
    return answer


def _as_rows(answer: Any) -> Iterable[tuple[Message, Message]]:  # noqa: ANN401 - a migration's own types
    if answer is None:
        return ()
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Message):  # noqa: PLR2004 - a row
        return (answer,)
    if isinstance(answer, str | bytes | Mapping | Message) or (
        isinstance(answer, tuple) and any(isinstance(one, Message) for one in answer)
    ):
        raise TypeError(f"it returned {described(answer)}; needed: a row (key, value), several of them, or None")
    return answer  # type: ignore[no-any-return]


def _change_error(row: int, keys: pa.BinaryArray, error: Exception) -> RowError:
    if isinstance(error, _RowsDifferError):
        return RowError(RowRule.ROWS, row, keys[row].as_py(), str(error))
    return RowError(RowRule.CHANGE, row, keys[row].as_py(), error_text(error))
