"""Rules that a step must keep, and the violations of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

LISTED_MAX = 100
"""Violations of one rule that are listed; the others are only counted."""


class RowRule(StrEnum):
    """Rules about rows; the text is part of error messages and reports."""

    DECODE = "every row can be read with the types of its version"
    UNKNOWN_FIELDS = "a row that is read and written again gives the same bytes, so no field is lost silently"
    CHANGE = "the migration accepts every row"
    ROWS = "no row is lost or added except by an action that declares it"
    ENCODE = "every new row is written, and gives the same bytes when it is read again"
    ENUM = "every enum value of a new row is one that the types declare"
    REPEATED = "a migration makes the same rows of the same stored rows, whenever and however often it runs"
    KEY = "no two rows of a collection have the same key"
    UNIQUE = "unique fields stay unique"
    REFERENCE = "every referenced row exists"
    COLLECTION = "every collection that has rows exists in the new version"


@dataclass(frozen=True, slots=True)
class Violation:
    rule: RowRule
    collection: str
    key: str
    """The key of the row as text; empty if the violation is not that of one row."""
    found: str

    def __str__(self) -> str:
        where = f"{self.collection} {self.key}" if self.key else self.collection
        return f"{where}: {self.found}"


@dataclass(slots=True)
class Violations:
    """Violations found by one task or step: the first of each rule, and their number."""

    listed: list[Violation] = field(default_factory=list)
    counts: Counter[RowRule] = field(default_factory=Counter)

    def add(self, rule: RowRule, collection: str, key: str, found: str) -> None:
        self.counts[rule] += 1
        if self.counts[rule] <= LISTED_MAX:
            self.listed.append(Violation(rule, collection, key, found))

    def merge(self, others: Iterable[Violations]) -> None:
        for other in others:
            room = Counter({rule: LISTED_MAX - self.counts[rule] for rule in RowRule})
            for violation in other.listed:
                if room[violation.rule] > 0:
                    room[violation.rule] -= 1
                    self.listed.append(violation)
            self.counts.update(other.counts)

    def __bool__(self) -> bool:
        return bool(self.counts)
