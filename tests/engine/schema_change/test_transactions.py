"""Transactions over tables: rows, their defaults and computed columns, and every kind of constraint."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from catalog.engine.schema_change.transaction import TableTransaction
from catalog.errors import (
    CatalogError,
    KeyExistsError,
    NoSuchRowError,
    TransactionEndedError,
)
from catalog.errors.tables import (
    CheckError,
    ForeignKeyError,
    NotNullError,
    RefusedChangeError,
    UniqueError,
    UnknownColumnError,
    UnknownTableError,
    ValueMismatchError,
)
from tests.engine.schema_change.accounts import CONSTRAINED
from tests.engine.schema_change.stores import Process, Row


def test_rows_are_inserted_updated_upserted_and_deleted(member: Process) -> None:
    """Columns that a call does not set keep their value, or have their default in a new row."""
    member.insert("accounts", {"id": 1, "owner": "ann"}, {"id": 2, "owner": "bob", "amount": None})
    member.write(lambda tx: tx.update("accounts", {"id": 1}, {"amount": 5}))
    member.write(lambda tx: tx.upsert("accounts", {"id": 2, "amount": 7}))
    member.write(lambda tx: tx.upsert("accounts", {"id": 3}))
    member.insert("accounts", {"id": 4})
    member.write(lambda tx: tx.delete("accounts", {"id": 4}))
    assert member.rows("accounts") == [
        {"id": 1, "owner": "ann", "amount": 5},
        {"id": 2, "owner": "bob", "amount": 7},
        {"id": 3, "owner": None, "amount": 0},
    ]


def test_a_transaction_reads_what_it_wrote(member: Process) -> None:
    """By key, by index and as a whole; others see nothing of it until it is committed."""
    member.ddl("CREATE INDEX by_owner ON accounts (owner)")
    member.insert("accounts", {"id": 1, "owner": "ann"}, {"id": 2, "owner": "bob"})
    with member.tables.transaction() as tx:
        tx.update("accounts", {"id": 1}, {"owner": "bob"})
        tx.insert("accounts", {"id": 3, "owner": "bob"})
        tx.delete("accounts", {"id": 2})
        assert tx.get("accounts", {"id": 2}) is None
        assert [row["id"] for row in tx.find("accounts", owner="bob")] == [1, 3]
        assert tx.find("accounts", owner="ann") == []
        assert [row["id"] for row in tx.rows("accounts")] == [1, 3]
        assert len(member.rows("accounts")) == 2
    assert [row["owner"] for row in member.rows("accounts")] == ["bob", "bob"]


def test_an_exception_inside_leaves_nothing(member: Process) -> None:
    """The transaction is not committed, and cannot be used afterwards."""
    before = member.store.ts
    held: list[TableTransaction] = []

    def work(tx: TableTransaction) -> None:
        tx.insert("accounts", {"id": 1})
        held.append(tx)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        member.write(work)
    assert member.store.ts == before
    with pytest.raises(TransactionEndedError):
        held[0].get("accounts", {"id": 1})


def test_a_transaction_that_changes_nothing_makes_no_commit(other: Process) -> None:
    """Setting a value that is there already is no change."""
    before = other.store.refresh()
    other.write(lambda tx: tx.update("accounts", {"id": 1}, {"amount": 10}))
    assert other.store.refresh() == before


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (lambda tx: tx.insert("accounts", {"id": 1}), KeyExistsError),
        (lambda tx: tx.update("accounts", {"id": 9}, {"amount": 1}), NoSuchRowError),
        (lambda tx: tx.delete("accounts", {"id": 9}), NoSuchRowError),
        (lambda tx: tx.insert("accounts", {"owner": "eve"}), NotNullError),
        (lambda tx: tx.insert("accounts", {"id": "one"}), ValueMismatchError),
        (lambda tx: tx.insert("accounts", {"id": 3, "colour": "red"}), UnknownColumnError),
        (lambda tx: tx.insert("accounts", {}), RefusedChangeError),
        (lambda tx: tx.get("accounts", {"owner": "ann"}), RefusedChangeError),
        (lambda tx: tx.find("accounts", owner="ann"), RefusedChangeError),
        (lambda tx: tx.get("nothing", {"id": 1}), UnknownTableError),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(
    other: Process, work: Callable[[TableTransaction], object], error: type[CatalogError]
) -> None:
    """By a typed error, before anything is written."""
    before = other.store.refresh()
    with pytest.raises(error):
        other.write(work)
    assert other.store.refresh() == before


def test_a_row_moves_to_another_key_with_all_its_values(other: Process) -> None:
    """And takes no key that another row has."""
    other.write(lambda tx: tx.update("accounts", {"id": 1}, {"id": 5}))
    assert other.rows("accounts") == [
        {"id": 2, "owner": "bob", "amount": 20},
        {"id": 5, "owner": "ann", "amount": 10},
    ]
    with pytest.raises(KeyExistsError):
        other.write(lambda tx: tx.update("accounts", {"id": 5}, {"id": 2}))


def test_a_row_that_is_deleted_and_inserted_again_keeps_nothing(other: Process) -> None:
    """It is a new row: columns that are not set have their defaults."""

    def again(tx: TableTransaction) -> None:
        tx.delete("accounts", {"id": 1})
        tx.insert("accounts", {"id": 1})

    other.write(again)
    assert other.rows("accounts")[0] == {"id": 1, "owner": None, "amount": 0}


def test_a_table_without_a_key_numbers_its_rows(member: Process) -> None:
    """Equal rows are different rows, and the number is hidden."""
    member.ddl("CREATE TABLE notes (text STRING)")
    member.insert("notes", {"text": "a"}, {"text": "a"}, {})
    assert member.rows("notes") == [{"text": "a"}, {"text": "a"}, {"text": None}]
    assert [column.name for column in member.schema("notes").columns] == ["_row", "text"]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"id": 2, "code": "b"}, NotNullError),
        ({"id": 2, "code": "b", "price": 100}, CheckError),
        ({"id": 2, "code": "a", "price": 1}, UniqueError),
        ({"id": 2, "code": "b", "price": 1, "account": 9}, ForeignKeyError),
        ({"id": 2, "code": "b", "price": 1, "gross": 2}, RefusedChangeError),
    ],
)
def test_every_kind_of_constraint_is_enforced(other: Process, row: Row, error: type[CatalogError]) -> None:
    """A row that violates one is refused with all of its transaction."""
    other.ddl(CONSTRAINED)
    other.insert("orders", {"id": 1, "code": "a", "price": 1, "account": 1})
    before = other.store.ts
    with pytest.raises(error):
        other.insert("orders", {"id": 3, "price": 5}, row)
    assert other.store.ts == before


def test_nulls_pass_unique_check_and_foreign_key(other: Process) -> None:
    """As in SQL: NULLs differ, and what is not known violates nothing."""
    other.ddl(CONSTRAINED, "ALTER TABLE orders ALTER COLUMN price DROP NOT NULL")
    other.insert("orders", {"id": 1}, {"id": 2})
    assert [row["gross"] for row in other.rows("orders")] == [None, None]


def test_a_row_that_is_referred_to_stays(other: Process) -> None:
    """Unless the row that refers to it goes in the same transaction."""
    other.ddl(CONSTRAINED)
    other.insert("orders", {"id": 1, "price": 1, "account": 1})
    with pytest.raises(ForeignKeyError):
        other.write(lambda tx: tx.delete("accounts", {"id": 1}))
    with pytest.raises(ForeignKeyError):
        other.write(lambda tx: tx.update("accounts", {"id": 1}, {"id": 7}))

    def both(tx: TableTransaction) -> None:
        tx.delete("accounts", {"id": 1})
        tx.delete("orders", {"id": 1})

    other.write(both)
    assert other.rows("orders") == []


def test_a_transaction_is_judged_as_a_whole(other: Process) -> None:
    """Values of a unique column may change places, and a child may come before its parent."""
    other.ddl(CONSTRAINED)
    other.insert("orders", {"id": 1, "code": "a", "price": 1}, {"id": 2, "code": "b", "price": 1})

    def swap(tx: TableTransaction) -> None:
        tx.update("orders", {"id": 1}, {"code": "b", "account": 8})
        tx.update("orders", {"id": 2}, {"code": "a"})
        tx.insert("accounts", {"id": 8})

    other.write(swap)
    assert [(row["code"], row["account"]) for row in other.rows("orders")] == [("b", 8), ("a", None)]


def test_a_computed_column_follows_every_write(other: Process) -> None:
    """Also a write that sets only the columns it is computed from."""
    other.ddl(CONSTRAINED)
    other.insert("orders", {"id": 1, "price": "9.90"})
    other.write(lambda tx: tx.update("orders", {"id": 1}, {"price": 20}))
    assert other.rows("orders")[0]["gross"] == Decimal("21.00")


def test_rows_are_found_by_a_computed_column(other: Process) -> None:
    """Although it cannot be set."""
    other.ddl(CONSTRAINED, "CREATE INDEX by_gross ON orders (gross)")
    other.insert("orders", {"id": 1, "price": 2})
    with other.tables.transaction() as tx:
        assert [row["id"] for row in tx.find("orders", gross=3)] == [1]


def test_several_tables_change_in_one_commit(other: Process) -> None:
    """All of it is at one ts, and nothing of it before."""
    other.ddl("CREATE TABLE log (id BIGINT, text STRING, PRIMARY KEY (id))")

    def work(tx: TableTransaction) -> None:
        tx.update("accounts", {"id": 1}, {"amount": 0})
        tx.insert("log", {"id": 1, "text": "emptied"})

    ts = other.write(work)
    assert other.rows("log", ts - 1) == []
    assert (other.rows("accounts", ts - 1)[0]["amount"], other.rows("accounts", ts)[0]["amount"]) == (10, 0)
