"""Collections: which messages are the keys and values of what, and how rows become bytes.

Knows names and types only; what is stored where, and what may stand beside what, is not its business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from google.protobuf.message import Message

from catalog.errors import UnknownCollectionError


@dataclass(frozen=True, slots=True)
class Collection:
    name: str
    key_type: type[Message]
    value_type: type[Message]

    def decode(self, key: bytes, value: bytes) -> tuple[Message, Message]:
        return self.key_type.FromString(key), self.value_type.FromString(value)


@dataclass(frozen=True, slots=True)
class Registry:
    """The collections of one version of the types."""

    by_name: Mapping[str, Collection]
    by_key: Mapping[str, Collection]

    @classmethod
    def of(cls, types: ModuleType) -> Registry:
        """Collection `x_y` is the messages `XYKey` and `XYValue`."""
        messages = types.DESCRIPTOR.message_types_by_name
        found = []
        for name in messages:
            stem = name.removesuffix("Key")
            if stem != name and f"{stem}Value" in messages:
                found.append(Collection(_snake(stem), getattr(types, name), getattr(types, f"{stem}Value")))
        return cls({c.name: c for c in found}, {c.key_type.DESCRIPTOR.full_name: c for c in found})

    def named(self, name: str) -> Collection:
        try:
            return self.by_name[name]
        except KeyError as error:
            raise UnknownCollectionError(name, tuple(sorted(self.by_name))) from error

    def of_key(self, key: Message | type[Message]) -> Collection:
        """The collection that a key, or a key's type, names."""
        descriptor = getattr(key, "DESCRIPTOR", None)
        if descriptor is None:
            raise TypeError(f"{key!r} is no message and no type of one: pass a key such as RoleKey")
        try:
            return self.by_key[descriptor.full_name]
        except KeyError as error:
            raise UnknownCollectionError(descriptor.full_name, tuple(sorted(self.by_name))) from error


def encode(message: Message) -> bytes:
    """The canonical bytes of a message."""
    return message.SerializeToString(deterministic=True)


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
