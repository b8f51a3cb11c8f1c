"""Merging of changes by the rule of tables: the greatest ts of a key wins; at one ts a base, then +1, then -1.

Columns are key, value, ts and rank. Few rows are merged as Python values, many by the column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.base.arrow import binary_array, binary_column, number_array, repeated
from catalog.engine.log import protocol
from catalog.engine.schema_change.tails import REMOVED, Change

Changed = tuple[bytes, Change]
_RANKS = 4
"""More than there are ranks, so that ts and rank fit one number."""


def newest_of(pieces: Sequence[pa.Table], changed: Sequence[Changed]) -> list[Changed]:
    """Return the newest change of each key of few rows, in the order of keys."""
    newest = dict(changed)
    for piece in pieces:
        for key, value, ts, rank in zip(*(column.to_pylist() for column in piece.columns), strict=True):
            change = ts, rank, value
            if key not in newest or newest[key] < change:
                newest[key] = change
    return sorted(newest.items())


def newest_rows(pieces: Sequence[pa.Table], changed: Sequence[Changed]) -> pa.Table:
    """Return the newest change of each key, in the order of keys; the keys of each piece are unique and in order."""
    tables = [*pieces, *([_columns(changed)] if changed else [])]
    if len(tables) == 1:
        return tables[0]
    rows = pa.concat_tables(tables)
    key, ts, rank = (pa.concat_arrays(rows[name].chunks) for name in ("key", "ts", "rank"))
    indices = pc.sort_indices(key)
    keys, order = key.take(indices), _numbers(indices)
    is_other = np.ones(len(order), dtype=bool)
    is_other[1:] = _numbers(pc.cast(pc.not_equal(keys[1:], keys[:-1]), pa.uint8()))
    if not is_other.all():
        score = (_numbers(ts) * _RANKS + _numbers(rank))[order]
        group = np.cumsum(is_other)
        ranked = np.lexsort((-score, group))  # the keys stay where they are, and the newest of each comes first
        order = order[ranked][is_other]
    return rows.take(_indices(order))


def live(rows: pa.Table) -> pa.Table:
    """Return the columns key and value of the rows that are there."""
    present = _present(rows)
    found = rows if pc.all(present).as_py() else rows.filter(present)
    return found.select(["key", "value"]).cast(pa.schema([protocol.ROWS.field("key"), protocol.ROWS.field("value")]))


def stored(rows: pa.Table) -> pa.Table:
    """Return changes as a data file holds them, with a diff; the value of a removed row is empty."""
    present, count = _present(rows), rows.num_rows
    is_whole = pc.all(present).as_py()
    values = rows["value"] if is_whole else pc.if_else(present, rows["value"], binary_array([b""] * count))
    diffs = pc.if_else(present, repeated(pa.int32(), 1, count), repeated(pa.int32(), -1, count))
    return pa.Table.from_arrays([rows["key"], values, rows["ts"], diffs], schema=protocol.ROWS)


def live_pairs(changed: Sequence[Changed]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and the value of the rows that are there."""
    return ((key, value) for key, (_, rank, value) in changed if rank > REMOVED)


def _present(rows: pa.Table) -> pa.ChunkedArray:
    """Tell for each change if the row is there; no scalar is made, as that would import pandas."""
    return pc.cast(rows["rank"], pa.bool_())


def _columns(changed: Sequence[Changed]) -> pa.Table:
    columns = [
        binary_column([key for key, _ in changed]),
        binary_column([value for _, (_, _, value) in changed]),
        pa.chunked_array([number_array(pa.int64(), [ts for _, (ts, _, _) in changed])]),
        pa.chunked_array([number_array(pa.int32(), [rank for _, (_, rank, _) in changed])]),
    ]
    return pa.Table.from_arrays(columns, names=["key", "value", "ts", "rank"])


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    """Return numbers that are never NULL, without the import of pandas."""
    return np.frombuffer(array.buffers()[1], str(array.type))[array.offset : array.offset + len(array)]


def _indices(order: npt.NDArray[np.uint64]) -> pa.Array:
    """Return numbers of rows as Arrow takes them, without the import of pandas."""
    numbers = np.ascontiguousarray(order, dtype=np.uint64)
    return pa.Array.from_buffers(pa.uint64(), len(numbers), [None, pa.py_buffer(numbers)])
