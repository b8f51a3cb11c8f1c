"""Prints: 16 bytes that stand for a key, for the fields that must be unique, or for a row that is referred to.

What has at most 15 bytes stands for itself, anything longer is hashed, so equal prints are all but certainly equal
bytes; whatever is decided by them is confirmed on the bytes. Made column by column: a step makes several for each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from catalog.codec import codec_for, fit
from catalog.stash.collections import Registry
from catalog.stash.constraints import Constraints, Reference, Unique

Prints = npt.NDArray[np.uint64]
"""Two numbers for each print."""

Numbers = npt.NDArray[np.uint64]

_BYTES = 16
_MIXED_MAX = 256
"""Longer elements are few, and hashed one by one."""
_LENGTH_BITS = np.uint64(56)
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
_FACTORS = (np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0xD6E8FEB86659FD93))
_SHIFT = np.uint64(32)
_FOLD = np.uint64(0x9E3779B97F4A7C15)
_ABSENT = b"~"


@dataclass(frozen=True, slots=True)
class Kind:
    """What prints are of: the keys of a collection, a unique constraint, or references that lead to a collection."""

    role: str
    name: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The prints to be made of the rows of one collection."""

    keys: bool = False
    uniques: tuple[Unique, ...] = ()
    references: tuple[Reference, ...] = ()

    @classmethod
    def all_of(cls, constraints: Constraints, collection: str) -> Wanted:
        return cls(True, constraints.uniques_of(collection), constraints.references_of(collection))  # noqa: FBT003

    def __bool__(self) -> bool:
        return bool(self.keys or self.uniques or self.references)

    @property
    def decoded(self) -> bool:
        """Whether the bytes of the keys do not suffice."""
        return bool(self.uniques or self.references)


def key_kind(collection: str) -> Kind:
    return Kind("key", collection)


def unique_kind(unique: Unique) -> Kind:
    return Kind("unique", f"{unique.collection}({', '.join(unique.paths)})")


def reference_kind(target: str) -> Kind:
    return Kind("reference", target)


def printed(
    wanted: Wanted,
    collection: str,
    registry: Registry,
    keys: pa.BinaryArray,
    decoded: tuple[pa.StructArray, pa.StructArray] | None,
) -> dict[Kind, list[Prints]]:
    """The prints of some rows of a collection; decoded columns are needed for more than keys."""
    made: dict[Kind, list[Prints]] = {}
    if wanted.keys:
        made[key_kind(collection)] = [print_bytes(keys)]
    if decoded is not None:
        for unique in wanted.uniques:
            made[unique_kind(unique)] = [print_bytes(unique_bytes(unique, *decoded))]
        for reference in wanted.references:
            found = print_bytes(referred_bytes(reference, registry, *decoded))
            made.setdefault(reference_kind(reference.target), []).append(found)
    return made


def print_bytes(column: pa.BinaryArray) -> Prints:
    """A print for each element of a column of bytes, none of which is null."""
    count = len(column)
    made = np.zeros((count, 2), np.uint64)
    if not count:
        return made
    words, starts, lengths = _words(column)
    short = lengths < _BYTES
    rows = np.flatnonzero(short)
    made[rows, 0] = _word(words, starts[rows], lengths[rows], 0)
    made[rows, 1] = _word(words, starts[rows], lengths[rows], 1) | (lengths[rows].astype(np.uint64) << _LENGTH_BITS)
    rows = np.flatnonzero(~short & (lengths <= _MIXED_MAX))
    if len(rows):
        made[rows] = _mixed(words, starts[rows], lengths[rows])
    for row in np.flatnonzero(lengths > _MIXED_MAX):
        made[row] = np.frombuffer(blake2b(column[int(row)].as_py(), digest_size=_BYTES).digest(), np.uint64)
    return made


def _words(column: pa.BinaryArray) -> tuple[Numbers, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The eight bytes that begin at each byte of a column, and where its elements begin and how long they are."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    padded = np.zeros(ends[-1] - ends[0] + _BYTES, np.uint8)
    if ends[-1] > ends[0]:
        padded[:-_BYTES] = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    words: Numbers = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
    return words, ends[:-1] - ends[0], np.diff(ends)


def _word(words: Numbers, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], number: int) -> Numbers:
    """A word of each element, zero beyond its end."""
    left = np.clip(lengths - 8 * number, 0, 8)
    found: Numbers = words[np.minimum(starts + 8 * number, len(words) - 1)] & _MASKS[left]
    return found


def _mixed(words: Numbers, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Prints:
    """Two independent 64-bit hashes of each element, word by word."""
    made = np.empty((len(starts), 2), np.uint64)
    with np.errstate(over="ignore"):
        for lane, factor in enumerate(_FACTORS):
            mixed = lengths.astype(np.uint64) * factor
            for number in range(-(-int(lengths.max()) // 8)):
                going = lengths > 8 * number
                stirred = (mixed ^ _word(words, starts, lengths, number)) * factor
                mixed = np.where(going, stirred ^ (stirred >> _SHIFT), mixed)
            mixed = (mixed ^ (mixed >> _SHIFT)) * _FACTORS[1 - lane]
            made[:, lane] = mixed ^ (mixed >> _SHIFT)
    return made


def unique_bytes(unique: Unique, key: pa.StructArray, value: pa.StructArray) -> pa.BinaryArray:
    """For each row what two rows that collide have in common: every field, told apart from its neighbours."""
    parts = []
    for path in unique.paths:
        column = follow(path, key, value)
        if types.is_list(column.type) or types.is_struct(column.type):
            raise TypeError(f"{path} of {unique.collection} holds no single value that could be unique")
        text = column if types.is_binary(column.type) else column.cast(pa.string()).cast(pa.binary())
        if not (types.is_integer(column.type) or types.is_boolean(column.type)):
            size = pc.binary_length(text).cast(pa.string()).cast(pa.binary())
            text = pc.binary_join_element_wise(size, text, b":")
        parts.append(pc.fill_null(text, _ABSENT))
    return pc.binary_join_element_wise(*parts, b"|") if len(parts) > 1 else parts[0]


def referred_bytes(
    reference: Reference, registry: Registry, key: pa.StructArray, value: pa.StructArray
) -> pa.BinaryArray:
    """The keys of the rows that these rows refer to, most of them once only."""
    found = _distinct(follow(reference.path, key, value, flat=True).drop_null())
    return target_keys(reference, registry, found)


def target_keys(reference: Reference, registry: Registry, identities: pa.Array) -> pa.BinaryArray:
    """The keys of the rows that have these identities."""
    codec = codec_for(registry.named(reference.target).key_type.DESCRIPTOR)
    field = codec.schema.field("id")
    return codec.encode(pa.StructArray.from_arrays([fit(identities, field.type, reference.path)], fields=[field]))


def follow(path: str, key: pa.StructArray, value: pa.StructArray, *, flat: bool = False) -> pa.Array:
    """The field that a path leads to; `flat` goes on through lists, and then rows are no longer told apart."""
    side, *fields = path.split(".")
    found: pa.Array = key if side == "key" else value
    for name in fields:
        if flat and types.is_list(found.type):
            found = found.flatten()
        found = pc.struct_field(found, name)
    return found.flatten() if flat and types.is_list(found.type) else found


def fold(prints: Prints) -> npt.NDArray[np.uint64]:
    """One number for each print, to divide and to sort them by."""
    with np.errstate(over="ignore"):
        mixed: npt.NDArray[np.uint64] = (prints[:, 0] ^ (prints[:, 1] * _FOLD)) * _FOLD
    return mixed ^ (mixed >> np.uint64(29))


def doubled(prints: Prints) -> Prints:
    """Those that are there more than once, each of them once."""
    folded = np.sort(fold(prints))
    twice = folded[1:][folded[1:] == folded[:-1]]
    if not len(twice):
        return prints[:0]
    suspects = np.ascontiguousarray(prints[np.isin(fold(prints), twice)])
    found, counts = np.unique(suspects, axis=0, return_counts=True)
    return found[counts > 1]


def missing(needed: Prints, present: Prints) -> Prints:
    """Those needed that are not present, each of them once."""
    if not len(needed):
        return needed
    if not len(present):
        return np.unique(needed, axis=0)
    folded = fold(present)
    order = np.argsort(folded)
    place = np.minimum(np.searchsorted(folded[order], fold(needed)), len(order) - 1)
    there = (present[order[place]] == needed).all(axis=1)
    return np.unique(needed[~there], axis=0)


def as_prints(packed: Any) -> Prints:  # noqa: ANN401 - whatever has a buffer
    return np.frombuffer(packed, np.uint64).reshape(-1, 2)


def _distinct(array: pa.Array) -> pa.Array:
    """The same values, each as good as once; that saves most of the work where many rows refer to few."""
    if not types.is_struct(array.type):
        return array.unique() if not types.is_nested(array.type) else array
    leaves = _leaves(array)
    if leaves is None or not len(array):
        return array
    table = pa.table([*leaves, pa.array(np.arange(len(array)))], names=[*map(str, range(len(leaves))), "row"])
    first = table.group_by(table.column_names[:-1]).aggregate([("row", "min")])["row_min"]
    return array.take(first.combine_chunks())


def _leaves(array: pa.StructArray) -> list[pa.Array] | None:
    """The plain columns that together tell the structs apart; none if there are lists among them."""
    found: list[pa.Array] = [array.is_valid()]
    for member in array.flatten():
        if types.is_struct(member.type):
            inside = _leaves(member)
            if inside is None:
                return None
            found += inside
        elif types.is_nested(member.type):
            return None
        else:
            found.append(member)
    return found
