"""Index of the keys, unique values and references of one collection, as hashes.

It is loaded when a collection is first written to, and advanced by every commit. A value that the index finds is
looked up in the rows before an error is raised; that it finds none rests on the hashes alone, which is why they are
keyed (`keyed_hash`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catalog.engine.codec import bounded_batches
from catalog.engine.stash.constraint_columns import (
    ConstraintColumns,
    referred_bytes,
    row_referred_keys,
    row_unique_bytes,
    unique_bytes,
)
from catalog.engine.stash.constraints import Constraints, Reference, Unique
from catalog.engine.stash.keyed_hash import Hashes, hash_list, hash_value, hash_values
from catalog.engine.stash.registry import Collection, Registry

_COLUMNS_FROM_ROWS = 4096
"""Fewer rows are counted one by one, which takes less time than to load the codec."""


@dataclass(slots=True)
class ConstraintCounts:
    """Number of rows for each unique value and each key that is referred to, by hash."""

    collection: Collection
    registry: Registry
    constraints: Constraints
    uniques: dict[Unique, Counter[bytes]] = field(init=False)
    referred: dict[Reference, Counter[bytes]] = field(init=False)

    def __post_init__(self) -> None:
        name = self.collection.name
        self.uniques = {unique: Counter() for unique in self.constraints.uniques_of(name)}
        self.referred = {reference: Counter() for reference in self.constraints.references_of(name)}

    def __bool__(self) -> bool:
        """Tell if there is anything to count."""
        return bool(self.uniques or self.referred)

    def add_columns(self, columns: ConstraintColumns, diffs: npt.NDArray[np.int64]) -> None:
        """Count rows, each with its diff."""
        for unique, counts in self.uniques.items():
            _add_all(counts, hash_values(unique_bytes(unique, columns)), diffs)
        for reference, counts in self.referred.items():
            rows, found = referred_bytes(reference, self.registry, columns)
            totals = np.bincount(found.indices.to_numpy(), diffs[rows], len(found.dictionary)).astype(np.int64)
            _add_all(counts, hash_values(found.dictionary), totals)

    def add_row(self, key: bytes, value: bytes, diff: int) -> None:
        if not self:
            return
        decoded = self.collection.decode(key, value)
        for unique, counts in self.uniques.items():
            _add(counts, hash_value(row_unique_bytes(unique, *decoded)), diff)
        for reference, counts in self.referred.items():
            for referred in row_referred_keys(reference, self.registry, *decoded):
                _add(counts, hash_value(referred), diff)


@dataclass(slots=True)
class ConstraintIndex:
    """Keys of a collection, and the counts of its constraints, as of now."""

    collection: Collection
    registry: Registry
    constraints: Constraints
    keys: set[bytes] = field(default_factory=set)
    counts: ConstraintCounts = field(init=False)

    def __post_init__(self) -> None:
        self.counts = ConstraintCounts(self.collection, self.registry, self.constraints)

    def load(self, tables: Iterable[pa.Table]) -> None:
        """Add stored rows: the columns key and value; raise if one is no row of the collection."""
        for table in tables:
            if table.num_rows < _COLUMNS_FROM_ROWS:
                self.apply(zip(table["key"].to_pylist(), table["value"].to_pylist(), repeat(1)))
                continue
            self.keys.update(map(hash_value, table["key"].to_pylist()))
            for batch in bounded_batches(table) if self.counts else ():
                columns = ConstraintColumns.decode(self.collection, batch["key"], batch["value"])
                self.counts.add_columns(columns, np.ones(batch.num_rows, np.int64))

    def apply(self, rows: Iterable[tuple[bytes, bytes, int]]) -> None:
        """Add or remove rows: key, value, +1 or -1."""
        for key, value, diff in rows:
            (self.keys.add if diff > 0 else self.keys.discard)(hash_value(key))
            self.counts.add_row(key, value, diff)


def _add_all(counts: Counter[bytes], hashes: Hashes, numbers: npt.NDArray[np.int64]) -> None:
    for hashed, number in zip(hash_list(hashes), numbers.tolist(), strict=True):
        counts[hashed] = counts.get(hashed, 0) + number


def _add(counts: Counter[bytes], hashed: bytes, diff: int) -> None:
    counts[hashed] += diff
    if counts[hashed] == 0:
        del counts[hashed]
