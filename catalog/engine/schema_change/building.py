"""The making of what a schema change needs: entries of an index, rows by a new key, values of a new column.

Entries are dated at the ts whose rows they were made from: whatever was written after it, removals included, has a
greater one and wins. Rows that are given a column become a base, dated likewise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.base.arrow import repeated
from catalog.engine.base.fence import Fence
from catalog.engine.log import protocol
from catalog.engine.log.protocol import DataFile, FileKind, Log
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.row_columns import decode_columns, encode_entries, encode_values, filled
from catalog.engine.schema_change.rows import RowCodec
from catalog.engine.schema_change.schema import Element

CHUNK_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Chunk:
    files: tuple[DataFile, ...]
    rows: int
    last: bytes
    """The last key that was read; that of the chunk before if there was none."""


def build_chunk(log: Log, view: LayeredView, codec: RowCodec, element: Element, *, fence: Fence, after: bytes) -> Chunk:
    """Write the entries of the rows that follow a key, as a layer dated at the state of the view."""
    made: list[pa.Table] = []
    last, count = after, 0
    for rows in _rows_after(view, codec.schema.collection, after):
        part = rows.slice(0, CHUNK_ROWS - count)
        columns = decode_columns(codec, part["key"], part["value"])
        made.append(_dated(*encode_entries(codec, element, columns, part.num_rows), view.state.version))
        last, count = part["key"][-1].as_py(), count + part.num_rows
        if count == CHUNK_ROWS:
            break
    if not count:
        return Chunk((), 0, last)
    entries = pa.concat_tables(made)
    ordered = entries.take(pc.sort_indices(entries, [("key", "ascending")]))
    return Chunk((log.write(element.collection, FileKind.LAYER, fence, ordered.combine_chunks()),), count, last)


def filled_base(log: Log, view: LayeredView, codec: RowCodec, fence: Fence) -> tuple[tuple[DataFile, ...], int]:
    """Write every row with the values of its unfinished columns, as base files; return them and the number of rows."""
    collection, files, count = codec.schema.collection, list[DataFile](), 0
    for rows in view.tables(collection):
        columns = filled(codec, decode_columns(codec, rows["key"], rows["value"]), rows.num_rows)
        values = encode_values(codec, codec.schema.primary, columns, rows.num_rows)
        dated = _dated(rows["key"].combine_chunks(), values, view.state.version)
        files.append(log.write(collection, FileKind.BASE, fence, dated))
        count += rows.num_rows
    return tuple(files), count


def _rows_after(view: LayeredView, collection: str, after: bytes) -> Iterator[pa.Table]:
    return view.tables(collection, after + b"\0") if after else view.tables(collection)


def _dated(keys: pa.Array, values: pa.Array, ts: int) -> pa.Table:
    """Return rows in the columns of a data file, all of them added at one ts."""
    count = len(keys)
    columns = [keys, values, repeated(pa.int64(), ts, count), repeated(pa.int32(), 1, count)]
    return pa.Table.from_arrays(columns, schema=protocol.ROWS)
