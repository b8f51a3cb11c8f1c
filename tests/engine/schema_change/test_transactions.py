"""Transactions over tables: rows, constraints, conflicts, and schemas that change while they run."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.store import Draft
from catalog.engine.schema_change.transaction import TableTransaction
from catalog.engine.schema_change.types import Value
from catalog.errors import (
    CatalogError,
    KeyExistsError,
    NoSuchRowError,
    TransactionConflictError,
    TransactionEndedError,
)
from catalog.errors.tables import (
    CheckError,
    ExpressionFailedError,
    ForeignKeyError,
    NotNullError,
    RefusedChangeError,
    SchemaChangedError,
    UniqueError,
    UnknownColumnError,
    UnknownTableError,
    ValueMismatchError,
)
from tests.engine.schema_change.stores import Disk, Process, Row

ACCOUNTS = "CREATE TABLE accounts (id BIGINT, owner STRING, amount BIGINT DEFAULT 0, PRIMARY KEY (id))"


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def member(disk: Disk) -> Process:
    """A process beside an empty table of accounts."""
    process = disk.open()
    process.ddl(ACCOUNTS)
    return process


@pytest.fixture
def other(disk: Disk, member: Process) -> Process:
    """Another process over the same store; two accounts are there."""
    member.insert("accounts", {"id": 1, "owner": "ann", "amount": 10}, {"id": 2, "owner": "bob", "amount": 20})
    return disk.open("host-2:2")


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


def test_a_table_without_a_key_numbers_its_rows(member: Process) -> None:
    """Equal rows are different rows, and the number is hidden."""
    member.ddl("CREATE TABLE notes (text STRING)")
    member.insert("notes", {"text": "a"}, {"text": "a"}, {})
    assert member.rows("notes") == [{"text": "a"}, {"text": "a"}, {"text": None}]
    assert [column.name for column in member.schema("notes").columns] == ["_row", "text"]


CONSTRAINED = """CREATE TABLE orders (
    id BIGINT, account BIGINT, code STRING, price DECIMAL(6,2) NOT NULL,
    gross DECIMAL(8,2) GENERATED ALWAYS AS (CAST(price + 1 AS DECIMAL(8,2))),
    PRIMARY KEY (id), UNIQUE (code), CONSTRAINT cheap CHECK (price < 100),
    CONSTRAINT buyer FOREIGN KEY (account) REFERENCES accounts (id))"""


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


def test_several_tables_change_in_one_commit(other: Process) -> None:
    """All of it is at one ts, and nothing of it before."""
    other.ddl("CREATE TABLE log (id BIGINT, text STRING, PRIMARY KEY (id))")

    def work(tx: TableTransaction) -> None:
        tx.update("accounts", {"id": 1}, {"amount": 0})
        tx.insert("log", {"id": 1, "text": "emptied"})

    ts = other.write(work)
    assert other.rows("log", ts - 1) == []
    assert (other.rows("accounts", ts - 1)[0]["amount"], other.rows("accounts", ts)[0]["amount"]) == (10, 0)


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


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value
