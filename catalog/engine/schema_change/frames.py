"""Frames that are written in bulk, as rows of a table: every column by its name, in the type that it has there.

Columns of Arrow and pandas are widened and never rounded; rows as dictionaries are read as transactions read them, so
that each sets the columns that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.schema_change.schema import TableColumn, TableSchema
from catalog.engine.schema_change.types import Value
from catalog.errors.tables import UnfitFrameError

_UINT64_DIGITS = 20


def frame_rows(schema: TableSchema, frame: Any, needed: Collection[TableColumn]) -> list[dict[int, Value]]:  # noqa: ANN401 - of several libraries
    """Return the rows of a frame by the ids of columns; refuse what does not fit the table, or lacks a needed column.

    A frame is an Arrow table, record batches or a reader of them, a frame of pandas or of another library that gives
    Arrow's data, or rows as dictionaries.
    """
    try:
        found = _arrow_table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnfitFrameError(schema.name, f"it cannot be read: {error}") from error
    if isinstance(found, pa.Table):
        return _rows_of(schema, found, needed)
    return [_row(schema, number, row, needed) for number, row in enumerate(found, 1)]


def _arrow_table(frame: Any) -> pa.Table | list[Mapping[str, Value]]:  # noqa: ANN401 - of several libraries
    """Return a frame as an Arrow table, or the dictionaries that it consists of."""
    if isinstance(frame, pa.Table):
        return frame
    if type(frame).__module__.startswith("pandas"):
        return pa.Table.from_pandas(frame, preserve_index=False)
    for method in ("to_arrow", "toArrow"):  # of Polars and others, and of Spark
        if hasattr(frame, method):
            return pa.table(getattr(frame, method)())
    if hasattr(frame, "__arrow_c_stream__") and not isinstance(frame, pa.RecordBatch):
        return pa.table(frame)
    return _joined([frame] if isinstance(frame, pa.RecordBatch | Mapping | str | bytes) else list(frame))


def _joined(parts: list[Any]) -> pa.Table | list[Mapping[str, Value]]:
    """Return record batches as a table; dictionaries are left as they are."""
    if parts and all(isinstance(part, pa.RecordBatch) for part in parts):
        return pa.Table.from_batches(parts)
    for part in parts:
        if not isinstance(part, Mapping):
            raise TypeError(f"a {type(part).__name__} is no row; pass Arrow, pandas, or a list of dictionaries")
    return parts


def _rows_of(schema: TableSchema, frame: pa.Table, needed: Iterable[TableColumn]) -> list[dict[int, Value]]:
    columns = _columns_of(schema, frame.column_names, needed)
    values = [_values(schema, column, data) for column, data in zip(columns, frame.columns, strict=True)]
    numbers = [column.id for column in columns]
    if not numbers:
        return [{} for _ in range(frame.num_rows)]
    return [dict(zip(numbers, row, strict=True)) for row in zip(*values, strict=True)]


def _row(schema: TableSchema, number: int, row: Mapping[str, Value], needed: Iterable[TableColumn]) -> dict[int, Value]:
    """Return a row that was given as a dictionary."""
    columns = _columns_of(schema, list(row), needed)
    values: dict[int, Value] = {}
    for column, value in zip(columns, row.values(), strict=True):
        try:
            values[column.id] = column.type.check(value)
        except ValueError as error:
            raise UnfitFrameError(schema.name, f"{column.name} of row {number}: {error}") from error
    return values


def _columns_of(schema: TableSchema, names: list[str], needed: Iterable[TableColumn]) -> list[TableColumn]:
    """Return the columns of names; case does not count, as in Spark."""
    known = {column.name.lower(): column for column in schema.readable if not column.hidden}
    wanted = [str(name).lower() for name in names]
    if extra := [str(name) for name in names if str(name).lower() not in known]:
        raise UnfitFrameError(schema.name, f"there is no column {', '.join(extra)}")
    if len({*wanted}) < len(wanted):
        raise UnfitFrameError(schema.name, "a column is there twice")
    columns = [known[name] for name in wanted]
    if computed := [column.name for column in columns if column.computed is not None]:
        raise UnfitFrameError(schema.name, f"{', '.join(computed)} is computed, and cannot be set")
    if missing := [column.name for column in needed if column not in columns]:
        raise UnfitFrameError(schema.name, f"the column {', '.join(missing)} is missing")
    return columns


def _values(schema: TableSchema, column: TableColumn, data: pa.ChunkedArray) -> list[Value]:
    """Return the values of a column of a frame in the type of the table: widened, never with a loss."""
    wanted, found = column.type.arrow, data.type
    try:
        if pa.types.is_dictionary(found):
            data = pc.cast(data, found.value_type)
        if not _is_alike(data.type, wanted):
            raise UnfitFrameError(schema.name, f"{column.name} is {found}, the table has {column.type.text}")
        if pa.types.is_integer(data.type) and pa.types.is_decimal(wanted):  # Arrow asks for room for every number
            data = pc.cast(data, pa.decimal128(_UINT64_DIGITS + wanted.scale, wanted.scale))
        return [column.type.check(value) for value in pc.cast(data, wanted, safe=True).to_pylist()]
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise UnfitFrameError(schema.name, f"{column.name} does not fit {column.type.text}: {error}") from error


_ALIKE: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    lambda kind: bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)),
    lambda kind: bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)),
    lambda kind: bool(pa.types.is_timestamp(kind) and kind.tz is not None),
)
"""Kinds of types whose values stand for each other without a change of meaning."""


def _is_alike(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(found) or any(kind(found) and kind(wanted) for kind in _ALIKE):
        return True
    if _is_list(found) and _is_list(wanted):
        return _is_alike(found.value_type, wanted.value_type)
    return bool(pa.types.is_integer(found) and (pa.types.is_decimal(wanted) or pa.types.is_floating(wanted)))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
