"""Names of tables: the items of the catalog, in its stash.

A table goes by the id of its item. Only creating, dropping and renaming a table touch both logs; what is done to an
item is the same if it is done twice, so that whoever carries a change on need not know how far it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from catalog.engine.schema_change.plan import ItemChange, ItemVerb
from catalog.engine.stash.registry import Collection
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.errors import DuplicateError, TransactionConflictError
from catalog.errors.tables import RefusedChangeError, TableExistsError

DEFAULT_SCHEMA = "public"
_TABLE = 1
"""The kind of an item that is a table."""


class Names(Protocol):
    def canonical(self, name: str) -> str:
        """Return a name as it is kept: with that of its schema."""

    def table_id(self, name: str) -> int | None:
        """Return the id of the table of a name; none if there is none."""

    def new_id(self) -> int:
        """Return an id for a new table."""

    def apply(self, change: ItemChange) -> None:
        """Add, remove or rename the item of a table."""

    def undo(self, change: ItemChange) -> None:
        """Take back what `apply` did, if it did it."""


@dataclass(frozen=True, slots=True)
class StashNames:
    """The items of a stash that has the collections `schema` and `item`."""

    stash: Stash

    def canonical(self, name: str) -> str:
        schema, _, own = name.rpartition(".")
        return f"{schema or DEFAULT_SCHEMA}.{own}".lower()

    def table_id(self, name: str) -> int | None:
        self.stash.refresh()
        schema, own = self._parts(name)
        for key, value in self._items():
            if value.name.lower() == own and value.kind == _TABLE and value.schema_id == self._schema_id(schema):
                return int(key.id)
        return None

    def new_id(self) -> int:
        return self.stash.allocate("item", 1)

    def apply(self, change: ItemChange) -> None:
        def edit(transaction: Transaction) -> None:
            match change.verb:
                case ItemVerb.INSERT:
                    self._insert(transaction, change)
                case ItemVerb.DELETE:
                    self._delete(transaction, change.id)
                case ItemVerb.RENAME:
                    self._rename(transaction, change.id, change.name)

        self._commit(change, edit)

    def undo(self, change: ItemChange) -> None:
        def edit(transaction: Transaction) -> None:
            match change.verb:
                case ItemVerb.INSERT:
                    self._delete(transaction, change.id)
                case ItemVerb.RENAME:
                    self._rename(transaction, change.id, change.was)
                case ItemVerb.DELETE:
                    pass  # it is visible by then, and no longer undone

        self._commit(change, edit)

    def _insert(self, transaction: Transaction, change: ItemChange) -> None:
        schema, own = self._parts(change.name)
        item = self.stash.registry.named("item")
        key: Any = item.key_type(id=change.id)
        if transaction.get(key) is not None:
            return
        number, owner = self._schema(schema)
        value: Any = item.value_type(schema_id=number, name=own, kind=_TABLE)
        value.owner_id.CopyFrom(owner)
        transaction.insert(key, value)

    def _delete(self, transaction: Transaction, number: int) -> None:
        item, comment = self.stash.registry.named("item"), self.stash.registry.named("comment")
        key: Any = item.key_type(id=number)
        if transaction.get(key) is None:
            return
        for own in list(_comments(transaction, comment, number)):
            transaction.delete(own)
        transaction.delete(key)

    def _rename(self, transaction: Transaction, number: int, name: str) -> None:
        item = self.stash.registry.named("item")
        schema, own = self._parts(name)
        key: Any = item.key_type(id=number)
        value: Any = transaction.get(key)
        if value is not None:
            value.name, value.schema_id = own, self._schema(schema)[0]
            transaction.update(key, value)

    def _commit(self, change: ItemChange, edit: Callable[[Transaction], None]) -> None:
        """Commit an edit of an item, again if others changed what it depends on."""
        while True:
            try:
                with self.stash.transaction() as transaction:
                    edit(transaction)
            except TransactionConflictError:
                continue
            except DuplicateError as error:
                raise TableExistsError(change.name) from error
            return

    def _parts(self, name: str) -> tuple[str, str]:
        schema, _, own = self.canonical(name).rpartition(".")
        return schema, own

    def _schema(self, name: str) -> tuple[int, Any]:
        """Return the id and the owner of a schema."""
        for key, value in self._rows("schema"):
            if value.name.lower() == name:
                return int(key.id), value.owner_id
        raise RefusedChangeError(name, "there is no such schema", "create the schema first, or name another one")

    def _schema_id(self, name: str) -> int | None:
        return next((int(key.id) for key, value in self._rows("schema") if value.name.lower() == name), None)

    def _items(self) -> Iterator[tuple[Any, Any]]:
        return self._rows("item")

    def _rows(self, name: str) -> Iterator[tuple[Any, Any]]:
        collection = self.stash.registry.named(name)
        return (collection.decode(key, value) for key, value in self.stash.view().rows(name))


def table_items(stash: Stash) -> dict[int, str] | None:
    """Return the names of the items that are tables by id; none if the catalog knows no items."""
    collection = stash.registry.by_name.get("item")
    if collection is None:
        return None
    found: Iterator[tuple[Any, Any]] = (collection.decode(key, value) for key, value in stash.view().rows("item"))
    return {int(key.id): str(value.name) for key, value in found if value.kind == _TABLE}


def _comments(transaction: Transaction, comment: Collection, number: int) -> Iterator[Any]:
    for key, _ in transaction.rows(comment.key_type):
        own: Any = key
        if own.WhichOneof("object") == "item_id" and own.item_id == number:
            yield own
