"""What statements answer: plain data, as `answers` has for the other commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ColumnLine:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Queried:
    store: str
    version: int
    ts: int
    columns: tuple[ColumnLine, ...]
    rows: tuple[tuple[Any, ...], ...]
    """A value for each column; two of these may have one name."""
    more: bool
    """Whether there are more than were asked for."""


@dataclass(frozen=True, slots=True)
class Csv:
    """The same, to be read by a program that knows no JSON."""

    queried: Queried
