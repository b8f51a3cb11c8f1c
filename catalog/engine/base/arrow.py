"""Arrow columns from Python values, built from buffers.

`pa.array` and `pa.scalar` import pandas where it is installed, which costs a process more than everything else at
start-up together.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate

from catalog.engine.base.byte_budget import split_by_size
from catalog.engine.base.lazy_arrow import pa

_CHUNK_BYTES_MAX = 1 << 30
"""Well below the limit of 32-bit offsets."""
_CODES = {"int64": "q", "int32": "i"}


def binary_column(values: Sequence[bytes]) -> pa.ChunkedArray:
    """Return a column of bytes, in chunks that no 32-bit offset limits."""
    fits = sum(map(len, values)) <= _CHUNK_BYTES_MAX
    parts = [values] if fits else split_by_size(values, len, _CHUNK_BYTES_MAX)
    return pa.chunked_array([binary_array(part) for part in parts], pa.binary())


def binary_array(
    values: Sequence[bytes], type_: pa.DataType | None = None, validity: pa.Buffer | None = None
) -> pa.Array:
    """Return an array of bytes, or of texts that are encoded already."""
    offsets = array("i", accumulate(map(len, values), initial=0))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(type_ or pa.binary(), len(values), buffers)


def single_binary(value: pa.Buffer) -> pa.BinaryArray:
    """Return an array of one value, which is not copied."""
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(array("i", [0, value.size])), value])


def number_array(type_: pa.DataType, values: Iterable[int], validity: pa.Buffer | None = None) -> pa.Array:
    """Return an array of whole numbers, or of times as whole numbers; raises OverflowError if one does not fit."""
    numbers = array(_CODES.get(str(type_), "q"), values)
    return pa.Array.from_buffers(type_, len(numbers), [validity, pa.py_buffer(numbers)])


def repeated(type_: pa.DataType, value: int, count: int) -> pa.Array:
    """Return an array of whole numbers that are all the same."""
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(array(_CODES[str(type_)], [value]) * count)])


def validity_bits(flags: Sequence[bool]) -> pa.Buffer:
    """Return a validity buffer: a bit for each value, set if it is not null."""
    found = bytearray((len(flags) + 7) // 8)
    for position, flag in enumerate(flags):
        found[position >> 3] |= flag << (position & 7)
    return pa.py_buffer(bytes(found))
