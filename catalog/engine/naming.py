"""Which rows broke a rule that prints say is broken: found again on the bytes, and named.

Runs only when a step is about to fail, on the driver, a run of files at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from catalog.codec import bounded_batches
from catalog.engine.judging import shown
from catalog.engine.made import Named
from catalog.engine.prints import (
    Kind,
    Prints,
    as_prints,
    fold,
    follow,
    print_bytes,
    referred_bytes,
    unique_bytes,
    unique_kind,
)
from catalog.engine.tasks import Found
from catalog.engine.types import Columns
from catalog.engine.violations import LISTED_MAX, Rule
from catalog.log.protocol import DataFile, Log, State
from catalog.stash.collections import Registry
from catalog.stash.constraints import Constraints, Reference, Unique, referred_keys
from catalog.stash.view import Bases, load_view


@dataclass(slots=True)
class Naming:
    log: Log
    state: State
    """After the step, without what it adds beside rows that stay."""
    additions: Sequence[DataFile]
    registry: Registry
    constraints: Constraints
    dead: Mapping[str, AbstractSet[bytes]] = field(default_factory=dict)
    """Keys of rows that were set aside before: whatever refers to them breaks no rule of its own."""
    named: Named = field(default_factory=Named)

    def name(self, findings: Sequence[Found], *, is_thorough: bool = False) -> Named:
        """The rows that findings by prints turn out to be: all of them, or as many as are listed."""
        found: dict[Kind, list[Prints]] = {}
        for kind, packed, _ in findings:
            found.setdefault(kind, []).append(as_prints(packed))
        for kind, parts in found.items():
            prints = np.concatenate(parts)
            if kind.role == "key":
                self._keys(kind.name, prints)
            elif kind.role == "unique":
                unique = next(unique for unique in self.constraints.uniques if unique_kind(unique) == kind)
                self._unique(unique, prints)
            else:
                for reference in self.constraints.references:
                    if reference.target == kind.name:
                        self._reference(reference, prints, is_thorough=is_thorough)
        counts = self.named.violations.counts
        for kind, _, count in () if is_thorough else findings:
            rule = {"key": Rule.KEY, "unique": Rule.UNIQUE, "reference": Rule.REFERENCE}[kind.role]
            if counts[rule]:
                counts[rule] = max(counts[rule], count)
        return self.named

    def _keys(self, collection: str, prints: Prints) -> None:
        seen: set[bytes] = set()
        kind = self.registry.named(collection)
        for keys, _ in self._batches(collection):
            for key in keys.filter(_matches(print_bytes(keys), prints)).to_pylist():
                if key in seen:
                    self.named.violations.add(Rule.KEY, collection, shown(kind, key), "two rows have this key")
                    self.named.set_aside[collection] += 1
                    self.named.doubled.add(collection)
                seen.add(key)

    def _unique(self, unique: Unique, prints: Prints) -> None:
        first: dict[bytes, bytes] = {}
        kind = self.registry.named(unique.collection)
        for keys, values in self._batches(unique.collection):
            decoded = Columns(kind).decode(keys, values)
            common = unique_bytes(unique, *decoded)
            hits = _matches(print_bytes(common), prints)
            fields = [follow(path, *decoded).filter(hits).to_pylist() for path in unique.paths]
            for key, same, *own in zip(*(c.filter(hits).to_pylist() for c in (keys, common)), *fields, strict=True):
                if first.setdefault(same, key) != key:
                    told = ", ".join(f"{path} is {found!r}" for path, found in zip(unique.paths, own, strict=True))
                    told = f"{told} also in {unique.collection} {{{shown(kind, first[same])}}}"
                    self.named.violations.add(Rule.UNIQUE, unique.collection, shown(kind, key), told)
                    self.named.spoil(unique.collection, key)

    def _reference(self, reference: Reference, prints: Prints, *, is_thorough: bool) -> None:
        kind, target = self.registry.named(reference.collection), self.registry.named(reference.target)
        wanted = {bytes(row.tobytes()) for row in prints}
        there = {key for keys, _ in self._batches(reference.target) for key in _with_prints(keys, prints)}
        there |= self.dead.get(reference.target, set())
        for keys, values in self._batches(reference.collection):
            if not _with_prints(referred_bytes(reference, self.registry, *Columns(kind).decode(keys, values)), prints):
                continue
            for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
                for referred in referred_keys(reference, self.registry, *kind.decode(key, value)):
                    print_ = print_bytes(pa.array([referred], pa.binary())).tobytes()
                    if print_ in wanted and referred not in there:
                        told = f"{reference.path} refers to {reference.target} {{{shown(target, referred)}}}, which is not there"  # noqa: E501
                        self.named.violations.add(Rule.REFERENCE, reference.collection, shown(kind, key), told)
                        self.named.spoil(reference.collection, key)
            if not is_thorough and self.named.violations.counts[Rule.REFERENCE] >= LISTED_MAX:
                return

    def _batches(self, collection: str) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]:
        view = load_view(Bases(self.log), self.state, (collection,))
        tables = [self.log.read(file) for file in self.additions if file.collection == collection]
        for table in (*view.tables(collection), *tables):
            for batch in bounded_batches(table.select(["key", "value"])):
                yield batch["key"], batch["value"]


def _matches(prints: Prints, wanted: Prints) -> pa.BooleanArray:
    return pa.array(np.isin(fold(prints), fold(wanted)))


def _with_prints(keys: pa.BinaryArray, prints: Prints) -> list[bytes]:
    found: list[bytes] = keys.filter(_matches(print_bytes(keys), prints)).to_pylist()
    return found
