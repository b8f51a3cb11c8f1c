"""`catalog debug compact`: one base file instead of many files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.tools.compact import compact_store

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class Compacted:
    store: str
    ts: int
    collections: tuple[str, ...]
    files_before: int
    files_after: int


def compact(run: Invocation, *, collections: Sequence[str]) -> CommandResult:
    """Merge the files of each collection, beside the present leader."""
    place = run.target.place
    done = compact_store(place, collections)
    return CommandResult(Compacted(place.uri, done.ts, done.collections, done.files_before, done.files_after))
