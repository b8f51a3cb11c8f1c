"""A transaction: reads one view, buffers changes, and commits once.

It records the rows that it reads and the collections that it scans, so that its commit is serializable. A transaction
that still reads when the retention of its view has ended gets a conflict, and can be run again. It refuses, before
anything is buffered, what no row may hold: fields and enum values that the types do not declare, and changes that are
the engine's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from google.protobuf.message import Message

from catalog.engine.base.process import require_opener
from catalog.engine.base.public_call import PublicMembers, public_call
from catalog.engine.stash.arguments import collection_of_key, collection_of_key_type, require_value
from catalog.engine.stash.declared_enums import undeclared_values
from catalog.engine.stash.engine_rows import ENGINE_COLLECTIONS, require_program_change
from catalog.engine.stash.registry import Collection, Registry, encode, key_text
from catalog.engine.stash.unknown_fields import has_unknown_fields, unknown_fields
from catalog.engine.stash.view import TailRow, View
from catalog.errors import (
    KeyExistsError,
    NoSuchRowError,
    RetiredError,
    TransactionConflictError,
    TransactionEndedError,
    UndeclaredEnumError,
    UnknownFieldsError,
    ValueTypeError,
)

_Key = TypeVar("_Key", bound=Message)


@dataclass(frozen=True, slots=True)
class RowChange:
    """The change of one row; `before` is the bytes that are stored, never a new encoding of them."""

    collection: Collection
    key: bytes
    before: bytes | None
    after: bytes | None


def tail_rows(changes: tuple[RowChange, ...], ts: int) -> dict[str, list[TailRow]]:
    """Return the tail rows of changes by collection, removed rows before added ones."""
    rows: dict[str, list[TailRow]] = {change.collection.name: [] for change in changes}
    for change in changes:
        if change.before is not None:
            rows[change.collection.name].append((change.key, change.before, ts, -1))
    for change in changes:
        if change.after is not None:
            rows[change.collection.name].append((change.key, change.after, ts, 1))
    return rows


@dataclass(slots=True)
class Transaction(PublicMembers):
    elsewhere = dict.fromkeys(
        ("commit", "rollback", "abort", "close"),
        "leave its block: it commits there, or rolls back if an exception leaves it",
    )
    registry: Registry
    view: View
    protected: frozenset[str] = ENGINE_COLLECTIONS
    """Collections whose rows only the engine writes; none in the engine's own transactions."""
    _changes: dict[tuple[str, bytes], RowChange] = field(default_factory=dict)
    _read: set[tuple[str, bytes]] = field(default_factory=set)
    _scanned: set[str] = field(default_factory=set)
    _has_ended: bool = False
    _opened_by: int = field(default_factory=os.getpid)

    @public_call
    def get(self, key: Message) -> Message | None:
        """Return the value of a key; none if there is no such row."""
        row = self._row("tx.get", key)
        return None if row.stored is None else row.collection.value_type.FromString(row.stored)

    @public_call
    def rows(self, key_type: type[_Key]) -> Iterator[tuple[_Key, Message]]:
        """Return every row of the collection that a type of key names, in the order of keys."""
        self.require_open("tx.rows")
        return self._rows(key_type, collection_of_key_type(self.registry, "tx.rows", key_type))

    @public_call
    def insert(self, key: Message, value: Message) -> None:
        """Add a row whose key is new."""
        row = self._row("tx.insert", key)
        after = self._value("tx.insert", row, key, value)
        if row.stored is not None:
            raise KeyExistsError(row.collection.name, key_text(key))
        self._put(row, after)

    @public_call
    def update(self, key: Message, value: Message) -> None:
        """Change the row of a key."""
        row = self._row("tx.update", key)
        after = self._value("tx.update", row, key, value)
        if row.stored is None:
            raise NoSuchRowError(row.collection.name, key_text(key))
        self._put(row, after)

    @public_call
    def upsert(self, key: Message, value: Message) -> None:
        """Add the row of a key, or change it."""
        row = self._row("tx.upsert", key)
        self._put(row, self._value("tx.upsert", row, key, value))

    @public_call
    def delete(self, key: Message) -> None:
        """Remove the row of a key."""
        row = self._row("tx.delete", key)
        if row.stored is None:
            raise NoSuchRowError(row.collection.name, key_text(key))
        self._put(row, None)

    def end(self) -> None:
        """Refuse every further call: the transaction was committed, or nothing of it was."""
        self._has_ended = True

    def require_open(self, call: str) -> None:
        """Refuse a call after the end of the transaction, and any in a forked child."""
        require_opener(self._opened_by, "this transaction")
        if self._has_ended:
            raise TransactionEndedError(call)

    @property
    def changes(self) -> tuple[RowChange, ...]:
        """Return the changes to be committed; a row that ends as it began is left out."""
        return tuple(change for change in self._changes.values() if change.before != change.after)

    def conflicts_with(self, touched: frozenset[tuple[str, bytes]]) -> bool:
        """Tell if rows that others changed meanwhile are among those this transaction depends on."""
        return not touched.isdisjoint(self._read) or any(collection in self._scanned for collection, _ in touched)

    def _rows(self, key_type: type[_Key], collection: Collection) -> Iterator[tuple[_Key, Message]]:
        self._scanned.add(collection.name)
        changed = {change.key: change.after for change in self._changes.values() if change.collection is collection}
        with _conflict_if_retired():
            for key, value in self.view.rows(collection.name, changed):
                self.require_open("tx.rows")
                yield key_type.FromString(key), collection.value_type.FromString(value)

    def _row(self, call: str, key: Message) -> _Row:
        """Return the row of a key as this transaction sees it."""
        self.require_open(call)
        collection = collection_of_key(self.registry, call, key)
        encoded = encode(key)
        self._read.add((collection.name, encoded))
        change = self._changes.get((collection.name, encoded))
        if change is not None:
            return _Row(collection, encoded, change.after)
        with _conflict_if_retired():
            stored = self.view.get(collection.name, encoded)
        if stored is None:  # else an earlier build stored such a key, and it can be read and deleted
            _require_known(collection, "key", key, encoded)
        return _Row(collection, encoded, stored)

    def _value(self, call: str, row: _Row, key: Message, value: Message) -> bytes:
        """Return the bytes of a value; refuse one that the row cannot hold."""
        require_value(row.collection, call, value)
        found, needed = value.DESCRIPTOR.full_name, row.collection.value_type.DESCRIPTOR.full_name
        if found != needed:
            raise ValueTypeError(row.collection.name, found, needed)
        if row.stored is not None:
            _require_known(row.collection, "key", key, row.key)
        encoded = encode(value)
        _require_known(row.collection, "value", key, encoded)
        _require_declared(row.collection, "key", key, key)
        _require_declared(row.collection, "value", key, value)
        return encoded

    def _put(self, row: _Row, after: bytes | None) -> None:
        change = self._changes.get((row.collection.name, row.key))
        before = row.stored if change is None else change.before
        place = self.registry, self.view, row.collection, row.key
        require_program_change(self.protected, *place, before=before, after=after)
        self._changes[row.collection.name, row.key] = RowChange(row.collection, row.key, before, after)


class _Row(NamedTuple):
    """A row as this transaction sees it."""

    collection: Collection
    key: bytes
    stored: bytes | None


@contextmanager
def _conflict_if_retired() -> Iterator[None]:
    """Raise a conflict for rows that are retired: the same transaction can read them again at a newer ts."""
    try:
        yield
    except RetiredError as retired:
        raise TransactionConflictError(retired.version, retired.earliest) from retired


def _require_known(collection: Collection, part: str, key: Message, encoded: bytes) -> None:
    """Refuse a message with fields that its type does not declare."""
    kind = collection.key_type if part == "key" else collection.value_type
    if has_unknown_fields(kind, encoded):
        fields = tuple(unknown_fields(kind.FromString(encoded)))
        raise UnknownFieldsError(collection.name, key_text(key), part, kind.DESCRIPTOR.name, fields)


def _require_declared(collection: Collection, part: str, key: Message, message: Message) -> None:
    """Refuse a message with an enum value that its type does not declare."""
    for path, value, enum in undeclared_values(message, f"{part}."):
        names = tuple(known.name for known in enum.values)
        raise UndeclaredEnumError(collection.name, key_text(key), path, value, enum.name, names)
