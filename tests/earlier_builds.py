"""Rows that this build refuses to write and that earlier builds stored."""

from __future__ import annotations

from google.protobuf.message import Message

from catalog.engine.stash.arguments import collection_of_key
from catalog.engine.stash.registry import encode
from catalog.engine.stash.transaction import RowChange, Transaction


def store_row(tx: Transaction, key: Message, value: Message) -> None:
    """Put a row into a transaction as builds did that did not look at what it holds."""
    collection, encoded = collection_of_key(tx.registry, "store_row", key), encode(key)
    change = RowChange(collection, encoded, tx.view.get(collection.name, encoded), encode(value))
    tx._changes[collection.name, encoded] = change  # noqa: SLF001 - the verbs refuse it
