"""`catalog show`: the rows of a collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catalog.cli.answer import CommandResult
from catalog.cli.row_filter import parse_filters
from catalog.cli.store_reader import StoreReader

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class JsonRow:
    key: Any
    value: Any


@dataclass(frozen=True, slots=True)
class RowsResult:
    store: str
    collection: str
    version: int
    ts: int
    rows: tuple[JsonRow, ...]
    more: bool
    """True if the limit left rows out."""


def show(
    run: Invocation, *, collection: str, key: str | None, where: tuple[str, ...], as_of: int | None, limit: int
) -> CommandResult:
    """Read one row, or all rows that pass every test, in the order of keys."""
    reader = StoreReader.at(run.target, as_of)
    tests = parse_filters(where, reader.type_of(collection))
    view = reader.view(collection)
    if key is None:
        stored = view.rows(collection)
    else:
        wanted = reader.key_of(collection, key)
        value = view.get(collection, wanted)
        stored = iter(() if value is None else [(wanted, value)])
    found: list[JsonRow] = []
    for own_key, own_value in stored:
        row = JsonRow(*reader.as_json(collection, own_key, own_value))
        if all(test(row.key, row.value) for test in tests):
            found.append(row)
            if limit and len(found) > limit:
                break
    rows = tuple(found[:limit] if limit else found)
    return CommandResult(
        RowsResult(
            reader.look.place.uri, collection, reader.version, reader.state.version, rows, len(found) > len(rows)
        )
    )
