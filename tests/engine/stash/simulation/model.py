"""A stash as plain dictionaries: what transactions do to rows, and what the stash must then hold.

Knows nothing of files, commits and processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from google.protobuf.message import Message

from catalog.engine.stash.registry import encode
from catalog.engine.stash.transaction import Transaction
from catalog.engine.stash.view import View
from catalog.errors import CatalogError, DanglingReferenceError, DuplicateError, KeyExistsError, NoSuchRowError
from catalog.generated import objects_pb2 as types

KEY_TYPES: dict[str, type[Message]] = {
    "setting": types.SettingKey,
    "role": types.RoleKey,
    "database": types.DatabaseKey,
    "schema": types.SchemaKey,
    "item": types.ItemKey,
}
PARENTS = {"role": "role", "schema": "database", "item": "schema"}
OWNED = {"database", "schema", "item"}


class Name(NamedTuple):
    """Which row: the model's own key."""

    collection: str
    number: int


class Row(NamedTuple):
    """What a row says, as far as the model goes; 0 refers to nothing."""

    text: str
    parent: int = 0
    owner: int = 0


Rows = Mapping[Name, Row]


class Step(NamedTuple):
    verb: str
    name: Name
    row: Row


@dataclass(frozen=True)
class Outcome:
    """What a transaction is to do, by the model."""

    error: type[CatalogError] | None = None
    changed: Mapping[Name, Row | None] = field(default_factory=dict)
    read: frozenset[Name] = frozenset()
    scanned: frozenset[str] = frozenset()

    def conflicts_with(self, other: Outcome) -> bool:
        touched = other.changed.keys()
        return bool(self.read & touched) or any(name.collection in self.scanned for name in touched)


def applied(rows: Rows, changed: Mapping[Name, Row | None]) -> Rows:
    return {name: row for name, row in {**rows, **changed}.items() if row is not None}


def violated(rows: Rows) -> type[CatalogError] | None:
    """The constraint that these rows break, if they break one."""
    named = Counter((name.collection, row.parent if name.collection in {"schema", "item"} else 0, row.text)
                    for name, row in rows.items() if name.collection != "setting")  # fmt: skip
    if any(count > 1 for count in named.values()):
        return DuplicateError
    for name, row in rows.items():
        parent = Name(PARENTS.get(name.collection, ""), row.parent)
        if (row.parent and parent not in rows) or (row.owner and Name("role", row.owner) not in rows):
            return DanglingReferenceError
    return None


def plan(rows: Rows, script: list[Step]) -> Outcome:
    """What a transaction does to these rows, if nobody comes between."""
    after: dict[Name, Row] = dict(rows)
    read, scanned = set[Name](), set[str]()
    for step in script:
        if step.verb == "scan":
            scanned.add(step.name.collection)
            continue
        read.add(step.name)
        if step.verb == "insert" and step.name in after:
            return Outcome(KeyExistsError)
        if step.verb in {"update", "delete"} and step.name not in after:
            return Outcome(NoSuchRowError)
        if step.verb == "delete":
            del after[step.name]
        elif step.verb != "get":
            after[step.name] = step.row
    changed = {name: after.get(name) for name in read if after.get(name) != rows.get(name)}
    return Outcome(violated(after) if changed else None, changed, frozenset(read), frozenset(scanned))


def act(tx: Transaction, rows: Rows, script: list[Step]) -> None:
    """Do the same to the stash; on the way it shows what the model has."""
    now: dict[Name, Row] = dict(rows)
    for step in script:
        key, value = messages(step.name, step.row)
        match step.verb:
            case "get":
                found = tx.get(key)
                assert found == (messages(step.name, now[step.name])[1] if step.name in now else None)
            case "scan":
                scanned = {encode(key): encode(value) for key, value in tx.rows(KEY_TYPES[step.name.collection])}
                assert scanned == stored(now, step.name.collection)
            case "delete":
                tx.delete(key)
                del now[step.name]
            case verb:
                {"insert": tx.insert, "update": tx.update, "upsert": tx.upsert}[verb](key, value)
                now[step.name] = step.row


@cache
def messages(name: Name, row: Row) -> tuple[Message, Message]:
    owner = types.RoleId(user=1000 + row.owner)
    match name.collection:
        case "setting":
            return types.SettingKey(name=f"s{name.number}"), types.SettingValue(value=row.text)
        case "role":
            member_of = [types.RoleId(user=1000 + row.parent)] if row.parent else []
            key = types.RoleKey(id=types.RoleId(user=1000 + name.number))
            return key, types.RoleValue(name=row.text, member_of=member_of)
        case "database":
            return types.DatabaseKey(id=name.number), types.DatabaseValue(name=row.text, owner_id=owner)
        case "schema":
            value = types.SchemaValue(name=row.text, owner_id=owner, database_id=row.parent or None)
            return types.SchemaKey(id=name.number), value
        case _:
            return types.ItemKey(id=name.number), types.ItemValue(name=row.text, schema_id=row.parent, owner_id=owner)


def stored(rows: Rows, collection: str) -> dict[bytes, bytes]:
    """Rows of the model as the stash is to hold them."""
    pairs = (messages(name, row) for name, row in rows.items() if name.collection == collection)
    return {encode(key): encode(value) for key, value in pairs}


def check_view(view: View, rows: Rows) -> None:
    """Exactly these rows, each once and in order, by scans and by key."""
    for collection in KEY_TYPES:
        found, wanted = list(view.rows(collection)), stored(rows, collection)
        assert found == sorted(wanted.items())
        assert all(view.get(collection, key) == value for key, value in wanted.items())
