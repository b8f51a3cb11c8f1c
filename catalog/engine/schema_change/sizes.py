"""The sizes of tables: their rows, and the files and bytes of all that they store."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.engine.log.protocol import FileKind
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.replica import schemas_of
from catalog.engine.schema_change.schema import STORING


@dataclass(frozen=True, slots=True)
class TableSize:
    name: str
    rows: int
    indexes: int
    """Those that store entries, hidden ones of constraints too."""
    files: int
    size: int
    """In bytes, of rows and entries."""


def table_sizes(view: LayeredView) -> tuple[TableSize, ...]:
    """Measure every table at a state, in the order of names; rows of layers and tails are merged to be counted."""
    found = []
    for schema in schemas_of(view).values():
        stores = [element for element in schema.elements if element.kind in STORING]
        files = [file for element in stores for file in view.files_of(element.collection)]
        rows, size = live_rows(view, schema.collection), sum(file.size for file in files)
        found.append(TableSize(schema.name, rows, len(stores) - 1, len(files), size))
    return tuple(sorted(found, key=lambda own: own.name))


def live_rows(view: LayeredView, collection: str) -> int:
    """Count the rows of a collection; a base alone says it without being read."""
    files = view.files_of(collection)
    if all(file.kind is FileKind.BASE for file in files):
        return sum(file.rows for file in files)
    return sum(part.num_rows for part in view.tables(collection))
