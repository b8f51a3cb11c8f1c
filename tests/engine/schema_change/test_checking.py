"""The check of a table: what is in order passes, and every kind of damage is found and named."""

from __future__ import annotations

import pytest

from catalog.engine.schema_change.checking import TableReport, check_table
from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.rows import RowCodec
from catalog.engine.schema_change.schema import Element
from catalog.engine.schema_change.store import Draft
from catalog.engine.schema_change.types import Value
from tests.engine.schema_change.stores import Disk, Process, Row

ROWS = 30


@pytest.fixture
def process() -> Process:
    """A table with an index that stores a column, and every kind of constraint."""
    made = Disk().open()
    made.ddl(
        "CREATE TABLE customers (id BIGINT, PRIMARY KEY (id))",
        "CREATE TABLE orders (id BIGINT, customer BIGINT, code STRING NOT NULL, amount INT, PRIMARY KEY (id), "
        "CONSTRAINT buyer FOREIGN KEY (customer) REFERENCES customers (id))",
        "CREATE INDEX by_amount ON orders (amount) INCLUDE (code)",
        "CREATE UNIQUE INDEX by_code ON orders (code)",
        "ALTER TABLE orders ADD CONSTRAINT positive CHECK (amount > 0)",
    )
    made.insert("customers", {"id": 1})
    rows: list[Row] = [{"id": n, "customer": 1, "code": f"c{n}", "amount": n % 5 + 1} for n in range(ROWS)]
    made.insert("orders", *rows)
    return made


def checked(process: Process, name: str = "orders") -> TableReport:
    schema = process.schema(name)
    return check_table(process.store.replica, schema)


def codec_of(process: Process) -> RowCodec:
    return process.store.replica.codecs.of(process.schema("orders"))


def row_of(process: Process, number: int, **changed: Value) -> dict[int, Value]:
    """Return the values of a row by the ids of its columns."""
    schema = process.schema("orders")
    values = {"id": number, "customer": 1, "code": f"c{number}", "amount": number % 5 + 1, **changed}
    return {schema.column(name).id: value for name, value in values.items()}


def forge(process: Process, collection: str, key: bytes, value: bytes, diff: int) -> None:
    """Change what is stored as no writer would."""

    def draft(replica: TablesReplica) -> Draft:
        return Draft(rows={collection: [(key, value, replica.state.version + 1, diff)]})

    process.store.commit(draft)


def found(report: TableReport) -> dict[tuple[str, str], tuple[int, tuple[str, ...]]]:
    return {(own.element, own.what): (own.count, own.keys) for own in report.findings}


def index_of(process: Process, name: str) -> Element:
    return next(
        e for e in process.schema("orders").elements if e.name == name and e.collection in process.collections()
    )


def test_a_sound_table_has_no_findings(process: Process) -> None:
    """Every index and every constraint is checked, and all of what is read is told as progress."""
    told: list[tuple[int, int]] = []
    report = check_table(process.store.replica, process.schema("orders"), lambda *own: told.append(own))
    assert (report.ok, report.rows, report.unfinished) == (True, ROWS, ())
    assert {"by_amount", "by_code"} <= set(report.indexes)
    assert {"positive", "buyer"} <= set(report.constraints)
    assert told[-1][0] == told[-1][1]
    assert told == sorted(told)


def test_an_empty_table_is_sound() -> None:
    """It has nothing that could be wrong."""
    made = Disk().open()
    made.ddl("CREATE TABLE nothing (id BIGINT)")
    assert checked(made, "nothing").ok


def test_writes_and_changes_leave_a_table_sound(process: Process) -> None:
    """Updates, deletes and new columns too."""
    with process.tables.transaction() as tx:
        tx.update("orders", {"id": 3}, {"amount": 9, "code": "new"})
        tx.delete("orders", {"id": 4})
    process.ddl("ALTER TABLE orders ADD COLUMN note STRING DEFAULT 'x'", "CREATE INDEX by_note ON orders (note)")
    report = checked(process)
    assert (report.ok, report.rows) == (True, ROWS - 1)
    assert "by_note" in report.indexes


def test_a_missing_entry_is_found(process: Process) -> None:
    """By the row that has none."""
    index, codec = index_of(process, "by_amount"), codec_of(process)
    forge(process, index.collection, *codec.entry(index, row_of(process, 7)), -1)
    assert found(checked(process)) == {("by_amount", "rows have no entry"): (1, ('{"id": 7}',))}


def test_an_entry_of_no_row_is_found(process: Process) -> None:
    """By the key that it leads to."""
    index, codec = index_of(process, "by_amount"), codec_of(process)
    forge(process, index.collection, *codec.entry(index, row_of(process, 77)), 1)
    assert found(checked(process)) == {("by_amount", "entries have no row"): (1, ('{"id": 77}',))}


def test_an_entry_of_an_earlier_value_is_found(process: Process) -> None:
    """Beside the one that the row has now."""
    index, codec = index_of(process, "by_amount"), codec_of(process)
    forge(process, index.collection, *codec.entry(index, row_of(process, 7, amount=99)), 1)
    assert found(checked(process)) == {("by_amount", "entries are of earlier values"): (1, ('{"id": 7}',))}


def test_an_entry_with_another_stored_column_is_found(process: Process) -> None:
    """Its key alone is not enough."""
    index, codec = index_of(process, "by_amount"), codec_of(process)
    forge(process, index.collection, *codec.entry(index, row_of(process, 7, code="other")), 1)
    assert found(checked(process)) == {("by_amount", "entries hold other values"): (1, ('{"id": 7}',))}


@pytest.mark.parametrize(
    ("changed", "name", "rule"),
    [
        ({"amount": -1}, "positive", "check (amount > 0) does not hold"),
        ({"customer": 5}, "buyer", "foreign key (customer) does not hold"),
        ({"code": None}, "", "code is not NULL does not hold"),
        ({"code": "c8"}, "by_code", "unique (code) does not hold"),
    ],
    ids=["check", "foreign key", "not null", "unique"],
)
def test_a_violated_constraint_is_found(process: Process, changed: dict[str, Value], name: str, rule: str) -> None:
    """By its rule and its rows, though every index fits them."""
    schema, codec = process.schema("orders"), codec_of(process)
    before, after = row_of(process, 7), row_of(process, 7, **changed)
    for index in [e for e in schema.elements if e.collection in process.collections()]:
        if index.id != schema.primary.id:
            forge(process, index.collection, *codec.entry(index, before), -1)
            forge(process, index.collection, *codec.entry(index, after), 1)
    forge(process, schema.collection, codec.key(after), codec.value(after), 1)
    (((element, what), (count, keys)),) = found(checked(process)).items()
    assert (what, count) == (rule, 1)
    assert element == name or not name
    assert '{"id": 7}' in keys[0]


def test_at_most_ten_keys_are_named(process: Process) -> None:
    """Of however many there are."""
    index, codec = index_of(process, "by_amount"), codec_of(process)
    for number in range(12):
        forge(process, index.collection, *codec.entry(index, row_of(process, number)), -1)
    ((count, keys),) = found(checked(process)).values()
    assert (count, len(keys)) == (12, 10)


def test_a_key_that_is_stored_twice_over_is_found(process: Process) -> None:
    """A field of protobuf may be written twice, and means the same: such a key would be found by nobody."""
    schema, codec = process.schema("orders"), codec_of(process)
    row = row_of(process, 7)
    forge(process, schema.collection, codec.key(row) * 2, codec.value(row), 1)
    told = found(checked(process))
    assert told["public.orders", "keys are not stored in their one form"][0] == 1


def test_rows_that_cannot_be_decoded_are_found(process: Process) -> None:
    """They are named by their bytes; no constraint is said to hold for them."""
    schema, codec = process.schema("orders"), codec_of(process)
    forge(process, schema.collection, codec.key(row_of(process, 7)), b"\xff\xff\xff", 1)
    told = found(checked(process))
    assert told["public.orders", "rows cannot be decoded"][0] == 1
    assert ("positive", "check (amount > 0) cannot be checked") in told


def test_what_a_change_is_making_is_not_judged(process: Process) -> None:
    """An index that is being built has not all entries yet."""
    change = process.submit("CREATE INDEX by_customer ON orders (customer, amount)")
    while change.refresh().stage < 2:
        process.owner.step(change.id)
    report = checked(process)
    assert (report.ok, report.unfinished) == (True, ("by_customer",))
