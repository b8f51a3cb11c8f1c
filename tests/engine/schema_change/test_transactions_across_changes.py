"""Transactions and schema changes that meet: who began before a change commits, or is refused for a reason."""

from __future__ import annotations

import pytest

from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.store import Draft
from catalog.engine.schema_change.types import Value
from catalog.errors import (
    CatalogError,
)
from catalog.errors.tables import (
    CheckError,
    ExpressionFailedError,
    NotNullError,
    SchemaChangedError,
    UniqueError,
    UnknownColumnError,
)
from tests.engine.schema_change.accounts import ACCOUNTS
from tests.engine.schema_change.stores import Disk, Process, Row


def test_a_schema_change_on_another_table_neither_aborts_nor_retries_a_writer(member: Process, other: Process) -> None:
    """Whatever the change does, the transaction is drafted once."""
    member.ddl("CREATE TABLE b (id BIGINT, v BIGINT, PRIMARY KEY (id))")
    member.insert("b", {"id": 1, "v": 1})
    tx = other.begin()
    list(tx.rows("accounts"))
    tx.update("accounts", {"id": 1}, {"amount": 3})
    member.ddl(
        "CREATE UNIQUE INDEX i ON b (v)",
        "ALTER TABLE b ADD COLUMN n BIGINT USING v + 1",
        "ALTER TABLE b ALTER COLUMN n TYPE STRING",
        "ALTER TABLE b ADD CONSTRAINT p PRIMARY KEY (v)",
        "DROP TABLE b",
    )
    drafted = 0

    def draft(replica: TablesReplica) -> Draft | None:
        nonlocal drafted
        drafted += 1
        return tx.draft(replica)

    other.store.commit(draft)
    assert drafted == 1
    assert other.rows("accounts")[0]["amount"] == 3


def test_one_schema_and_one_ts_for_a_whole_transaction(member: Process, other: Process) -> None:
    """What others define or write meanwhile is not seen."""
    tx = other.begin()
    first = list(tx.rows("accounts"))
    member.ddl("ALTER TABLE accounts RENAME COLUMN owner TO holder", "ALTER TABLE accounts ADD COLUMN n BIGINT")
    member.write(lambda tx: tx.update("accounts", {"id": 1}, {"amount": 0}))
    other.store.refresh()
    assert list(tx.rows("accounts")) == first
    assert tx.get("accounts", {"id": 1}) == first[0]
    with pytest.raises(UnknownColumnError):
        tx.update("accounts", {"id": 1}, {"holder": "eve"})


Outcome = list[Value] | type[CatalogError]
ACROSS: dict[str, tuple[str, Row, Outcome]] = {
    "add column": ("ADD COLUMN n BIGINT DEFAULT 4", {"amount": 1}, ["ann", 1, 4]),
    "add filled column": ("ADD COLUMN n BIGINT USING amount * 2", {"amount": 1}, ["ann", 1, 20]),
    "add computed column": ("ADD COLUMN n BIGINT GENERATED ALWAYS AS (amount * 2)", {"amount": 1}, ["ann", 1, 2]),
    "drop column": ("DROP COLUMN owner", {"amount": 1}, [1]),
    "drop column set": ("DROP COLUMN owner", {"owner": "eve"}, SchemaChangedError),
    "rename column": ("RENAME COLUMN owner TO holder", {"owner": "eve"}, ["eve", 10]),
    "change type": ("ALTER COLUMN amount TYPE STRING", {"owner": "eve"}, ["eve", "10"]),
    "change type set": ("ALTER COLUMN amount TYPE STRING", {"amount": 3}, ["ann", "3"]),
    "change type set using": ("ALTER COLUMN amount TYPE INT USING CAST(amount + 1 AS INT)", {"amount": 3}, ["ann", 4]),
    "change type impossible": ("ALTER COLUMN amount TYPE INT", {"amount": 2**40}, ExpressionFailedError),
    "widen": ("ALTER COLUMN small TYPE BIGINT", {"small": 3}, ["ann", 10, 3]),
    "add check": ("ADD CONSTRAINT c CHECK (amount < 50)", {"amount": 30}, ["ann", 30]),
    "add check violated": ("ADD CONSTRAINT c CHECK (amount < 50)", {"amount": 60}, CheckError),
    "set not null": ("ALTER COLUMN owner SET NOT NULL", {"owner": None}, NotNullError),
    "add unique": ("ADD CONSTRAINT u UNIQUE (owner)", {"owner": "bob"}, UniqueError),
    "set default": ("ALTER COLUMN amount SET DEFAULT 9", {"owner": "eve"}, ["eve", 10]),
    "rename table": ("RENAME TO books", {"owner": "eve"}, ["eve", 10]),
    "primary key": ("ADD CONSTRAINT p PRIMARY KEY (owner)", {"amount": 1}, SchemaChangedError),
}


@pytest.mark.parametrize("case", ACROSS)
def test_a_transaction_from_before_a_change_commits_unless_its_wish_became_impossible(
    member: Process, other: Process, case: str
) -> None:
    """Its values are those of the columns that it knew, whatever they are called and of whatever type they are now."""
    statement, values, outcome = ACROSS[case]
    if case == "widen":
        member.ddl("ALTER TABLE accounts ADD COLUMN small INT DEFAULT 1")
    tx = other.begin()
    tx.update("accounts", {"id": 1}, values)
    member.ddl(f"ALTER TABLE accounts {statement}")
    table = "books" if case == "rename table" else "accounts"
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            other.commit(tx)
    else:
        other.commit(tx)
        assert list(other.rows(table)[0].values())[1:] == outcome


def test_a_new_row_from_before_a_change_has_the_new_column_s_default(member: Process, other: Process) -> None:
    """NULL that is meant stays NULL: only columns that the transaction does not know are given one."""
    tx = other.begin()
    tx.insert("accounts", {"id": 3, "amount": None})
    member.ddl("ALTER TABLE accounts ADD COLUMN n BIGINT NOT NULL DEFAULT 4")
    other.commit(tx)
    assert other.rows("accounts")[2] == {"id": 3, "owner": None, "amount": None, "n": 4}


def test_a_lookup_by_an_index_that_is_gone_runs_again(member: Process, other: Process) -> None:
    """Nobody can tell any more if it would find the same rows."""
    member.ddl("CREATE INDEX by_owner ON accounts (owner)")
    tx = other.begin()
    assert len(tx.find("accounts", owner="ann")) == 1
    tx.insert("accounts", {"id": 3})
    member.ddl("DROP INDEX by_owner ON accounts")
    assert len(tx.find("accounts", owner="ann")) == 1, "it reads what it began with"
    with pytest.raises(SchemaChangedError):
        other.commit(tx)


def test_a_lookup_by_an_index_that_was_made_anew_runs_again(member: Process, other: Process) -> None:
    """An index of the same name over a column of another type is another index."""
    member.ddl("CREATE INDEX by_amount ON accounts (amount)")
    tx = other.begin()
    tx.find("accounts", amount=10)
    tx.insert("accounts", {"id": 3})
    member.ddl("ALTER TABLE accounts ALTER COLUMN amount TYPE STRING")
    with pytest.raises(SchemaChangedError):
        other.commit(tx)


def test_a_scan_from_before_a_primary_key_was_swapped_runs_again(member: Process, other: Process) -> None:
    """Its rows are kept elsewhere now."""
    tx = other.begin()
    list(tx.rows("accounts"))
    member.ddl("CREATE TABLE b (id BIGINT, PRIMARY KEY (id))")
    tx = other.begin()
    list(tx.rows("accounts"))
    tx.insert("b", {"id": 1})
    member.ddl("ALTER TABLE accounts ADD CONSTRAINT p PRIMARY KEY (owner)")
    with pytest.raises(SchemaChangedError):
        other.commit(tx)


def test_a_key_that_was_read_before_a_primary_key_was_swapped_runs_again(member: Process, other: Process) -> None:
    """A row that is read by its key counts like a scan: its changes are kept elsewhere now."""
    member.ddl("CREATE TABLE b (id BIGINT, PRIMARY KEY (id))")
    tx = other.begin()
    assert tx.get("accounts", {"id": 1}) is not None
    tx.insert("b", {"id": 1})
    member.ddl("ALTER TABLE accounts ADD CONSTRAINT p PRIMARY KEY (owner)")
    member.write(lambda tx: tx.delete("accounts", {"owner": "ann"}))
    with pytest.raises(SchemaChangedError):
        other.commit(tx)


def test_writes_to_a_table_that_is_dropped_are_refused(member: Process, other: Process) -> None:
    """From the moment on that it begins to go, and also if another one has its name by then."""
    tx = other.begin()
    tx.update("accounts", {"id": 1}, {"amount": 1})
    member.ddl("DROP TABLE accounts", ACCOUNTS)
    with pytest.raises(SchemaChangedError):
        other.commit(tx)
    assert other.rows("accounts") == []


def test_reads_of_a_table_that_is_dropped_run_again(member: Process, other: Process) -> None:
    """What was read by key, too."""
    member.ddl("CREATE TABLE b (id BIGINT, PRIMARY KEY (id))")
    tx = other.begin()
    tx.get("accounts", {"id": 1})
    tx.insert("b", {"id": 1})
    member.ddl("DROP TABLE accounts")
    with pytest.raises(SchemaChangedError):
        other.commit(tx)


def test_a_table_that_is_being_created_refuses_rows(member: Process, disk: Disk) -> None:
    """With an error that says to try again."""
    change = member.submit("CREATE TABLE c (id BIGINT, PRIMARY KEY (id))")
    while change.refresh().stage < 2:
        member.owner.step(change.id)
    with pytest.raises(SchemaChangedError):
        disk.open("host-3:3").insert("c", {"id": 1})
    member.owner.run(change.id)
    member.insert("c", {"id": 1})


def test_a_row_that_comes_anew_takes_nothing_of_the_old_one_from_a_column_added_meanwhile(
    member: Process, other: Process
) -> None:
    """The value that a fill gave to the old row went with it."""
    tx = other.begin()
    tx.delete("accounts", {"id": 1})
    tx.insert("accounts", {"id": 1})
    member.ddl("ALTER TABLE accounts ADD COLUMN twice BIGINT USING amount * 2")
    other.commit(tx)
    assert other.rows("accounts")[0] == {"id": 1, "owner": None, "amount": 0, "twice": None}


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("ADD COLUMN twice BIGINT USING amount * 2", {"id": 7, "owner": "eve", "amount": 10, "twice": 20}),
        ("DROP COLUMN amount", {"id": 7, "owner": "eve"}),
        ("ALTER COLUMN amount TYPE STRING", {"id": 7, "owner": "eve", "amount": "10"}),
    ],
)
def test_a_row_that_moves_takes_along_what_it_has_by_then(
    member: Process, other: Process, statement: str, row: Row
) -> None:
    """Only what the transaction sets is its own; however often it moves the row."""
    tx = other.begin()
    tx.update("accounts", {"id": 1}, {"id": 5})
    tx.update("accounts", {"id": 5}, {"owner": "eve"})
    tx.update("accounts", {"id": 5}, {"id": 7})
    assert tx.get("accounts", {"id": 7}) == {"id": 7, "owner": "eve", "amount": 10}
    member.ddl(f"ALTER TABLE accounts {statement}")
    other.commit(tx)
    assert other.rows("accounts")[1] == row


def test_a_value_that_its_new_type_cannot_hold_is_refused_by_the_commit_and_read_until_then(
    member: Process, other: Process
) -> None:
    """A transaction reads its own rows by the columns that it knows, however unfinished others are."""
    for number in (1, 2):
        member.write(lambda tx, key=number: tx.update("accounts", {"id": key}, {"owner": "7"}))  # type: ignore[misc]
    change = member.submit("ALTER TABLE accounts ALTER COLUMN owner TYPE BIGINT")
    while change.refresh().stage < 2:
        member.owner.step(change.id)
    tx = other.begin()
    tx.update("accounts", {"id": 1}, {"owner": "x"})
    assert tx.get("accounts", {"id": 1}) == {"id": 1, "owner": "x", "amount": 10}
    with pytest.raises(ExpressionFailedError):
        other.commit(tx)
    member.owner.run(change.id)
    assert other.rows("accounts")[0]["owner"] == 7
