"""Hashes of keys, unique values and references: made by the tasks of a step, and compared where equal ones meet.

`constraint_columns` says which bytes are hashed, and `keyed_hash` how; all tasks of a step share one key. A violation
that hashes indicate is confirmed on the bytes before it is reported. That they indicate none rests on them alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catalog.engine.stash.constraint_columns import ConstraintColumns, referred_bytes, unique_bytes
from catalog.engine.stash.constraints import Constraints, Reference, Unique
from catalog.engine.stash.keyed_hash import Hashes, hash_values
from catalog.engine.stash.registry import Registry

_FOLD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class HashKind:
    """Origin of hashes: the keys of a collection, a unique constraint, or the references to a collection."""

    role: str
    name: str


@dataclass(frozen=True, slots=True)
class HashesNeeded:
    """Hashes to be made of the rows of one collection."""

    keys: bool = False
    uniques: tuple[Unique, ...] = ()
    references: tuple[Reference, ...] = ()

    @classmethod
    def all_of(cls, constraints: Constraints, collection: str) -> HashesNeeded:
        return cls(True, constraints.uniques_of(collection), constraints.references_of(collection))  # noqa: FBT003

    def __bool__(self) -> bool:
        return bool(self.keys or self.uniques or self.references)

    @property
    def decoded(self) -> bool:
        """Tell if rows must be decoded: the bytes of their keys do not suffice."""
        return bool(self.uniques or self.references)


def key_kind(collection: str) -> HashKind:
    return HashKind("key", collection)


def unique_kind(unique: Unique) -> HashKind:
    return HashKind("unique", f"{unique.collection}({', '.join(unique.paths)})")


def reference_kind(target: str) -> HashKind:
    return HashKind("reference", target)


def hash_columns(
    needed: HashesNeeded,
    collection: str,
    registry: Registry,
    keys: pa.BinaryArray,
    decoded: tuple[pa.StructArray, pa.StructArray] | None,
    hash_key: bytes,
) -> dict[HashKind, list[Hashes]]:
    """Return the hashes of some rows of a collection; all but those of keys need decoded columns."""
    made: dict[HashKind, list[Hashes]] = {}
    if needed.keys:
        made[key_kind(collection)] = [hash_values(keys, hash_key)]
    if decoded is not None:
        columns = ConstraintColumns(registry.named(collection), *decoded)
        for unique in needed.uniques:
            made[unique_kind(unique)] = [hash_values(unique_bytes(unique, columns), hash_key)]
        for reference in needed.references:
            _, referred = referred_bytes(reference, registry, columns)
            made.setdefault(reference_kind(reference.target), []).append(hash_values(referred.dictionary, hash_key))
    return made


def fold(hashes: Hashes) -> npt.NDArray[np.uint64]:
    """Return one number for each hash, to divide and to sort hashes by; different hashes may have the same."""
    with np.errstate(over="ignore"):
        mixed: npt.NDArray[np.uint64] = (hashes[:, 0] ^ (hashes[:, 1] * _FOLD)) * _FOLD
    return mixed ^ (mixed >> np.uint64(29))


def distinct(hashes: Hashes) -> Hashes:
    """Return each of them once; one whose `fold` another has too may be there twice."""
    ordered = _by_fold(hashes)
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[is_first]


def duplicates(hashes: Hashes) -> Hashes:
    """Return those that occur more than once, each of them once."""
    folded = np.sort(fold(hashes))
    twice = folded[1:][folded[1:] == folded[:-1]]
    if not len(twice):
        return hashes[:0]
    suspects = np.ascontiguousarray(hashes[np.isin(fold(hashes), twice)])
    found, counts = np.unique(suspects, axis=0, return_counts=True)
    return found[counts > 1]


def missing(needed: Hashes, present: Hashes) -> Hashes:
    """Return those needed that are not present, each of them once; one whose `fold` another has too may be present."""
    if not len(needed):
        return needed
    if not len(present):
        return np.unique(needed, axis=0)
    needed, present = _by_fold(needed), _by_fold(present)  # in order, searches are near each other
    place = np.minimum(np.searchsorted(fold(present), fold(needed)), len(present) - 1)
    is_present = (present[place] == needed).all(axis=1)
    return np.unique(needed[~is_present], axis=0)


def _by_fold(hashes: Hashes) -> Hashes:
    return hashes[np.argsort(fold(hashes))]
