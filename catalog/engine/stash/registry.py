"""Collections: which messages are their keys and values, and how rows become bytes.

Knows names and types only; storage and constraints are elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
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

    @property
    def readers(self) -> tuple[Callable[[bytes], Message], Callable[[bytes], Message]]:
        """The functions that read a key and a value, for many rows."""
        return self.key_type.FromString, self.value_type.FromString


@dataclass(frozen=True, slots=True)
class Registry:
    """The collections of one version of the types."""

    by_name: Mapping[str, Collection]
    by_key: Mapping[str, Collection]

    @classmethod
    def of(cls, types: ModuleType) -> Registry:
        """Build the registry of a module of types: collection `x_y` is the messages `XYKey` and `XYValue`."""
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
        """Return the collection that a key, or a key's type, names."""
        name = key.DESCRIPTOR.full_name
        try:
            return self.by_key[name]
        except KeyError as error:
            raise UnknownCollectionError(name, tuple(sorted(self.by_name))) from error


def encode(message: Message) -> bytes:
    """Return the canonical bytes of a message."""
    return message.SerializeToString(deterministic=True)


def key_text(key: Message) -> str:
    """Return a key as errors and findings show it, and the command line takes it: JSON in one line."""
    from catalog.engine.stash.json_rows import to_json  # noqa: PLC0415 - loads Arrow, and only errors need it

    return json.dumps(to_json(key), ensure_ascii=False)


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
