"""Columns of random values, each a function of its row's number: any row can be computed again by itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_HALF = 32
SHARE_UNITS = 1 << 20
"""A share is a whole number of these, so that no rounding of floats decides about a row."""


def numbers(start: int, stop: int) -> pa.Array:
    if stop <= start:
        return pa.array([], pa.uint64())
    return pc.add(pc.cumulative_sum(pa.repeat(unsigned(1), stop - start)), unsigned((start - 1) % (1 << 64)))


@lru_cache(maxsize=1024)
def unsigned(number: int) -> pa.Scalar:
    return pa.scalar(number, pa.uint64())


def salt(*parts: object) -> int:
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "little")


def mixed(rows: pa.Array, salted: int) -> pa.Array:
    """Return a random number of 64 bits for each row number, by the finaliser of SplitMix64."""
    state = pc.add(pc.multiply(rows, unsigned(_STEP)), unsigned(salted))
    state = pc.multiply(pc.bit_wise_xor(state, pc.shift_right(state, unsigned(30))), unsigned(_FIRST))
    state = pc.multiply(pc.bit_wise_xor(state, pc.shift_right(state, unsigned(27))), unsigned(_SECOND))
    return pc.bit_wise_xor(state, pc.shift_right(state, unsigned(31)))


def below(hashes: pa.Array, bound: int | pa.Array) -> pa.Array:
    """Scale hashes to numbers from 0 to a bound of at most 32 bits, without the bound."""
    limit = bound if isinstance(bound, pa.Array) else unsigned(bound)
    return pc.shift_right(pc.multiply(pc.shift_right(hashes, unsigned(_HALF)), limit), unsigned(_HALF))


def modulo(rows: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(rows, pc.multiply(pc.divide(rows, unsigned(divisor)), unsigned(divisor)))


def quotient(rows: pa.Array, divisor: int) -> pa.Array:
    return pc.divide(rows, unsigned(divisor))


def plus(rows: pa.Array, number: int) -> pa.Array:
    return pc.add(rows, unsigned(number))


def joined(*parts: pa.Array | str) -> pa.Array:
    """Concatenate texts row by row; numbers become decimal."""
    texts = [part if isinstance(part, str) else part.cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*texts, "")


def only(mask: pa.Array, column: pa.Array) -> pa.Array:
    """Return the column where the mask is true, and null elsewhere."""
    if not types.is_nested(column.type):
        return pc.if_else(mask, column, pa.scalar(None, column.type))
    return column.take(pc.if_else(mask, numbers(0, len(column)), pa.scalar(None, pa.uint64())))


def lists(columns: Sequence[pa.Array], masks: Sequence[pa.Array]) -> pa.ListArray:
    """Return a list per row: the elements of those columns whose mask is true there, in the order of the columns."""
    count, width = len(masks[0]), len(columns)
    positions = numbers(0, count * width)
    places = pc.add(pc.multiply(modulo(positions, width), unsigned(count)), quotient(positions, width))
    chosen = places.filter(pa.concat_arrays(masks).take(places))
    lengths = masks[0].cast(pa.int32())
    for mask in masks[1:]:
        lengths = pc.add(lengths, mask.cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    return pa.ListArray.from_arrays(offsets, pa.concat_arrays(columns).take(chosen))
