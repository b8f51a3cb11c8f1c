"""Questions about descriptors that more than one module asks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message


def descriptor_of(message: type[Message]) -> Descriptor:
    return cast("Descriptor", message.DESCRIPTOR)


def map_entry(member: FieldDescriptor) -> Descriptor | None:
    """Return the message of a map's entries, with the fields `key` and `value`; none if the field is no map."""
    entry = member.message_type
    return entry if entry is not None and _is_map_entry(entry) else None


def _is_map_entry(message: Descriptor) -> bool:
    """Tell if a message is the entry of a map; the options of other messages are left alone, for reading them loads
    protobuf's own types.
    """
    return bool(message.has_options and message.GetOptions().map_entry)


def inner_field(member: FieldDescriptor) -> FieldDescriptor:
    """Return the field that says what elements are: of a map that of its values, else the field itself."""
    entry = map_entry(member)
    return member if entry is None else entry.fields_by_name["value"]


def inner(member: FieldDescriptor) -> Descriptor:
    """Return the message that a field holds; raises TypeError if it holds none."""
    if member.message_type is None:
        raise TypeError(f"{member.full_name} holds no message")
    return member.message_type


def is_optional(member: FieldDescriptor) -> bool:
    """Tell if a field is marked optional, which protobuf represents as a oneof of one."""
    return member.containing_oneof is not None and len(member.containing_oneof.fields) == 1


def holds_map(message: Descriptor) -> bool:
    """Tell if a message has a map, or a message in it does."""
    return any(_is_map_entry(inside) for inside in _inside(message, set()))


@cache
def holds_enum(message: Descriptor) -> bool:
    """Tell if a message has an enum, or a message in it does."""
    return any(may_hold_enum(inner_field(member)) for member in message.fields)


def may_hold_enum(member: FieldDescriptor) -> bool:
    return member.enum_type is not None or (member.message_type is not None and holds_enum(member.message_type))


def _inside(message: Descriptor, seen: set[str]) -> Iterator[Descriptor]:
    """Yield a message and all messages in it, each once."""
    if message.full_name not in seen:
        seen.add(message.full_name)
        yield message
        for member in message.fields:
            if member.message_type is not None:
                yield from _inside(member.message_type, seen)
