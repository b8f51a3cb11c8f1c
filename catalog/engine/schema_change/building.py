"""The making of what a schema change needs: entries of an index, rows by a new key, values of a new column.

Entries are dated at the ts whose rows they were made from: whatever was written after it, removals included, has a
greater one and wins. Rows that are given a column become a base, dated likewise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from catalog.engine.base.fence import Fence
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.protocol import DataFile, FileKind, Log, Row
from catalog.engine.schema_change.derive import completed, stored_row
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.rows import RowCodec
from catalog.engine.schema_change.schema import Element

CHUNK_ROWS = 50_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Expressions that fill columns know no time."""


@dataclass(frozen=True, slots=True)
class Chunk:
    files: tuple[DataFile, ...]
    rows: int
    last: bytes
    """The last key that was read; empty if there was none."""


def build_chunk(log: Log, view: LayeredView, codec: RowCodec, element: Element, *, fence: Fence, after: bytes) -> Chunk:
    """Write the entries of the rows that follow a key, as a layer dated at the state of the view."""
    ts, schema = view.state.version, codec.schema
    entries: dict[bytes, bytes] = {}
    last, count = after, 0
    for key, value in islice(_rows_after(view, schema.collection, after), CHUNK_ROWS):
        name, entry = stored_row(codec, element, codec.row(key, value))
        entries[name] = entry
        last, count = key, count + 1
    rows: list[Row] = [(key, value, ts, 1) for key, value in sorted(entries.items())]
    files = (log.write(element.collection, FileKind.LAYER, fence, rows_table(rows)),) if rows else ()
    return Chunk(files, count, last)


def filled_base(
    log: Log, view: LayeredView, codec: RowCodec, fence: Fence, rows_max: int = CHUNK_ROWS
) -> tuple[tuple[DataFile, ...], int]:
    """Write every row with the values of its unfinished columns, as base files; return them and the number of rows."""
    ts, collection = view.state.version, codec.schema.collection
    files: list[DataFile] = []
    count = 0
    stored = view.rows(collection)
    while part := list(islice(stored, rows_max)):
        rows: list[Row] = []
        for key, value in part:
            row = completed(codec.schema, codec.row(key, value), _EPOCH)
            rows.append((key, codec.value(row), ts, 1))
        files.append(log.write(collection, FileKind.BASE, fence, rows_table(rows)))
        count += len(rows)
    return tuple(files), count


def _rows_after(view: LayeredView, collection: str, after: bytes) -> Iterator[tuple[bytes, bytes]]:
    return view.rows(collection, after + b"\0") if after else view.rows(collection)
