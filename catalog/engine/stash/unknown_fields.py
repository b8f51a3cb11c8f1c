"""Fields of a message that its type does not declare: a newer build made it, or a key is a copy in disguise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from catalog.engine.base.descriptors import map_entry


def has_unknown_fields(kind: type[Message], encoded: bytes) -> bool:
    """Tell if bytes hold a field that a type does not declare, at any depth. One pass in C, whatever the depth."""
    known = kind.FromString(encoded)
    known.DiscardUnknownFields()
    return known.ByteSize() != len(encoded)


def unknown_fields(message: Message, path: str = "") -> Iterator[str]:
    """Yield the path of each such field, by its number."""
    unknown: Any = UnknownFieldSet(message)  # the stubs know no iteration
    for field in unknown:
        yield f"{path}{field.field_number}"
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if (entry := map_entry(field)) is not None:
            if entry.fields_by_name["value"].message_type is not None:
                for key in value:
                    yield from unknown_fields(value[key], f"{path}{field.name}[{key}].")
        elif field.is_repeated:
            for number, element in enumerate(value):
                yield from unknown_fields(element, f"{path}{field.name}[{number}].")
        else:
            yield from unknown_fields(value, f"{path}{field.name}.")
