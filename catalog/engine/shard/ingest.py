"""Rows of users, prepared for a shard: found by the names of their columns, checked, sorted, in bounded batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from catalog.engine.base.arrow import number_array, repeated
from catalog.engine.codec import bounded_batches
from catalog.engine.codec.columns import fit
from catalog.engine.shard.batches import inner_rows
from catalog.engine.shard.row_order import consolidate
from catalog.engine.shard.schema import DIFF, Schema
from catalog.errors import UnfitColumnError

Diffs: TypeAlias = Sequence[int] | pa.Array | pa.ChunkedArray


def incoming(
    schema: Schema,
    rows: pa.Table | pa.RecordBatch,
    diffs: Diffs | None,
    bytes_max: int,
) -> list[pa.RecordBatch]:
    """Return batches that are consolidated each; none is empty.

    Raises UnfitColumnError for a column that is missing, of another type, or null where it must not be.
    """
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    table = table.append_column(pa.field(DIFF, pa.int64(), nullable=False), _diffs(table.num_rows, diffs))
    return list(_parts(schema, table, bytes_max))


def _parts(schema: Schema, table: pa.Table, bytes_max: int) -> Iterator[pa.RecordBatch]:
    target = pa.struct(list(schema.outer))
    for part in bounded_batches(table, bytes_max=bytes_max, rows_max=None):
        *columns, diffs = fit(part.to_struct_array(), target, "rows").flatten()
        consolidated = consolidate(inner_rows(schema.inner, columns, diffs))
        if consolidated.num_rows:
            yield consolidated


def _diffs(count: int, diffs: Diffs | None) -> pa.Int64Array:
    if diffs is None:
        return repeated(pa.int64(), 1, count)
    if len(diffs) != count:
        raise UnfitColumnError(DIFF, f"{len(diffs)} numbers", f"one for each of {count} rows")
    if isinstance(diffs, pa.ChunkedArray):
        diffs = pa.concat_arrays(diffs.chunks) if diffs.num_chunks else ()
    return fit(diffs, pa.int64(), DIFF) if isinstance(diffs, pa.Array) else number_array(pa.int64(), diffs)
