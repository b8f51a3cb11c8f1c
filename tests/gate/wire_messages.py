"""Messages for the tests of the wire judge, and what becomes of them when another type reads them.

Owns the boundary values, random messages, witnesses and the comparison of old and new. It never asks the
judge anything: what it reports is what the protobuf runtime does.
"""

from __future__ import annotations

import math
import struct
from random import Random
from typing import TYPE_CHECKING, Any, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_INT32 = (0, 1, -1, 2, 127, 128, 2**31 - 1, -(2**31))
_INT64 = (*_INT32, 2**31, 2**32, 2**63 - 1, -(2**63))
_UINT32 = (0, 1, 2, 127, 128, 2**31 - 1, 2**31, 2**32 - 1)
_UINT64 = (*_UINT32, 2**32, 2**63, 2**64 - 1)
_FLOATS = (0.0, -0.0, 1.5, -1.5, math.inf, math.nan)
_BOUNDARIES: dict[int, tuple[Any, ...]] = {
    FieldDescriptor.TYPE_BOOL: (False, True),
    FieldDescriptor.TYPE_ENUM: _INT32,
    FieldDescriptor.TYPE_INT32: _INT32,
    FieldDescriptor.TYPE_SINT32: _INT32,
    FieldDescriptor.TYPE_SFIXED32: _INT32,
    FieldDescriptor.TYPE_INT64: _INT64,
    FieldDescriptor.TYPE_SINT64: _INT64,
    FieldDescriptor.TYPE_SFIXED64: _INT64,
    FieldDescriptor.TYPE_UINT32: _UINT32,
    FieldDescriptor.TYPE_FIXED32: _UINT32,
    FieldDescriptor.TYPE_UINT64: _UINT64,
    FieldDescriptor.TYPE_FIXED64: _UINT64,
    FieldDescriptor.TYPE_FLOAT: _FLOATS,
    FieldDescriptor.TYPE_DOUBLE: (*_FLOATS, 5e-324),
    FieldDescriptor.TYPE_STRING: ("", "a", "é", "\0", "long" * 40),
    FieldDescriptor.TYPE_BYTES: (b"", b"a", b"\xff", b"\0", b"\x08\x01"),
}
_DEPTH_MAX = 3
_ABSENT_SHARE = 0.3


def descriptor(kind: type[Message]) -> Descriptor:
    """Return the descriptor of a message class."""
    return cast("Descriptor", kind.DESCRIPTOR)


def seeded(seed: int) -> Random:
    """Return a source of numbers that are the same on every run."""
    return Random(seed)  # noqa: S311 - nothing secret


def draw_messages(kind: type[Message], seed: int, count: int = 12) -> Iterator[Message]:
    """Yield the empty message and random ones, made of boundary values."""
    random = seeded(seed)
    yield kind()
    for _ in range(count):
        message = kind()
        _fill(message, random, 0)
        yield message


def reread(message: Message, new: type[Message]) -> Message:
    """Read the bytes of a message as another type."""
    return new.FromString(message.SerializeToString(deterministic=True))


def loss(message: Message, new: type[Message]) -> str | None:
    """Say what happens to the bytes of a message under the new type, or None if they survive."""
    try:
        read = reread(message, new)
    except DecodeError:
        return "does not parse"
    if _has_unknown(read):
        return "has unknown fields"
    if read.SerializeToString(deterministic=True) != message.SerializeToString(deterministic=True):
        return "is written differently"
    return None


def difference(old: Message, new: Message) -> str | None:
    """Name the first field, by number, whose presence, value or meaning is not the same in both."""
    for before in descriptor(type(old)).fields:
        after = descriptor(type(new)).fields_by_number.get(before.number)
        if after is None:
            return f"no field for {before.name}"
        if before.has_presence and not old.HasField(before.name):
            if after.has_presence and new.HasField(after.name):
                return f"presence of {before.name}"
            continue
        left, right = _singles(old, before), _singles(new, after)
        if left.keys() != right.keys():
            return f"elements of {before.name}"
        if not all(_alike(_single(before), _single(after), left[key], right[key]) for key in left):
            return f"value of {before.name}"
    return None


def witnesses(kind: type[Message], path: str) -> Iterator[Message]:
    """Yield messages whose field at the path holds each boundary value, alone and beside each other field."""
    _, name, *rest = path.split(".")
    field = descriptor(kind).fields_by_name[name]
    if _is_map(field):
        rest = rest[1:]
    values = list(witnesses(_inner_class(_single(field)), ".".join(["", *rest]))) if rest else _samples(_single(field))
    keys = _BOUNDARIES[_entry_field(field, 1).type] if _is_map(field) else (0,)
    for key in keys:
        for value in values:
            yield _with(kind, (field, value, key))
            yield _with(kind, (field, value, key), (field, value, keys[0]))
    yield _with(kind, *((field, value, key) for key in keys for value in values))
    for other in descriptor(kind).fields:
        if other is not field:
            yield _with(kind, (other, _samples(_single(other))[1], None), (field, values[1], None))
    yield kind()


def _has_unknown(message: Message) -> bool:
    if len(UnknownFieldSet(message)) > 0:
        return True
    present = (_singles(message, field).values() for field, _ in message.ListFields())
    return any(_has_unknown(value) for values in present for value in values if isinstance(value, Message))


def _alike(before: FieldDescriptor, after: FieldDescriptor, left: object, right: object) -> bool:
    if isinstance(left, Message):
        if isinstance(right, Message):
            return difference(left, right) is None
        return left.SerializeToString(deterministic=True) == _plain(right)
    if before.enum_type and after.enum_type and left in before.enum_type.values_by_number:
        return left == right and right in after.enum_type.values_by_number
    return _plain(left) == _plain(right)


def _plain(value: object) -> object:
    """Make text and bytes comparable, and floats by their bits."""
    if isinstance(value, str):
        return value.encode()
    return struct.pack("<d", value) if isinstance(value, float) else value


def _singles(message: Message, field: FieldDescriptor) -> dict[Any, Any]:
    """Return the single values of a field, by key if it is a map, else by position."""
    value = getattr(message, field.name)
    if _is_map(field):
        return dict(value)
    return dict(enumerate(value if field.is_repeated else [value]))


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _entry_field(field: FieldDescriptor, number: int) -> FieldDescriptor:
    entry = field.message_type
    assert entry is not None
    return entry.fields_by_number[number]


def _single(field: FieldDescriptor) -> FieldDescriptor:
    """Return the field that describes a single value: of a map its values, else the field itself."""
    return _entry_field(field, 2) if _is_map(field) else field


def _inner_class(field: FieldDescriptor) -> type[Message]:
    assert field.message_type is not None
    return GetMessageClass(field.message_type)


def _fill(message: Message, random: Random, depth: int) -> None:
    """Set most fields, to defaults and to enum numbers without a name as well."""
    for field in descriptor(type(message)).fields:
        if random.random() < _ABSENT_SHARE:
            continue
        for _ in range(random.randint(0, 4) if field.is_repeated else 1):
            value: Any
            if _single(field).message_type is None:
                value = random.choice(_BOUNDARIES[_single(field).type])
            else:
                value = _inner_class(_single(field))()
                if depth < _DEPTH_MAX:
                    _fill(value, random, depth + 1)
            keys: Sequence[Any] = _BOUNDARIES[_entry_field(field, 1).type] if _is_map(field) else (0,)
            _put(message, field, value, random.choice(keys))


def _with(kind: type[Message], *puts: tuple[FieldDescriptor, Any, Any]) -> Message:
    message = kind()
    for field, value, key in puts:
        _put(message, field, value, key)
    return message


def _put(message: Message, field: FieldDescriptor, value: Any, key: Any = None) -> None:  # noqa: ANN401
    """Set a field, or add to it if it is a list or a map."""
    target = getattr(message, field.name)
    if _is_map(field):
        key = _BOUNDARIES[_entry_field(field, 1).type][0] if key is None else key
        if isinstance(value, Message):
            target[key].CopyFrom(value)
        else:
            target[key] = value
    elif field.is_repeated:
        target.append(value)
    elif isinstance(value, Message):
        target.CopyFrom(value)
        target.SetInParent()
    else:
        setattr(message, field.name, value)


def _samples(field: FieldDescriptor) -> list[Any]:
    """Return the values to try for a single value of the field; the second is not the default."""
    if field.message_type is None:
        return list(_BOUNDARIES[field.type])
    kind = _inner_class(field)
    full = kind()
    for inner in descriptor(kind).fields:
        if _single(inner).message_type is None:
            _put(full, inner, _BOUNDARIES[_single(inner).type][1])
    return [kind(), full, *draw_messages(kind, seed=0, count=6)]
