"""Rows that break a rule: found, named and set aside, so that the others go on.

Whether that stops the step is not decided here. A step that is applied ends at its first fault; a check looks for every
one, a batch at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError
from google.protobuf.text_format import MessageToString

from catalog.codec import first_difference
from catalog.engine.types import Columns, RowType
from catalog.engine.violations import Rule, Violations
from catalog.errors import CatalogError, UndecodableRowError
from catalog.stash.collections import Collection, encode

SAMPLE = 64
"""One row in so many is read and written by protobuf itself as well."""


class Rows(NamedTuple):
    """Rows of one collection: their bytes, and the columns these decode to where they were needed."""

    keys: pa.BinaryArray
    values: pa.BinaryArray
    decoded: tuple[pa.StructArray, pa.StructArray] | None = None

    def without(self, rows: Iterable[int]) -> Rows:
        kept = np.ones(len(self.keys), bool)
        kept[list(rows)] = False
        return Rows(*(column.filter(pa.array(kept)) for column in self[:2]))


class Fault(Exception):  # noqa: N818 - no error of the program: found and handled here
    """One row breaks a rule."""

    def __init__(self, rule: Rule, row: int, found: str) -> None:
        super().__init__(found)
        self.rule, self.row, self.found = rule, row, found


class TooManyFaults(Exception):  # noqa: N818
    """There is no point in going on."""


@dataclass(slots=True)
class Judge:
    """Sets faulty rows aside, and says when it has seen enough; goes back to the driver with a task's report."""

    step: str
    sample: int = SAMPLE
    faults_max: int | None = 1
    """None: every fault is looked for."""
    stored: Violations = field(default_factory=Violations)
    """Those of rows as they were before the step."""
    made: Violations = field(default_factory=Violations)
    """Those of new rows."""
    faulty: dict[str, set[bytes]] = field(default_factory=dict)
    """The stored rows that were set aside, by collection."""
    spoilt: dict[str, set[bytes]] = field(default_factory=dict)
    """The new rows that were set aside, as far as they have a key and are not there under it."""
    dropped: Counter[str] = field(default_factory=Counter)
    """How many new rows were set aside."""
    sampled_s: float = 0.0
    """What reading and writing by protobuf itself took."""

    @property
    def is_thorough(self) -> bool:
        return self.faults_max is None

    def refuse(self, rule: Rule, row_type: RowType, key: bytes, found: str) -> None:
        """Set a stored row aside."""
        self.faulty.setdefault(row_type.name, set()).add(key)
        self._add(self.stored, rule, row_type.name, shown(row_type, key), found)

    def spoil(self, rule: Rule, collection: str, key: bytes | None, text: str, found: str) -> None:
        """Set a new row aside; without a key, another row has the same or nobody knows it."""
        self.dropped[collection] += 1
        if key is not None:
            self.spoilt.setdefault(collection, set()).add(key)
        self._add(self.made, rule, collection, text, found)

    def take(self, other: Judge) -> None:
        """Take in what another found of new rows."""
        self.made.merge([other.made])
        self.dropped += other.dropped
        self.sampled_s += other.sampled_s
        for collection, keys in other.spoilt.items():
            self.spoilt.setdefault(collection, set()).update(keys)
        self._stop_if_enough()

    def read(
        self, row_type: RowType, rows: Rows, attempt: Callable[[Rows], Any], every: Callable[[Rows], list[Fault]]
    ) -> Any:  # noqa: ANN401
        """What an attempt makes of stored rows, after those that it faults were set aside."""
        return self._settle(rows, attempt, every, lambda key, f: self.refuse(f.rule, row_type, key, f.found))

    def written(self, collection: Collection, rows: Rows) -> Rows:
        """New rows that lose nothing when they are read and written again, with their columns."""

        def attempt(rest: Rows) -> Rows:
            return rest._replace(decoded=self.verified(Columns(collection), rest, Rule.ENCODE))

        def spoil(key: bytes, fault: Fault) -> None:
            self.spoil(fault.rule, collection.name, key, shown(collection, key), fault.found)

        made: Rows = self._settle(rows, attempt, lambda rest: every_fault(collection, rest, Rule.ENCODE), spoil)
        return made

    def verified(self, columns: Columns, rows: Rows, rule: Rule) -> tuple[pa.StructArray, pa.StructArray]:
        """The decoded columns of rows that lose nothing when they are written again; faults the first that does."""
        try:
            decoded = columns.decode(rows.keys, rows.values)
        except UndecodableRowError as error:
            raise Fault(_of_reading(rule), error.row, error.what) from error
        if decoded != rows.decoded:  # else it was encoded to these bytes, which therefore are written again the same
            again = columns.encode(*decoded)
            for stored, written in zip(rows[:2], again, strict=True):
                if (row := first_difference(stored, written)) is not None:
                    raise Fault(rule, row, _DIFFERS)
        began = perf_counter()
        for row in range(0, len(rows.keys), self.sample):
            fault = _fault_of(columns.collection, row, rows.keys[row].as_py(), rows.values[row].as_py(), rule)
            if fault is not None:
                raise fault
        self.sampled_s += perf_counter() - began
        return decoded

    def _settle(
        self,
        rows: Rows,
        attempt: Callable[[Rows], Any],
        every: Callable[[Rows], list[Fault]],
        put: Callable[[bytes, Fault], None],
    ) -> Any:  # noqa: ANN401
        while True:
            try:
                return attempt(rows)
            except Fault as fault:
                faults = (every(rows) if self.is_thorough else []) or [fault]
                for found in faults:
                    put(rows.keys[found.row].as_py(), found)
                rows = rows.without(found.row for found in faults)

    def _add(self, violations: Violations, rule: Rule, collection: str, key: str, found: str) -> None:
        violations.add(rule, collection, key, found)
        self._stop_if_enough()

    def _stop_if_enough(self) -> None:
        if self.faults_max is not None and self.made.counts.total() + self.stored.counts.total() >= self.faults_max:
            raise TooManyFaults


def shown(row_type: RowType, key: bytes) -> str:
    """A key as text, for people."""
    try:
        if not isinstance(row_type, Collection):
            return key.decode()
        return MessageToString(row_type.decode(key, b"")[0], as_one_line=True) or "all fields empty"
    except (DecodeError, ValueError):
        return f"bytes {key.hex()}"


def said(error: BaseException) -> str:
    return error.what if isinstance(error, CatalogError) else f"{type(error).__name__}: {error}"


def every_fault(collection: Collection, rows: Rows, rule: Rule) -> list[Fault]:
    """Every row that loses something: by protobuf itself, then by the codec."""
    keys, values = rows.keys.to_pylist(), rows.values.to_pylist()
    of_protobuf = (_fault_of(collection, row, *own, rule) for row, own in enumerate(zip(keys, values, strict=True)))
    found = {fault.row: fault for fault in of_protobuf if fault is not None}
    left = [row for row in range(len(keys)) if row not in found]
    rest, columns = rows.without(found), Columns(collection)

    def fails(low: int, high: int) -> Exception | None:
        try:
            columns.decode(rest.keys[low:high], rest.values[low:high])
        except UndecodableRowError as error:
            return error
        return None

    unread = dict(culprits(len(left), fails))
    found |= {left[row]: Fault(_of_reading(rule), left[row], said(error)) for row, error in unread.items()}
    left = [row for number, row in enumerate(left) if number not in unread]
    rest = rest.without(unread)
    again = columns.encode(*columns.decode(*rest[:2]))
    differs = pc.or_(pc.not_equal(rest.keys, again[0]), pc.not_equal(rest.values, again[1]))
    found |= {left[row]: Fault(rule, left[row], _DIFFERS) for row in pc.indices_nonzero(differs).to_pylist()}
    return [found[row] for row in sorted(found)]


def culprits(count: int, fails: Callable[[int, int], Exception | None]) -> Iterator[tuple[int, Exception]]:
    """The rows that fail by themselves, looked for by halves, in their order; `fails` tells of a range of them."""
    waiting = [(0, count)] if count else []
    while waiting:
        low, high = waiting.pop()
        error = fails(low, high)
        if error is not None and high - low == 1:
            yield low, error
        elif error is not None:
            middle = (low + high) // 2
            waiting += [(middle, high), (low, middle)]


_DIFFERS = "written again, its bytes differ"


def _of_reading(rule: Rule) -> Rule:
    """The rule that a row breaks which cannot be read at all: a new one was never written."""
    return rule if rule is Rule.ENCODE else Rule.DECODE


def _fault_of(collection: Collection, row: int, key: bytes, value: bytes, rule: Rule) -> Fault | None:
    for stored, kind in ((key, collection.key_type), (value, collection.value_type)):
        try:
            again = encode(kind.FromString(stored))
        except DecodeError as error:
            return Fault(_of_reading(rule), row, str(error))
        if again != stored:
            return Fault(rule, row, "protobuf writes other bytes for it")
    return None
