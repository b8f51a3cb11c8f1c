"""`tables` and `table`: what tables there are, how they are made, whether they are sound, and loading them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog import open_catalog
from catalog.cli.answer import ExitCode
from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.store import Draft
from tests.cli.commands import bytes_of, call, complaint, fail, in_process, text, three_lines
from tests.cli.conftest import Stores
from tests.cli.test_completion import candidates

ORDERS = (
    "CREATE TABLE orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2) DEFAULT 0, code STRING NOT NULL, "
    "PRIMARY KEY (id), CONSTRAINT buyer FOREIGN KEY (customer) REFERENCES customers (id))"
)
STATEMENTS = (
    "CREATE TABLE customers (id BIGINT, email STRING, PRIMARY KEY (id))",
    ORDERS,
    "CREATE UNIQUE INDEX by_code ON orders (code) INCLUDE (amount)",
    "ALTER TABLE orders ADD CONSTRAINT positive CHECK (amount >= 0)",
)


@pytest.fixture
def store(store_of: Stores) -> Path:
    made = store_of()
    with open_catalog(made, "member") as catalog:
        for statement in STATEMENTS:
            catalog.tables.execute(statement)
        with catalog.tables.transaction() as tx:
            tx.insert("customers", {"id": 1, "email": "ann@example.com"})
            for number in range(5):
                tx.insert("orders", {"id": number, "customer": 1, "code": f"c{number}"})
    return made


def frame(folder: Path, name: str = "rows.parquet", **columns: Any) -> Path:  # noqa: ANN401 - values of any type
    pq.write_table(pa.table(columns), folder / name)
    return folder / name


def test_a_store_without_tables_says_so(store_of: Stores) -> None:
    """And how to create one; nothing is written."""
    empty = store_of()
    before = bytes_of(empty)
    assert call("tables", "--store", empty) == {"store": str(empty), "ts": None, "tables": []}
    shown = text("tables", "--store", empty)
    assert shown.startswith(f'{empty} has no tables\n`catalog ddl run "CREATE TABLE')
    for verb in ("show", "check"):
        assert "there is no table x" in complaint("table", verb, "x", "--store", empty, expect=ExitCode.USAGE)[0]
    complaint("table", "load", "x", "y.parquet", "--store", empty, expect=ExitCode.USAGE)
    assert bytes_of(empty) == before


def test_tables_are_listed_with_their_sizes(store: Path) -> None:
    """And the number of the change that works on one."""
    call("ddl", "run", "CREATE INDEX by_customer ON orders (amount)", "--detach", "--store", store)
    before = bytes_of(store)
    customers, orders = call("tables", "--store", store)["tables"]
    assert (customers["name"], customers["rows"]) == ("public.customers", {"number": 1, "is_exact": True})
    assert (orders["columns"], orders["rows"]["number"], orders["change"]) == (4, 5, None)
    assert orders["bytes"] > 0
    assert "public.orders" in text("tables", "--store", store)
    assert bytes_of(store) == before


def test_a_table_is_shown_whole(store: Path) -> None:
    """Its columns, indexes and constraints with their states; a name needs no schema, and case does not count."""
    shown = call("table", "show", "ORDERS", "--store", store)
    columns = {own["name"]: own for own in shown["columns"]}
    assert list(columns) == ["id", "customer", "amount", "code"]
    assert {name for name, own in columns.items() if not own["nullable"]} == {"id", "code"}
    assert columns["amount"]["type"] == "DECIMAL(10,2)"
    assert columns["amount"]["default"] is not None
    indexes = {own["name"]: own for own in shown["indexes"]}
    assert indexes["by_code"]["kind"] == "unique index"
    assert (indexes["by_code"]["stored"], indexes["by_code"]["state"]) == (["amount"], "PUBLIC")
    rules = {own["name"]: own["rule"] for own in shown["constraints"]}
    assert rules["buyer"] == "foreign key (customer) references public.customers (id)"
    assert rules["positive"].startswith("check (amount >= ")
    assert shown["change"] is None
    told = text("table", "show", "public.orders", "--store", store)
    assert told.startswith(f"public.orders   version {shown['version']}, 5 rows, ")
    assert "code, stores amount" in told


def test_a_change_that_works_on_a_table_is_shown_with_it(store: Path) -> None:
    """With the states of what it makes."""
    call("ddl", "run", "CREATE INDEX by_customer ON orders (amount)", "--detach", "--store", store)
    with open_catalog(store, "member") as catalog:
        change = catalog.tables.changes()[0]
        owner = catalog.tables._owner()  # noqa: SLF001 - to stop between two steps
        while change.refresh().stage < 2:
            owner.step(change.id)
    shown = call("table", "show", "orders", "--store", store)
    states = {own["name"]: own["state"] for own in shown["indexes"]}
    assert (states["by_customer"], shown["change"]["id"]) == ("WRITE", change.id)
    told = text("table", "show", "orders", "--store", store)
    assert "written, not read yet" in told
    assert f"a schema change works on it:\n{change.id}  CREATE INDEX" in told
    assert "not checked, because a schema change works on it: by_customer" in text(
        "table", "check", "orders", "--store", store
    )


def test_a_sound_table_is_in_order(store: Path) -> None:
    """Every index and constraint of it was looked at; nothing is written."""
    before = bytes_of(store)
    report = call("table", "check", "orders", "--store", store)["report"]
    assert (report["rows"], report["findings"]) == (5, [])
    shown = text("table", "check", "customers", "--store", store)
    assert shown.startswith("public.customers is in order: 1 row, 0 indexes, 0 constraints at ts ")
    assert bytes_of(store) == before


def test_findings_are_listed_with_what_to_do(store: Path) -> None:
    """The exit code is that of findings."""
    with open_catalog(store, "member") as catalog:
        tables = catalog.tables
        index = tables.schema("orders").element("by_code")

        def draft(replica: TablesReplica) -> Draft:
            support = replica.schemas[tables.schema("orders").id].element_by_id(index.support) or index
            ((key, value), *_) = replica.view.rows(support.collection)
            return Draft(rows={support.collection: [(key, value, replica.state.version + 1, -1)]})

        tables.store.commit(draft)
    failed = fail("table", "check", "orders", "--store", store)
    assert failed.code == "FindingsError"
    (finding,) = failed.data["report"]["findings"]
    assert (finding["what"], finding["count"], finding["keys"]) == ("rows have no entry", 1, ['{"id": 0}'])
    shown = in_process("table", "check", "orders", "--store", store)
    assert "keys: id: 0\n  fix:  drop it and create it again" in shown.out
    assert "is not in order: findings: 1" in three_lines(shown.err)[0]


def test_files_are_loaded_in_one_commit(store: Path, tmp_path: Path) -> None:
    """New rows by default; with --upsert those that are there are replaced."""
    first = frame(tmp_path, "1.parquet", id=[2, 3], email=["b", "c"])
    second = frame(tmp_path, "2.parquet", id=[4], email=["d"])
    loaded = call("table", "load", "customers", first, second, "--store", store)
    assert (loaded["table"], loaded["files"], loaded["rows"]) == ("public.customers", 2, 3)
    failed = fail("table", "load", "customers", first, "--store", store)
    assert failed.code == "KeyExistsError"
    changed = frame(tmp_path, "3.parquet", id=[2, 9], email=["new", "i"])
    shown = text("table", "load", "customers", changed, "--upsert", "--store", store)
    assert shown.startswith("upserted 2 rows of 1 file to public.customers at ts ")
    with open_catalog(store, "read-only") as catalog:
        rows = {row["id"]: row["email"] for row in catalog.tables["customers"].rows()}
    assert rows == {1: "ann@example.com", 2: "new", 3: "c", 4: "d", 9: "i"}
    assert call("table", "check", "customers", "--store", store)["report"]["findings"] == []


def test_rows_that_do_not_fit_are_refused_whole(store: Path, tmp_path: Path) -> None:
    """By their types, their constraints, or because it is no file of rows."""
    kind = frame(tmp_path, id=["x"], email=["b"])
    assert fail("table", "load", "customers", kind, "--store", store).code == "UnfitFrameError"
    dangling = frame(tmp_path, id=[10], customer=[99], code=["z"])
    assert fail("table", "load", "orders", dangling, "--store", store).code == "ForeignKeyError"
    (tmp_path / "text").write_text("no parquet")
    for file in ("text", "nowhere", "."):
        failed = fail("table", "load", "customers", tmp_path / file, "--store", store, expect=ExitCode.USAGE)
        assert "cannot be read as parquet" in failed.message
    one = frame(tmp_path, "1", id=[2], email=["b"])
    other = frame(tmp_path, "2", id=[3])
    failed = fail("table", "load", "customers", one, other, "--store", store, expect=ExitCode.USAGE)
    assert failed.message == f"{other} has other columns or types than {one}"
    assert call("tables", "--store", store)["tables"][0]["rows"]["number"] == 1


def test_unknown_tables_are_wrong_calls(store: Path) -> None:
    """The error suggests one that is there."""
    for verb in ("show", "check"):
        assert "public.orders" in fail("table", verb, "order", "--store", store, expect=ExitCode.USAGE).next
    assert fail("table", "load", "order", "f", "--store", store, expect=ExitCode.USAGE).code == "UnknownTableError"


def test_names_and_numbers_are_completed(store: Path) -> None:
    """Those of the store that is named, and of changes those that are not over."""
    call("ddl", "run", "CREATE INDEX by_customer ON orders (amount)", "--detach", "--store", store)
    assert candidates("--store", store, "table", "show", "") == ["customers", "orders"]
    assert candidates("--store", store, "table", "check", "o") == ["orders"]
    assert candidates("--store", store, "ddl", "cancel", "") == ["5"]


def test_an_older_store_is_to_be_upgraded_first(store_of: Stores) -> None:
    """No command of tables starts an upgrade, nor a scratch copy."""
    older = store_of(21)
    before = bytes_of(older)
    for words in (["tables"], ["ddl", "list"], ["table", "show", "x"], ["ddl", "run", STATEMENTS[0]]):
        assert fail(*words, "--store", older, expect=ExitCode.PENDING).code == "UpgradeNeededError"
    assert bytes_of(older) == before
