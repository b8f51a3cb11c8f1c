"""Rows that break a rule: an error of one row, and all errors of a task or of a step, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from google.protobuf.message import DecodeError

from catalog.engine.migrate.row_types import RowType
from catalog.engine.migrate.violations import RowRule, Violations
from catalog.engine.stash import registry
from catalog.engine.stash.registry import Collection

Keys = dict[str, set[bytes]]
"""The keys of rows, by collection."""


class RowError(NamedTuple):
    """One row that breaks a rule."""

    rule: RowRule
    row: int
    """Its number in the batch."""
    key: bytes | None
    """None if its key cannot be encoded."""
    found: str


@dataclass(slots=True)
class BadRows:
    """Rows that break a rule, which are left out of the files of a step."""

    violations: Violations = field(default_factory=Violations)
    set_aside: Counter[str] = field(default_factory=Counter)
    """The number of rows, by collection."""
    keys: Keys = field(default_factory=dict)
    """Their keys, except where a good row has the same key."""
    duplicated: set[str] = field(default_factory=set)
    """Collections whose files hold a key more than once."""

    def add(self, row_type: RowType, errors: Iterable[RowError]) -> None:
        for error in errors:
            text = "" if error.key is None else key_text(row_type, error.key)
            self.violations.add(error.rule, row_type.name, text, error.found)
            self.set_aside[row_type.name] += 1
            if error.key is not None:
                self.keys.setdefault(row_type.name, set()).add(error.key)

    def add_duplicates(self, row_type: RowType, keys: Iterable[bytes]) -> None:
        """Add rows whose key another row has, which is kept."""
        for key in keys:
            self.violations.add(RowRule.KEY, row_type.name, key_text(row_type, key), "two rows have this key")
            self.set_aside[row_type.name] += 1

    def exclude(self, collection: str, key: bytes) -> None:
        """Set a row aside; a row that breaks two rules counts once."""
        keys = self.keys.setdefault(collection, set())
        if key not in keys:
            keys.add(key)
            self.set_aside[collection] += 1

    def merge(self, other: BadRows) -> None:
        self.violations.merge([other.violations])
        self.set_aside += other.set_aside
        add_keys(self.keys, other.keys)
        self.duplicated |= other.duplicated

    def __bool__(self) -> bool:
        return bool(self.violations)


def add_keys(keys: Keys, more: Mapping[str, AbstractSet[bytes]]) -> None:
    """Add keys to those of the same collections."""
    for collection, own in more.items():
        keys.setdefault(collection, set()).update(own)


def key_text(row_type: RowType, key: bytes) -> str:
    """Return a key as JSON in one line; rows of before protobuf have it as it is stored."""
    try:
        if not isinstance(row_type, Collection):
            return key.decode()
        return registry.key_text(row_type.key_type.FromString(key))
    except (DecodeError, ValueError):
        return f"bytes {key.hex()}"
