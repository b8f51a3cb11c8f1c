"""The order of rows, and the consolidation of equal ones.

Rows are compared column by column, structs field by field, lists and maps item by item as they are stored; null comes
first, and a shorter list before a longer one that begins alike. Floats are compared by their bits, so that rows which
differ in anything at all are two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

Ranks = npt.NDArray[np.uint64]

_SIGNED = {16: np.int16, 32: np.int32, 64: np.int64}
_UNSIGNED = {16: (np.uint16, pa.uint16()), 32: (np.uint32, pa.uint32()), 64: (np.uint64, pa.uint64())}


def consolidate(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Sort rows and add up the diffs of equal ones; drop those that add up to zero. The last column is the diff."""
    ranks = row_ranks(rows.columns[:-1], rows.num_rows)
    order = np.argsort(ranks, kind="stable")
    sorted_ranks = ranks[order]
    starts = np.flatnonzero(np.concatenate([[True], sorted_ranks[1:] != sorted_ranks[:-1]])) if len(order) else order
    diffs = np.add.reduceat(whole_numbers(rows.columns[-1])[order], starts) if len(order) else order
    left = diffs != 0
    if len(starts) == rows.num_rows and left.all() and (order[1:] > order[:-1]).all():
        return rows
    kept = rows.select(range(rows.num_columns - 1)).take(numbers(order[starts][left]))
    return pa.RecordBatch.from_arrays([*kept.columns, numbers(diffs[left])], schema=rows.schema)


def row_ranks(columns: Sequence[pa.Array], count: int) -> Ranks:
    """Return a number for each row: equal for equal rows, greater for later ones."""
    ranks = [_ranks(column) for column in columns]
    if not ranks:
        return np.zeros(count, np.uint64)
    return ranks[0] if len(ranks) == 1 else _combined(ranks)


def numbers(values: npt.NDArray[np.signedinteger]) -> pa.Int64Array:
    """Return an Arrow column over the memory of an array, built without pandas."""
    own = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(own), [None, pa.py_buffer(own)])


def whole_numbers(array: pa.Int64Array) -> npt.NDArray[np.int64]:
    return np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array)]


def bits(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Return booleans without nulls as an array."""
    end = array.offset + len(array)
    return np.unpackbits(np.frombuffer(array.buffers()[1], np.uint8), count=end, bitorder="little")[
        array.offset :
    ].astype(bool)


def _ranks(array: pa.Array) -> Ranks:
    if not len(array):
        return np.zeros(0, np.uint64)
    if types.is_struct(array.type):
        # A flattened member is null wherever the struct is: what lies there under a null says nothing.
        ranks = row_ranks(array.flatten(), len(array))
    elif types.is_list(array.type):
        ranks = _sequence_ranks(array, row_ranks([array.values], len(array.values)))
    elif types.is_map(array.type):
        ranks = _sequence_ranks(array, row_ranks([array.keys, array.items], len(array.keys)))
    elif types.is_floating(array.type):
        ranks = _dense(_ordered_bits(array))
    else:
        ranks = _dense(array)
    if array.null_count:
        ranks = np.where(bits(array.is_valid()), ranks + np.uint64(1), np.uint64(0))
    return ranks


def _dense(array: pa.Array) -> Ranks:
    return np.frombuffer(pc.rank(array, sort_keys="ascending", tiebreaker="dense").buffers()[1], np.uint64)


def _combined(ranks: Sequence[Ranks]) -> Ranks:
    order = np.lexsort(ranks[::-1])
    new = np.zeros(len(order), np.uint64)
    for own in ranks:
        in_order = own[order]
        new[1:] |= in_order[1:] != in_order[:-1]
    combined = np.empty(len(order), np.uint64)
    combined[order] = np.cumsum(new, dtype=np.uint64)
    return combined


def _sequence_ranks(array: pa.ListArray, items: Ranks) -> Ranks:
    """Rank sequences by the bytes of their items' ranks, which compare alike."""
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    sequences = pa.Array.from_buffers(
        pa.large_binary(),
        len(array),
        [None, pa.py_buffer(offsets.astype(np.int64) * 8), pa.py_buffer(items.astype(">u8"))],
    )
    return _dense(sequences)


def _ordered_bits(array: pa.Array) -> pa.Array:
    """Return floats as numbers of the same order, each of them different: -0.0 before 0.0, and every NaN by itself."""
    width = array.type.bit_width
    unsigned, type_ = _UNSIGNED[width]
    raw = np.frombuffer(array.buffers()[1], unsigned)[array.offset : array.offset + len(array)]
    negative = raw.view(_SIGNED[width]) < 0
    top = unsigned(1 << (width - 1))
    return pa.Array.from_buffers(type_, len(array), [None, pa.py_buffer(np.where(negative, ~raw, raw | top))])
