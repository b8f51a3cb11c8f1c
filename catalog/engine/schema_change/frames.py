"""Frames that are written in bulk, as columns of a table: every column by its name, in the type that it has there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.schema_change.schema import TableColumn, TableSchema
from catalog.engine.schema_change.types import Value
from catalog.errors.tables import UnfitFrameError


def arrow_frame(frame: Any) -> pa.Table:  # noqa: ANN401 - of several libraries
    """Return a frame as an Arrow table: an Arrow table, record batches, pandas, or rows as dictionaries."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "to_arrow") or hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame.to_arrow() if hasattr(frame, "to_arrow") else frame)
    if type(frame).__module__.startswith("pandas"):
        return pa.Table.from_pandas(frame, preserve_index=False)
    found = list(frame)
    if all(isinstance(batch, pa.RecordBatch) for batch in found) and found:
        return pa.Table.from_batches(found)
    return pa.Table.from_pylist(found)


def fitted(schema: TableSchema, frame: pa.Table, needed: Iterable[TableColumn]) -> dict[int, pa.ChunkedArray]:
    """Return the columns of a frame by their ids, in the types of the table; refuse what does not fit."""
    columns: dict[int, pa.ChunkedArray] = {}
    known = {column.name.lower(): column for column in schema.readable if not column.hidden}
    extra = [name for name in frame.column_names if name.lower() not in known]
    if extra:
        raise UnfitFrameError(schema.name, f"it has no column {', '.join(extra)}")
    if len({name.lower() for name in frame.column_names}) < len(frame.column_names):
        raise UnfitFrameError(schema.name, "a column is there twice")
    for name, data in zip(frame.column_names, frame.columns, strict=True):
        column = known[name.lower()]
        if column.computed is not None:
            raise UnfitFrameError(schema.name, f"{column.name} is computed, and cannot be set")
        columns[column.id] = _cast(schema, column, data)
    if missing := [column.name for column in needed if column.id not in columns and not column.hidden]:
        raise UnfitFrameError(schema.name, f"the column {', '.join(missing)} is missing")
    return columns


def _cast(schema: TableSchema, column: TableColumn, data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in the type of the table: widened, never with a loss."""
    wanted = column.type.arrow
    if data.type == wanted:
        return data
    if not _is_alike(data.type, wanted):
        raise UnfitFrameError(schema.name, f"{column.name} is {data.type}, the table has {column.type.text}")
    try:
        return pc.cast(data, wanted, safe=True)
    except pa.ArrowInvalid as error:
        raise UnfitFrameError(schema.name, f"{column.name} does not fit {column.type.text}: {error}") from error


_ALIKE: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_list,
    lambda kind: bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_text_dictionary(kind)),
    lambda kind: bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind)),
    lambda kind: bool(pa.types.is_timestamp(kind) and kind.tz is not None),
)
"""Kinds of types whose values stand for each other without a change of meaning."""


def _is_alike(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(found) or any(kind(found) and kind(wanted) for kind in _ALIKE):
        return True
    return bool(pa.types.is_integer(found) and pa.types.is_decimal(wanted))


def _is_text_dictionary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type))


def rows_of(schema: TableSchema, columns: Mapping[int, pa.ChunkedArray]) -> list[dict[int, Value]]:
    """Return columns as rows of Python values; only columns that the frame has are set."""
    kinds = {column.id: column.type for column in schema.columns}
    numbers = list(columns)
    values = [
        [None if value is None else kinds[number].check(value) for value in columns[number].to_pylist()]
        for number in numbers
    ]
    return [dict(zip(numbers, row, strict=True)) for row in zip(*values, strict=True)]
