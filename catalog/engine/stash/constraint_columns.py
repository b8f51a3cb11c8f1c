"""Meaning of a constraint: the values at a path, the bytes that stand for unique values, the keys that are referred to.

A path leads from `key` or `value` through fields to a list of values: to every element where a field is repeated, and
to none where a field is absent. Two rows agree in a path if these lists are equal.

Every reader of constraints uses this module: transactions, fsck, migration steps, upgrade-check and undo. Each meaning
is written for columns and for one row, because reading a single row as columns takes a hundred times as long. Both
write the same bytes, which `tests/engine/stash/test_constraint_meaning.py` verifies: for each path the number of its
values, and every value as a netstring (`2*5:hello1:a`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from pyarrow import types

from catalog.engine.base.descriptors import descriptor_of, map_entry
from catalog.engine.codec import codec_for, fit
from catalog.engine.stash.constraints import Reference, Unique
from catalog.engine.stash.registry import Collection, Registry, encode

_MAP = "no constraint can hold for the map {}: its entries have no order"

Rows = npt.NDArray[np.int64]
"""Positions of rows."""


@dataclass(frozen=True, slots=True)
class ConstraintColumns:
    """Decoded rows of a collection."""

    collection: Collection
    key: pa.StructArray
    value: pa.StructArray

    @classmethod
    def decode(cls, collection: Collection, keys: pa.BinaryArray, values: pa.BinaryArray) -> ConstraintColumns:
        """Decode rows; raise UndecodableRowError if one is no row of the collection."""
        key, value = codec_for(collection.key_type.DESCRIPTOR), codec_for(collection.value_type.DESCRIPTOR)
        return cls(collection, key.decode(keys), value.decode(values))


def unique_bytes(unique: Unique, columns: ConstraintColumns) -> pa.BinaryArray:
    """Return for every row the bytes that it shares with the rows that agree with it in all paths, and no other."""
    parts = []
    for path in unique.paths:
        rows, values = values_at(path, columns)
        texts = _netstrings(_texts(values, _field_at(columns.collection, path)))
        counts = np.bincount(rows, minlength=len(columns.key))
        if (counts == 1).all():
            parts += [pa.scalar(b"1*"), texts]
        else:
            ends = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
            joined = pc.binary_join(pa.ListArray.from_arrays(ends, texts), b"")
            parts += [pa.array(counts).cast(pa.string()).cast(pa.binary()), pa.scalar(b"*"), joined]
    return pc.binary_join_element_wise(*parts, b"")


def row_unique_bytes(unique: Unique, key: Message, value: Message) -> bytes:
    """Return the `unique_bytes` of one row."""
    parts = []
    for path in unique.paths:
        found = row_values(path, key, value)
        parts.append(b"%d*" % len(found))
        parts += [b"%d:%b" % (len(text), text) for text in map(_text, found)]
    return b"".join(parts)


def referred_bytes(
    reference: Reference, registry: Registry, columns: ConstraintColumns
) -> tuple[Rows, pa.DictionaryArray]:
    """Return the keys that the rows refer to, each with the position of the row; the dictionary holds each key once."""
    rows, identities = values_at(reference.path, columns)
    places, codes = _distinct(identities)
    codec = codec_for(registry.named(reference.target).key_type.DESCRIPTOR)
    field = codec.schema.field("id")
    identity = fit(identities.take(pa.array(places)), field.type, reference.path)
    keys = codec.encode(pa.StructArray.from_arrays([identity], fields=[field]))
    return rows, pa.DictionaryArray.from_arrays(pa.array(codes), keys)


def row_referred_keys(reference: Reference, registry: Registry, key: Message, value: Message) -> Iterator[bytes]:
    """Yield the keys that one row refers to, as `referred_bytes` does."""
    target = registry.named(reference.target)
    for identity in row_values(reference.path, key, value):
        referred: Any = target.key_type()
        if isinstance(identity, Message):
            referred.id.CopyFrom(identity)
        else:
            referred.id = identity
        yield encode(referred)


def referring_rows(
    reference: Reference,
    registry: Registry,
    columns: ConstraintColumns,
    is_sought: Callable[[pa.BinaryArray], pa.BooleanArray],
) -> Iterator[tuple[int, bytes]]:
    """Yield the position of every row that refers to a sought key, with that key."""
    rows, referred = referred_bytes(reference, registry, columns)
    codes, keys = referred.indices.to_numpy(), referred.dictionary
    for place in np.flatnonzero(is_sought(keys).to_numpy(zero_copy_only=False)[codes]):
        yield int(rows[place]), keys[int(codes[place])].as_py()


def values_at(path: str, columns: ConstraintColumns) -> tuple[Rows, pa.Array]:
    """Return the values that a path leads to in all rows, in order, each with the position of its row."""
    side, *names = path.split(".")
    found: pa.Array = columns.key if side == "key" else columns.value
    rows = np.arange(len(found))
    for name in names:
        found = pc.struct_field(found, name)
        if types.is_map(found.type):
            raise TypeError(_MAP.format(name))
        if types.is_list(found.type):
            rows = rows[pc.list_parent_indices(found).to_numpy()]
            found = pc.list_flatten(found)
    if not found.null_count:
        return rows, found
    return rows[found.is_valid().to_numpy(zero_copy_only=False)], found.drop_null()


def row_values(path: str, key: object, value: object) -> list[Any]:
    """Return the values that a path leads to in one row, which may be of before protobuf."""
    side, *names = path.split(".")
    found = [key if side == "key" else value]
    for name in names:
        found = [member for each in found for member in _members(each, name)]
    return found


def is_unchanged(unique: Unique, before: ConstraintColumns, after: ConstraintColumns) -> bool:
    """Tell if every row has the same values at the paths in both."""
    for path in unique.paths:
        (old_rows, old), (new_rows, new) = values_at(path, before), values_at(path, after)
        if not np.array_equal(old_rows, new_rows) or not old.equals(new):
            return False
    return True


def _members(message: Any, name: str) -> Any:  # noqa: ANN401 - a message or an object of before protobuf
    if not isinstance(message, Message):
        found = getattr(message, name, None)
        return [each for each in (found if isinstance(found, tuple | list) else [found]) if each is not None]
    field = descriptor_of(type(message)).fields_by_name[name]
    if field.is_repeated:
        if map_entry(field) is not None:
            raise TypeError(_MAP.format(name))
        return getattr(message, name)
    return [getattr(message, name)] if not field.has_presence or message.HasField(name) else []


def _field_at(collection: Collection, path: str) -> FieldDescriptor:
    side, *names, last = path.split(".")
    message: Any = (collection.key_type if side == "key" else collection.value_type).DESCRIPTOR
    for name in names:
        message = message.fields_by_name[name].message_type
    field: FieldDescriptor = message.fields_by_name[last]
    return field


def _texts(values: pa.Array, field: FieldDescriptor) -> pa.BinaryArray:
    """Return for every value the bytes that stand for it among values of its type."""
    if field.message_type is not None:
        return codec_for(field.message_type).encode(values)
    if types.is_floating(values.type):
        doubles = values.cast(pa.float64())
        return pa.Array.from_buffers(pa.binary(8), len(doubles), doubles.buffers(), offset=doubles.offset).cast(
            pa.binary()
        )
    if types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    return values if types.is_binary(values.type) else values.cast(pa.string()).cast(pa.binary())


def _text(value: object) -> bytes:
    match value:
        case str():
            return value.encode()
        case int():  # or bool
            return b"%d" % value
        case bytes():
            return value
        case float():
            return struct.pack("<d", value)
        case Message():
            return encode(value)
        case _:
            raise TypeError(f"a field holds no {type(value).__name__}")


def _netstrings(texts: pa.BinaryArray) -> pa.BinaryArray:
    sizes = pc.binary_length(texts).cast(pa.string()).cast(pa.binary())
    return pc.binary_join_element_wise(sizes, texts, b":")


def _distinct(array: pa.Array) -> tuple[Rows, Rows]:
    """Return the position of one of all equal values, and for every value which of these it equals.

    Many rows refer to few: that saves most of the work of making keys.
    """
    codes = np.zeros(len(array), np.int64)
    for leaf in _leaves(array):
        found = pc.dictionary_encode(leaf, null_encoding="encode")
        codes = codes * (len(found.dictionary) + 1) + found.indices.to_numpy(zero_copy_only=False)
        codes = pc.dictionary_encode(pa.array(codes)).indices.to_numpy().astype(np.int64)
    places = np.empty(codes.max(initial=-1) + 1, np.int64)
    places[codes] = np.arange(len(codes))
    return places, codes


def _leaves(array: pa.Array) -> list[pa.Array]:
    """Return the plain columns that together distinguish the values; for lists their positions."""
    if types.is_struct(array.type):
        validity = [array.is_valid()] if array.null_count else []
        return [*validity, *(leaf for member in array.flatten() for leaf in _leaves(member))]
    if array.null_count == len(array):
        return []
    return [pa.array(np.arange(len(array)))] if types.is_nested(array.type) else [array]
