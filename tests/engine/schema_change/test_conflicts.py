"""Transactions that meet others: what was read and changed meanwhile is a conflict, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from catalog.engine.schema_change.transaction import TableTransaction
from catalog.engine.schema_change.types import Value
from catalog.errors import (
    TransactionConflictError,
)
from catalog.errors.tables import (
    ForeignKeyError,
    UniqueError,
)
from tests.engine.schema_change.accounts import CONSTRAINED
from tests.engine.schema_change.stores import Process

Read = Callable[[TableTransaction], object]
READS: dict[str, Read] = {
    "key": lambda tx: tx.get("accounts", {"id": 1}),
    "absent key": lambda tx: tx.get("accounts", {"id": 3}),
    "prefix": lambda tx: tx.find("accounts", owner="ann"),
    "empty prefix": lambda tx: tx.find("accounts", owner="eve"),
    "scan": lambda tx: list(tx.rows("accounts")),
}
CHANGES: dict[str, tuple[Read, set[str]]] = {
    "update": (lambda tx: tx.update("accounts", {"id": 1}, {"amount": 1}), {"key", "scan"}),
    "delete": (lambda tx: tx.delete("accounts", {"id": 1}), {"key", "prefix", "scan"}),
    "insert": (lambda tx: tx.insert("accounts", {"id": 3, "owner": "eve"}), {"absent key", "empty prefix", "scan"}),
    "other row": (lambda tx: tx.update("accounts", {"id": 2}, {"owner": "eve"}), {"empty prefix", "scan"}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("read", READS)
def test_whatever_was_read_and_changed_is_a_conflict_and_nothing_else(
    member: Process, other: Process, read: str, change: str
) -> None:
    """Keys, prefixes of indexes and whole tables, present or absent."""
    member.ddl("CREATE INDEX by_owner ON accounts (owner) INCLUDE (amount)")
    tx = other.begin()
    READS[read](tx)
    tx.insert("accounts", {"id": 50})
    member.write(CHANGES[change][0])
    is_conflict = read in CHANGES[change][1] or (read, change) == ("prefix", "update")
    if is_conflict:
        with pytest.raises(TransactionConflictError):
            other.commit(tx)
    else:
        other.commit(tx)
    assert (50 in {row["id"] for row in other.rows("accounts")}) is not is_conflict


def test_write_skew_is_impossible(member: Process, other: Process) -> None:
    """Two transactions that each read what the other one writes are not both committed."""
    one, two = member.begin(), other.begin()
    for tx, own in ((one, 1), (two, 2)):
        assert sum(_number(row["amount"]) for row in tx.rows("accounts")) == 30
        tx.update("accounts", {"id": own}, {"amount": 0})
    member.commit(one)
    with pytest.raises(TransactionConflictError):
        other.commit(two)


def test_blind_writes_of_one_row_do_not_overwrite_each_other(member: Process, other: Process) -> None:
    """The later one is refused: it was decided without knowing of the first."""
    tx = other.begin()
    tx.upsert("accounts", {"id": 1, "amount": 3})
    member.write(lambda tx: tx.upsert("accounts", {"id": 1, "amount": 4}))
    with pytest.raises(TransactionConflictError):
        other.commit(tx)


def test_two_rows_with_one_unique_value_race_for_it(member: Process, other: Process) -> None:
    """The second is refused by the row that is there by then."""
    member.ddl("CREATE UNIQUE INDEX by_owner ON accounts (owner)")
    tx = other.begin()
    tx.insert("accounts", {"id": 3, "owner": "eve"})
    member.insert("accounts", {"id": 4, "owner": "eve"})
    with pytest.raises(UniqueError):
        other.commit(tx)


def test_a_parent_and_its_child_race(member: Process, other: Process) -> None:
    """Whichever comes second is refused."""
    member.ddl(CONSTRAINED)
    child, parent = other.begin(), other.begin()
    child.insert("orders", {"id": 1, "price": 1, "account": 1})
    parent.delete("accounts", {"id": 2})
    member.write(lambda tx: tx.delete("accounts", {"id": 1}))
    member.insert("orders", {"id": 2, "price": 1, "account": 2})
    for tx in (child, parent):
        with pytest.raises(ForeignKeyError):
            other.commit(tx)


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value
