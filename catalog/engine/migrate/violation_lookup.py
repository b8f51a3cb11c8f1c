"""Lookup of the rows behind hashes that indicate a violation: found again by their bytes, and reported by key.

It runs on the driver, only when a step is about to fail, and reads a batch of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.base.arrow import binary_column
from catalog.engine.codec import bounded_batches
from catalog.engine.log.protocol import DataFile, Log, LogState
from catalog.engine.migrate.constraint_hashes import HashKind, fold, unique_kind
from catalog.engine.migrate.rewrite_task import HashFinding
from catalog.engine.migrate.row_errors import BadRows, key_text
from catalog.engine.migrate.violations import LISTED_MAX, RowRule
from catalog.engine.stash.constraint_columns import ConstraintColumns, referring_rows, row_values, unique_bytes
from catalog.engine.stash.constraints import Constraints, Reference, Unique
from catalog.engine.stash.keyed_hash import Hashes, hash_values, unpack_hashes
from catalog.engine.stash.registry import Collection, Registry
from catalog.engine.stash.view import BaseFileCache, load_view

_RULES = {"key": RowRule.KEY, "unique": RowRule.UNIQUE, "reference": RowRule.REFERENCE}


@dataclass(slots=True)
class ViolationLookup:
    log: Log
    state: LogState
    """After the step, without the files that it adds to collections that stay."""
    additions: Sequence[DataFile]
    registry: Registry
    constraints: Constraints
    hash_key: bytes
    """The key that the hashes were made with."""
    dead: Mapping[str, AbstractSet[bytes]] = field(default_factory=dict)
    """Keys of rows that were set aside before: a row that refers to one breaks no rule by that."""
    named: BadRows = field(default_factory=BadRows)

    def name(self, findings: Sequence[HashFinding], *, is_thorough: bool = False) -> BadRows:
        """Return the rows that findings stand for: all of them, or as many as are listed."""
        found: dict[HashKind, list[Hashes]] = {}
        for kind, packed, _ in findings:
            found.setdefault(kind, []).append(unpack_hashes(packed))
        for kind, parts in found.items():
            hashes = np.concatenate(parts)
            if kind.role == "key":
                self._keys(kind.name, hashes)
            elif kind.role == "unique":
                unique = next(unique for unique in self.constraints.uniques if unique_kind(unique) == kind)
                self._unique(unique, hashes)
            else:
                for reference in self.constraints.references:
                    if reference.target == kind.name:
                        self._reference(reference, hashes, is_thorough=is_thorough)
        counts = self.named.violations.counts
        for kind, _, count in () if is_thorough else findings:
            if counts[_RULES[kind.role]]:
                counts[_RULES[kind.role]] = max(counts[_RULES[kind.role]], count)
        return self.named

    def _keys(self, collection: str, hashes: Hashes) -> None:
        seen: set[bytes] = set()
        row_type = self.registry.named(collection)
        for keys, _ in self._batches(collection):
            for key in keys.filter(self._matches(keys, hashes)).to_pylist():
                if key in seen:
                    self.named.add_duplicates(row_type, [key])
                    self.named.duplicated.add(collection)
                seen.add(key)

    def _unique(self, unique: Unique, hashes: Hashes) -> None:
        first: dict[bytes, bytes] = {}
        row_type = self.registry.named(unique.collection)
        for keys, values in self._batches(unique.collection):
            common = unique_bytes(unique, ConstraintColumns.decode(row_type, keys, values))
            hits = self._matches(common, hashes)
            for key, value, same in zip(*(c.filter(hits).to_pylist() for c in (keys, values, common)), strict=True):
                if first.setdefault(same, key) != key:
                    other = f"{unique.collection} {key_text(row_type, first[same])}"
                    text = f"{_values_text(unique, row_type, key, value)} also in {other}"
                    self.named.violations.add(RowRule.UNIQUE, unique.collection, key_text(row_type, key), text)
                    self.named.exclude(unique.collection, key)

    def _reference(self, reference: Reference, hashes: Hashes, *, is_thorough: bool) -> None:
        row_type, target = self.registry.named(reference.collection), self.registry.named(reference.target)
        batches = self._batches(reference.target)
        existing = {key for keys, _ in batches for key in keys.filter(self._matches(keys, hashes)).to_pylist()}
        known = binary_column(sorted(existing | self.dead.get(reference.target, set()))).combine_chunks()

        def is_lost(referred: pa.BinaryArray) -> pa.BooleanArray:
            return pc.and_not(self._matches(referred, hashes), pc.is_in(referred, value_set=known))

        for keys, values in self._batches(reference.collection):
            columns = ConstraintColumns.decode(row_type, keys, values)
            for row, referred in referring_rows(reference, self.registry, columns, is_lost):
                key, lost = keys[row].as_py(), f"{reference.target} {key_text(target, referred)}"
                text = f"{reference.path} refers to {lost}, which does not exist"
                self.named.violations.add(RowRule.REFERENCE, reference.collection, key_text(row_type, key), text)
                self.named.exclude(reference.collection, key)
            if not is_thorough and self.named.violations.counts[RowRule.REFERENCE] >= LISTED_MAX:
                return

    def _batches(self, collection: str) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]:
        view = load_view(BaseFileCache(self.log), self.state, (collection,))
        tables = [self.log.read(file) for file in self.additions if file.collection == collection]
        for table in (*view.tables(collection), *tables):
            for batch in bounded_batches(table.select(["key", "value"])):
                yield batch["key"], batch["value"]

    def _matches(self, column: pa.BinaryArray, hashes: Hashes) -> pa.BooleanArray:
        return pa.array(np.isin(fold(hash_values(column, self.hash_key)), fold(hashes)))


def _values_text(unique: Unique, row_type: Collection, key: bytes, value: bytes) -> str:
    decoded = row_type.decode(key, value)
    texts = []
    for path in unique.paths:
        found = row_values(path, *decoded)
        texts.append(f"{path} is {found if len(found) > 1 else found[0] if found else None!r}")
    return ", ".join(texts)
