"""Constraints as data: unique fields, and references between collections.

A path leads from `key` or `value` through fields; `constraint_columns` says to which values.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unique:
    """Fields in which no two rows of a collection agree: not in all of them."""

    collection: str
    paths: tuple[str, ...]
    since: int = 0
    """The first version of the types that it holds for."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that holds the `id` in the key of a row of another collection, the target."""

    collection: str
    path: str
    target: str
    since: int = 0
    """The first version of the types that it holds for."""


@dataclass(frozen=True, slots=True)
class Constraints:
    uniques: tuple[Unique, ...] = ()
    references: tuple[Reference, ...] = ()

    def at(self, version: int) -> Constraints:
        """Return those that hold for the rows of a version."""
        return Constraints(
            tuple(unique for unique in self.uniques if unique.since <= version),
            tuple(reference for reference in self.references if reference.since <= version),
        )

    def uniques_of(self, collection: str) -> tuple[Unique, ...]:
        return tuple(unique for unique in self.uniques if unique.collection == collection)

    def references_of(self, collection: str) -> tuple[Reference, ...]:
        return tuple(reference for reference in self.references if reference.collection == collection)
