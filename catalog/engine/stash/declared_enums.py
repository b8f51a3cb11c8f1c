"""Enum values of a message that its types do not declare: protobuf keeps any number, and no name stands for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from catalog.engine.base.descriptors import descriptor_of, inner_field, map_entry, may_hold_enum


class UndeclaredEnumValue(NamedTuple):
    path: str
    value: int
    enum: EnumDescriptor


def undeclared_values(message: Message, path: str = "") -> Iterator[UndeclaredEnumValue]:
    """Yield each enum value that is not declared, with its path; fields without enums are not looked at."""
    for member, enum, numbers in _members(descriptor_of(type(message))):
        value = getattr(message, member.name)
        if enum is not None and not member.is_repeated:
            if value not in numbers:
                yield UndeclaredEnumValue(f"{path}{member.name}", value, enum)
        else:
            for place, element in _elements(message, member, value):
                own = f"{path}{member.name}{place}"
                if enum is None:
                    yield from undeclared_values(element, f"{own}.")
                elif element not in numbers:
                    yield UndeclaredEnumValue(own, element, enum)


@cache
def _members(message: Descriptor) -> tuple[tuple[FieldDescriptor, EnumDescriptor | None, frozenset[int]], ...]:
    """Return the fields that hold enums, with the declared numbers, or messages with enums."""
    found = ((member, inner_field(member)) for member in message.fields)
    return tuple(
        (member, inner.enum_type, frozenset(inner.enum_type.values_by_number if inner.enum_type else ()))
        for member, inner in found
        if may_hold_enum(inner)
    )


def _elements(message: Message, member: FieldDescriptor, value: Any) -> Iterable[tuple[str, Any]]:  # noqa: ANN401
    if map_entry(member) is not None:
        return ((f"[{key}]", value[key]) for key in value)
    if member.is_repeated:
        return ((f"[{number}]", element) for number, element in enumerate(value))
    return (("", value),) if message.HasField(member.name) else ()
