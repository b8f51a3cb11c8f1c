"""The verification of rows: each one can be read, and written again with the same bytes.

Rows that break a rule are returned beside the good ones. An upgrade stops at the first of them, a check
reports every one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from catalog.engine.base.raised_text import error_text
from catalog.engine.codec import first_difference
from catalog.engine.migrate.row_errors import RowError
from catalog.engine.migrate.row_types import RowColumns
from catalog.engine.migrate.violations import RowRule
from catalog.engine.stash.registry import Collection, encode
from catalog.errors import UndecodableRowError

Columns = tuple[pa.StructArray, pa.StructArray]
"""The decoded keys and values of rows."""

_SAMPLE = 64
"""One row in so many is read and written by protobuf itself as well; in a check, every row."""
_DIFFERS = "written again, its bytes differ"


class EncodedRows(NamedTuple):
    """Rows of one collection as bytes."""

    keys: pa.BinaryArray
    values: pa.BinaryArray

    @classmethod
    def none(cls) -> EncodedRows:
        return cls(pa.array([], pa.binary()), pa.array([], pa.binary()))

    def without(self, rows: Iterable[int]) -> EncodedRows:
        kept = np.ones(len(self.keys), bool)
        kept[list(rows)] = False
        return EncodedRows(*(column.filter(pa.array(kept)) for column in self))


class VerifiedRows(NamedTuple):
    """The good rows of a batch, their columns, and the errors of the other rows."""

    rows: EncodedRows
    columns: Columns | None
    errors: list[RowError]


@dataclass(slots=True)
class RowVerifier:
    """Verifies batches of rows.

    Not thorough, it returns the first error of a batch and no rows; thorough, every error and all good rows.
    """

    is_thorough: bool = False
    sample: int = 0
    """One row in so many is read and written by protobuf itself; 0 for the default."""
    sampled_s: float = 0.0
    """The time that protobuf's own reading and writing took."""

    def __post_init__(self) -> None:
        self.sample = self.sample or (1 if self.is_thorough else _SAMPLE)

    def verify(
        self, collection: Collection, rows: EncodedRows, rule: RowRule, encoded_from: Columns | None = None
    ) -> VerifiedRows:
        """Return the rows that lose nothing when they are read and written again.

        `rule` is the one that a lossy row breaks; `encoded_from` are the columns that were encoded to these bytes.
        """
        errors: list[RowError] = []
        while True:
            columns, error = self.check_batch(RowColumns(collection), rows, rule, encoded_from)
            if error is None:
                return VerifiedRows(rows, columns, errors)
            if not self.is_thorough:
                return VerifiedRows(EncodedRows.none(), None, [error])
            found = _every_error(collection, rows, rule) or [error]
            errors += found
            rows, encoded_from = rows.without(own.row for own in found), None

    def check_batch(
        self, codec: RowColumns, rows: EncodedRows, rule: RowRule, encoded_from: Columns | None
    ) -> tuple[Columns | None, RowError | None]:
        """Return the decoded columns of a batch, or the first row that breaks the rule."""
        try:
            columns = codec.decode(*rows)
        except UndecodableRowError as unread:
            return None, RowError(_reading_rule(rule), unread.row, rows.keys[unread.row].as_py(), unread.what)
        if columns != encoded_from:  # else they were encoded to these very bytes
            for stored, again in zip(rows, codec.encode(*columns), strict=True):
                if (row := first_difference(stored, again)) is not None:
                    return None, RowError(rule, row, rows.keys[row].as_py(), _DIFFERS)
        began = perf_counter()
        error = _first_protobuf_error(codec.collection, rows, rule, self.sample)
        self.sampled_s += perf_counter() - began
        return (columns, None) if error is None else (None, error)


def failing_rows(count: int, failure: Callable[[int, int], Exception | None]) -> Iterator[tuple[int, Exception]]:
    """Yield the rows that fail by themselves, in their order, found by halves; `failure` tries a range of rows."""
    waiting = [(0, count)] if count else []
    while waiting:
        low, high = waiting.pop()
        error = failure(low, high)
        if error is not None and high - low == 1:
            yield low, error
        elif error is not None:
            middle = (low + high) // 2
            waiting += [(middle, high), (low, middle)]


def _every_error(collection: Collection, rows: EncodedRows, rule: RowRule) -> list[RowError]:
    """Return every row that loses something: by protobuf itself, then by the codec."""
    pairs = list(zip(rows.keys.to_pylist(), rows.values.to_pylist(), strict=True))
    by_protobuf = (_protobuf_error(collection, row, *pair, rule) for row, pair in enumerate(pairs))
    errors = {error.row: error for error in by_protobuf if error is not None}
    codec, rest = RowColumns(collection), rows.without(errors)
    left = [row for row in range(len(pairs)) if row not in errors]

    def failure(low: int, high: int) -> Exception | None:
        try:
            codec.decode(rest.keys[low:high], rest.values[low:high])
        except UndecodableRowError as error:
            return error
        return None

    unread = dict(failing_rows(len(left), failure))
    for number, error in unread.items():
        row = left[number]
        errors[row] = RowError(_reading_rule(rule), row, pairs[row][0], error_text(error))
    left = [row for number, row in enumerate(left) if number not in unread]
    rest = rest.without(unread)
    again = codec.encode(*codec.decode(*rest))
    differs = pc.or_(pc.not_equal(rest.keys, again[0]), pc.not_equal(rest.values, again[1]))
    for number in pc.indices_nonzero(differs).to_pylist():
        errors[left[number]] = RowError(rule, left[number], pairs[left[number]][0], _DIFFERS)
    return [errors[row] for row in sorted(errors)]


def _first_protobuf_error(collection: Collection, rows: EncodedRows, rule: RowRule, sample: int) -> RowError | None:
    """Return the first of every `sample` rows that protobuf itself cannot read, or writes with other bytes."""
    pairs = zip(rows.keys[::sample].to_pylist(), rows.values[::sample].to_pylist(), strict=True)
    found = (_protobuf_error(collection, row * sample, *pair, rule) for row, pair in enumerate(pairs))
    return next(filter(None, found), None)


def _protobuf_error(collection: Collection, row: int, key: bytes, value: bytes, rule: RowRule) -> RowError | None:
    for stored, kind in ((key, collection.key_type), (value, collection.value_type)):
        try:
            again = encode(kind.FromString(stored))
        except DecodeError as error:
            return RowError(_reading_rule(rule), row, key, str(error))
        if again != stored:
            return RowError(rule, row, key, "protobuf writes other bytes for it")
    return None


def _reading_rule(rule: RowRule) -> RowRule:
    """Return the rule that an unreadable row breaks: a new one was never written."""
    return rule if rule is RowRule.ENCODE else RowRule.DECODE
