"""What commands answer of rows as they come and go: plain data, as in `answers`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Changed:
    """One stored row, as it came or went."""

    collection: str
    key: Any
    value: Any
    ts: int
    diff: int


@dataclass(frozen=True, slots=True)
class Dump:
    store: str
    version: int
    ts: int
    rows: Iterable[Changed]
    """Made as they are asked for, once."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one commit, or rows that a feed begins with."""

    ts: int
    at_ms: int | None
    """When they were committed; none for rows."""
    rows: tuple[Changed, ...]


@dataclass(frozen=True, slots=True)
class Subscribed:
    store: str
    collection: str
    version: int
    since: int | None
    """None: it began with the rows that were there."""
    ts: int
    """Up to here everything was told."""
    changes: int
