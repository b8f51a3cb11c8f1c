"""Rows of a table by the column: decoded and encoded by ptars, many at once.

The same bytes as `rows` reads and writes one by one; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.codec import codec_for
from catalog.engine.schema_change.evaluation import evaluate_batch
from catalog.engine.schema_change.rows import KeyCodec, RowCodec
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableColumn

Columns = Mapping[int, pa.Array]
"""The values of rows by the ids of columns, in the types that readers see."""


def decode_columns(codec: RowCodec, keys: pa.Array, values: pa.Array) -> dict[int, pa.Array]:
    """Return the columns of stored rows; columns that came after a row was written have their initial default."""
    found = _decoded(codec.key_codec(codec.schema.primary), keys)
    message, columns = codec.value_columns
    stored = codec_for(message.DESCRIPTOR).decode(_binary(values))
    written = stored.field(0)
    for name, column in columns:
        held = column.type.to_logical(stored.field(name))
        if column.initial_default is not None:
            early = pc.and_(held.is_null(), pc.less(written, pa.scalar(column.since, written.type)))
            held = pc.if_else(early, pa.scalar(column.initial_default, held.type), held)
        found[column.id] = held
    return found


def encode_entries(codec: RowCodec, element: Element, columns: Columns, count: int) -> tuple[pa.Array, pa.Array]:
    """Return the keys and values of rows in the collection of an index, or of a primary key."""
    key = codec.key_codec(element)
    keys = _encoded(key.message, key.columns, columns, count)
    if element.kind is ElementKind.PRIMARY:
        return keys, encode_values(codec, element, columns, count)
    if not element.stored:
        return keys, pa.repeat(pa.scalar(b"", pa.binary()), count)
    message, stored = codec.stored_columns(element)
    return keys, _encoded(message, stored, columns, count)


def encode_values(codec: RowCodec, element: Element, columns: Columns, count: int) -> pa.Array:
    """Return the values of rows, under the version that every writer knows."""
    message, own = codec.value_columns if element.id == codec.schema.primary.id else codec.whole_columns(element)
    return _encoded(message, own, columns, count, version=codec.schema.min)


def filled(codec: RowCodec, columns: Columns, count: int) -> dict[int, pa.Array]:
    """Return columns with the values of unfinished and computed ones."""
    after = dict(columns)
    for column in codec.schema.written:
        if column.up is not None and column.state is not State.PUBLIC:
            after[column.id] = evaluate_batch(column.up, after, count)
    for column in codec.schema.written:
        if column.computed is not None:
            after[column.id] = evaluate_batch(column.computed, after, count)
    return after


def _decoded(codec: KeyCodec, keys: pa.Array) -> dict[int, pa.Array]:
    stored = codec_for(codec.message.DESCRIPTOR).decode(_binary(keys))
    return {column.id: column.type.to_logical(stored.field(name)) for name, column in codec.columns}


def _encoded(
    message: type, columns: Sequence[tuple[str, TableColumn]], values: Columns, count: int, version: int | None = None
) -> pa.Array:
    codec = codec_for(message.DESCRIPTOR)  # type: ignore[attr-defined]
    by_name = dict(columns)
    arrays = []
    for field in codec.type:
        column = by_name.get(field.name)
        if column is not None and column.id in values:
            arrays.append(column.type.to_stored_array(values[column.id]))
        elif version is not None and column is None and field.name == "_schema":
            arrays.append(pa.repeat(pa.scalar(version, field.type), count))
        else:
            arrays.append(pa.nulls(count, field.type))
    return codec.encode(pa.StructArray.from_arrays(arrays, fields=list(codec.type)))


def _binary(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
