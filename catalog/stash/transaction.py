"""A transaction: reads one view, buffers changes, checks them, and commits once.

It remembers what it read and scanned. Whether it may commit after others did is decided from that: serializable. One
that is still reading when the retention of its view has ended is told to begin again, as if it had lost a race.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from google.protobuf.message import Message

from catalog.errors import KeyExistsError, NoSuchRowError, RetiredError, TransactionConflictError, ValueTypeError
from catalog.stash.collections import Collection, Registry, encode
from catalog.stash.view import View

_Key = TypeVar("_Key", bound=Message)


@dataclass(frozen=True, slots=True)
class RowChange:
    """What a transaction does to one row; `before` is what is stored, never an encoding of it."""

    collection: Collection
    key: bytes
    before: bytes | None
    after: bytes | None


@dataclass(slots=True)
class Transaction:
    registry: Registry
    view: View
    _changes: dict[tuple[str, bytes], RowChange] = field(default_factory=dict)
    _read: set[tuple[str, bytes]] = field(default_factory=set)
    _scanned: set[str] = field(default_factory=set)

    def get(self, key: Message) -> Message | None:
        """The value of a key; none if there is no such row."""
        collection = self.registry.of_key(key)
        value = self._value(collection, encode(key))
        return None if value is None else collection.value_type.FromString(value)

    def rows(self, key_type: type[_Key]) -> Iterator[tuple[_Key, Message]]:
        """Every row of the collection that a type of key names, in the order of keys."""
        collection = self.registry.of_key(key_type)
        self._scanned.add(collection.name)
        changed = {change.key: change.after for change in self._changes.values() if change.collection is collection}
        with _retried():
            for key, value in self.view.rows(collection.name, changed):
                yield key_type.FromString(key), collection.value_type.FromString(value)

    def insert(self, key: Message, value: Message) -> None:
        """Add a row whose key is new."""
        collection, stored = self._stored(key, value)
        if stored is not None:
            raise KeyExistsError(collection.name, str(key).strip())
        self._put(collection, key, value)

    def update(self, key: Message, value: Message) -> None:
        """Change the row of a key."""
        collection, stored = self._stored(key, value)
        if stored is None:
            raise NoSuchRowError(collection.name, str(key).strip())
        self._put(collection, key, value)

    def upsert(self, key: Message, value: Message) -> None:
        """Add the row of a key, or change it."""
        collection, _ = self._stored(key, value)
        self._put(collection, key, value)

    def delete(self, key: Message) -> None:
        """Remove the row of a key."""
        collection = self.registry.of_key(key)
        if self._value(collection, encode(key)) is None:
            raise NoSuchRowError(collection.name, str(key).strip())
        self._put(collection, key, None)

    @property
    def changes(self) -> tuple[RowChange, ...]:
        """What is to be committed; rows that end as they began are left out."""
        return tuple(change for change in self._changes.values() if change.before != change.after)

    def conflicts_with(self, touched: frozenset[tuple[str, bytes]]) -> bool:
        """Whether rows that others changed meanwhile are among those this transaction depends on."""
        return not touched.isdisjoint(self._read) or any(collection in self._scanned for collection, _ in touched)

    def _stored(self, key: Message, value: Message) -> tuple[Collection, bytes | None]:
        collection = self.registry.of_key(key)
        if value.DESCRIPTOR.full_name != collection.value_type.DESCRIPTOR.full_name:
            raise ValueTypeError(
                collection.name, value.DESCRIPTOR.full_name, collection.value_type.DESCRIPTOR.full_name
            )
        return collection, self._value(collection, encode(key))

    def _value(self, collection: Collection, key: bytes) -> bytes | None:
        self._read.add((collection.name, key))
        change = self._changes.get((collection.name, key))
        return change.after if change is not None else self._viewed(collection, key)

    def _put(self, collection: Collection, key: Message, value: Message | None) -> None:
        encoded = encode(key)
        known = self._changes.get((collection.name, encoded))
        before = known.before if known is not None else self._viewed(collection, encoded)
        after = None if value is None else encode(value)
        self._changes[collection.name, encoded] = RowChange(collection, encoded, before, after)

    def _viewed(self, collection: Collection, key: bytes) -> bytes | None:
        with _retried():
            return self.view.get(collection.name, key)


@contextmanager
def _retried() -> Iterator[None]:
    """What can no longer be read can be read again by the same transaction from the start, at a newer ts."""
    try:
        yield
    except RetiredError as retired:
        raise TransactionConflictError(retired.version, retired.earliest) from retired
