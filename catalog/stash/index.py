"""What a collection's rows have that must be unique or be there: 16-byte hashes, and nothing of the rows themselves.

Loaded when a collection is first written to, and advanced by every commit. Equal hashes are taken for equal: at 128
bits a false alarm is less likely than a broken machine, and an alarm is confirmed on the rows before it is raised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from catalog.stash.collections import Collection, Registry
from catalog.stash.constraints import Constraints, digest, referred_keys, unique_digest
from catalog.stash.digests import Columns, reads

_COLUMNS_FROM_ROWS = 4096
"""Fewer rows are counted one by one, sooner than all is loaded that columns need."""


@dataclass(slots=True)
class Index:
    collection: Collection
    registry: Registry
    constraints: Constraints
    keys: set[bytes] = field(default_factory=set)
    uniques: tuple[Counter[bytes], ...] = ()
    referred: Counter[bytes] = field(default_factory=Counter)
    """How many references of this collection lead to each row of any."""

    def __post_init__(self) -> None:
        self.uniques = tuple(Counter() for _ in self.constraints.uniques_of(self.collection.name))

    def load(self, tables: Iterable[pa.Table]) -> None:
        """Take in rows that are there: the columns key and value."""
        in_columns = reads(self.collection, self.constraints)
        for table in tables:
            if in_columns and table.num_rows >= _COLUMNS_FROM_ROWS:
                self._load(table)
            else:
                pairs = zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
                self.apply((key, value, 1) for key, value in pairs)

    def _load(self, table: pa.Table) -> None:
        self.keys.update(map(digest, table["key"].to_pylist()))
        uniques = self.constraints.uniques_of(self.collection.name)
        references = self.constraints.references_of(self.collection.name)
        if not uniques and not references:
            return
        for columns in Columns.of(self.collection, table):
            for counter, unique in zip(self.uniques, uniques, strict=True):
                counter.update(columns.unique_digests(unique))
            for reference in references:
                for referred, count in columns.referred_counts(reference, self.registry):
                    self.referred[digest(reference.target.encode(), referred)] += count

    def apply(self, rows: Iterable[tuple[bytes, bytes, int]]) -> None:
        """Take in rows that came or went: key, value, +1 or -1."""
        for key, value, diff in rows:
            hashed = digest(key)
            if diff > 0:
                self.keys.add(hashed)
            else:
                self.keys.discard(hashed)
            self._count(key, value, diff)

    def _count(self, key: bytes, value: bytes, diff: int) -> None:
        uniques = self.constraints.uniques_of(self.collection.name)
        references = self.constraints.references_of(self.collection.name)
        if not uniques and not references:
            return
        decoded = self.collection.decode(key, value)
        for counter, unique in zip(self.uniques, uniques, strict=True):
            _add(counter, unique_digest(unique, *decoded), diff)
        for reference in references:
            for referred in referred_keys(reference, self.registry, *decoded):
                _add(self.referred, digest(reference.target.encode(), referred), diff)


def _add(counter: Counter[bytes], hashed: bytes, diff: int) -> None:
    counter[hashed] += diff
    if counter[hashed] == 0:
        del counter[hashed]
