"""What may stand beside what: unique fields and references between collections, as data.

A path leads from `key` or `value` through fields; where a field is repeated it leads to each element, and where one is
absent it ends in nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from google.protobuf.message import Message

from catalog.stash.collections import Collection, Registry, encode


@dataclass(frozen=True, slots=True)
class Unique:
    """No two rows of a collection agree in all of these."""

    collection: str
    paths: tuple[str, ...]
    since: int = 0
    """The version of the types that it begins to hold at."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Whatever stands at the path is the `id` in the key of a row of another collection."""

    collection: str
    path: str
    target: str
    since: int = 0
    """The version of the types that it begins to hold at."""


@dataclass(frozen=True, slots=True)
class Constraints:
    uniques: tuple[Unique, ...] = ()
    references: tuple[Reference, ...] = ()

    def at(self, version: int) -> Constraints:
        """Those that hold for the rows of a version."""
        return Constraints(
            tuple(unique for unique in self.uniques if unique.since <= version),
            tuple(reference for reference in self.references if reference.since <= version),
        )

    def uniques_of(self, collection: str) -> tuple[Unique, ...]:
        return tuple(unique for unique in self.uniques if unique.collection == collection)

    def references_of(self, collection: str) -> tuple[Reference, ...]:
        return tuple(reference for reference in self.references if reference.collection == collection)


def digest(*parts: bytes) -> bytes:
    """A 16-byte hash; parts are told apart by their lengths."""
    told_apart = b"".join([piece for part in parts for piece in (len(part).to_bytes(8, "little"), part)])
    return blake2b(told_apart, digest_size=16).digest()


def unique_digest(unique: Unique, key: Message, value: Message) -> bytes:
    """What two rows that collide have in common."""
    return digest(*(repr([_plain(found) for found in follow(path, key, value)]).encode() for path in unique.paths))


def referred_keys(reference: Reference, registry: Registry, key: Message, value: Message) -> Iterator[bytes]:
    """The keys of the rows that a row refers to."""
    target = registry.named(reference.target)
    for found in follow(reference.path, key, value):
        yield referred_key(target, found)


def referred_key(target: Collection, identity: object) -> bytes:
    """The key of the row with an `id`."""
    key = target.key_type()
    if isinstance(identity, Message):
        key.id.CopyFrom(identity)  # type: ignore[attr-defined]
    else:
        key.id = identity  # type: ignore[attr-defined]
    return encode(key)


def follow(path: str, key: Message, value: Message) -> Iterator[object]:
    side, *fields = path.split(".")
    return _follow(key if side == "key" else value, fields)


def _follow(message: Message, fields: list[str]) -> Iterator[object]:
    name, *rest = fields
    field = message.DESCRIPTOR.fields_by_name[name]
    if field.is_repeated:
        found = list(getattr(message, name))
    elif field.has_presence and not message.HasField(name):
        return
    else:
        found = [getattr(message, name)]
    for element in found:
        if rest:
            yield from _follow(element, rest)
        else:
            yield element


def _plain(found: object) -> object:
    return encode(found) if isinstance(found, Message) else found
