"""What a step must not do: the rules, and what broke one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

LISTED_MAX = 100
"""Of each rule; the others are counted."""


class Rule(StrEnum):
    DECODE = "every row can be read with the types of its version"
    UNKNOWN_FIELDS = "reading and writing a row again gives the same bytes, so no field is lost unseen"
    CHANGE = "the migration takes every row"
    ROWS = "no row is lost or added but by an action that says so"
    ENCODE = "every new row is written, and read again gives the same bytes"
    KEY = "no two rows of a collection have one key"
    UNIQUE = "unique fields stay unique"
    REFERENCE = "whatever is referred to is there"
    COLLECTION = "every collection that holds rows is one of the new version"


@dataclass(frozen=True, slots=True)
class Violation:
    rule: Rule
    collection: str
    key: str
    """Of the row, as text; empty if it is not one row's."""
    found: str

    def __str__(self) -> str:
        where = f"{self.collection} {{{self.key}}}" if self.key else self.collection
        return f"{where}: {self.found}"


@dataclass(slots=True)
class Violations:
    """Those of one task or step: the first of each rule, and how many there are."""

    listed: list[Violation] = field(default_factory=list)
    counts: Counter[Rule] = field(default_factory=Counter)

    def add(self, rule: Rule, collection: str, key: str, found: str) -> None:
        self.counts[rule] += 1
        if self.counts[rule] <= LISTED_MAX:
            self.listed.append(Violation(rule, collection, key, found))

    def merge(self, others: Iterable[Violations]) -> None:
        for other in others:
            room = Counter({rule: LISTED_MAX - self.counts[rule] for rule in Rule})
            for violation in other.listed:
                if room[violation.rule] > 0:
                    room[violation.rule] -= 1
                    self.listed.append(violation)
            self.counts.update(other.counts)

    def __bool__(self) -> bool:
        return bool(self.counts)
