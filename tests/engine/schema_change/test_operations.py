"""The operations of schema changes through SQL: what each leaves behind, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from catalog.engine.schema_change.schema import TableSchema
from catalog.engine.schema_change.steps import ChangeStatus
from catalog.errors import CatalogError
from catalog.errors.tables import (
    NameTakenError,
    NeededElsewhereError,
    RefusedChangeError,
    SchemaChangeFailedError,
    TableExistsError,
    UnknownColumnError,
    UnknownElementError,
    UnknownTableError,
    UnsupportedExpressionError,
)
from tests.engine.schema_change.stores import Disk, Process, Row

PEOPLE = "CREATE TABLE people (id BIGINT, name STRING, age INT, PRIMARY KEY (id))"
PETS = """CREATE TABLE pets (id BIGINT, owner BIGINT, name STRING, PRIMARY KEY (id),
    CONSTRAINT has_owner FOREIGN KEY (owner) REFERENCES people (id))"""


@pytest.fixture
def store() -> Process:
    """Two tables with some rows: ann and bob, and a pet of ann's."""
    process = Disk().open()
    process.ddl(PEOPLE, PETS)
    process.insert("people", {"id": 1, "name": "ann", "age": 30}, {"id": 2, "name": "bob"})
    process.insert("pets", {"id": 1, "owner": 1, "name": "rex"})
    return process


FORWARDS: dict[str, tuple[str, list[Row]]] = {
    "add column": ("ADD COLUMN note STRING", [{"note": None}, {"note": None}]),
    "add column with default": ("ADD COLUMN note STRING DEFAULT 'none'", [{"note": "none"}, {"note": "none"}]),
    "add column not null": ("ADD COLUMN n INT NOT NULL DEFAULT 7", [{"n": 7}, {"n": 7}]),
    "add columns": ("ADD COLUMNS (n INT DEFAULT 7, m INT)", [{"n": 7, "m": None}, {"n": 7, "m": None}]),
    "add filled column": ("ADD COLUMN big STRING USING upper(name)", [{"big": "ANN"}, {"big": "BOB"}]),
    "add filled unique column": ("ADD COLUMN big STRING USING upper(name) UNIQUE", [{"big": "ANN"}, {"big": "BOB"}]),
    "add computed column": ("ADD COLUMN older INT GENERATED ALWAYS AS (age + 1)", [{"older": 31}, {"older": None}]),
    "rename column": ("RENAME COLUMN name TO called", [{"called": "ann"}, {"called": "bob"}]),
    "widen": ("ALTER COLUMN age TYPE BIGINT", [{"age": 30}, {"age": None}]),
    "change type": ("ALTER COLUMN age TYPE STRING", [{"age": "30"}, {"age": None}]),
    "change type using": ("ALTER COLUMN name TYPE INT USING length(name)", [{"name": 3}, {"name": 3}]),
    "set default": ("ALTER COLUMN age SET DEFAULT 5", [{"age": 30}, {"age": None}]),
    "set not null": ("ALTER COLUMN name SET NOT NULL", [{"name": "ann"}, {"name": "bob"}]),
    "add check": ("ADD CONSTRAINT adult CHECK (age > 17)", [{"age": 30}, {"age": None}]),
    "add unique": ("ADD CONSTRAINT one_name UNIQUE (name)", [{"name": "ann"}, {"name": "bob"}]),
    "add foreign key": ("ADD CONSTRAINT self FOREIGN KEY (id) REFERENCES people (id)", [{"id": 1}, {"id": 2}]),
}


@pytest.mark.parametrize("case", FORWARDS)
def test_a_change_gives_the_rows_that_it_promises(store: Process, case: str) -> None:
    """Of the rows that were there; the table is at rest afterwards, at one version."""
    statement, wanted = FORWARDS[case]
    change = store.ddl(f"ALTER TABLE people {statement}")
    assert change.status is ChangeStatus.SUCCEEDED
    rows = store.rows("people")
    assert [{name: row[name] for name in own} for row, own in zip(rows, wanted, strict=True)] == wanted
    schema = store.schema("people")
    assert (schema.change, schema.cur) == (0, schema.min)


def test_a_column_keeps_its_place_when_its_type_changes(store: Process) -> None:
    """Readers see the columns in the order in which they were defined."""
    store.ddl("ALTER TABLE people ALTER COLUMN name TYPE BINARY USING CAST(name AS BINARY)")
    assert list(store.rows("people")[0]) == ["id", "name", "age"]


def test_columns_and_their_constraints_come_together(store: Process) -> None:
    """One statement is one change, which succeeds or fails as a whole."""
    with pytest.raises(SchemaChangeFailedError):
        store.ddl("ALTER TABLE people ADD COLUMNS (a INT DEFAULT 1, b INT DEFAULT 2 UNIQUE)")
    assert [column.name for column in store.schema("people").columns] == ["id", "name", "age"]
    store.ddl("ALTER TABLE people ADD COLUMNS (a INT DEFAULT 1, b INT UNIQUE)")
    assert store.rows("people")[0] == {"id": 1, "name": "ann", "age": 30, "a": 1, "b": None}


def test_a_default_counts_for_new_rows_only(store: Process) -> None:
    """Rows that were there keep the value that the column began with."""
    store.ddl("ALTER TABLE people ADD COLUMN n INT DEFAULT 1", "ALTER TABLE people ALTER COLUMN n SET DEFAULT 2")
    store.insert("people", {"id": 3})
    store.ddl("ALTER TABLE people ALTER COLUMN n DROP DEFAULT")
    store.insert("people", {"id": 4}, {"id": 5, "n": 3})
    assert [row["n"] for row in store.rows("people")] == [1, 1, 2, None, 3]


def test_null_that_was_written_after_a_column_came_stays_null(store: Process) -> None:
    """It does not read as the default of the rows from before."""
    store.ddl("ALTER TABLE people ADD COLUMN n INT DEFAULT 1")
    store.write(lambda tx: tx.update("people", {"id": 1}, {"n": None}))
    store.write(lambda tx: tx.update("people", {"id": 2}, {"age": 3}))
    assert [row["n"] for row in store.rows("people")] == [None, 1]


def test_a_dropped_column_and_one_of_the_same_name_are_two(store: Process) -> None:
    """The values of the first never show in the second."""
    store.ddl("ALTER TABLE people DROP COLUMN name", "ALTER TABLE people ADD COLUMN name STRING")
    assert [row["name"] for row in store.rows("people")] == [None, None]


def test_an_index_answers_and_goes(store: Process) -> None:
    """With the rows from before and the ones that came meanwhile; its files go with it."""
    before = store.collections()
    store.ddl("CREATE INDEX by_name ON people (name) INCLUDE (age)")
    assert len(store.collections()) == len(before) + 1
    with store.tables.transaction() as tx:
        assert tx.find("people", name="ann") == [{"id": 1, "name": "ann", "age": 30}]
    store.ddl("DROP INDEX by_name ON people")
    assert store.collections() == before


def test_a_primary_key_is_swapped_with_every_index(store: Process) -> None:
    """Rows are found by the new key and by old indexes; the old key is a plain column."""
    store.ddl(
        "CREATE INDEX by_age ON people (age)",
        "ALTER TABLE pets DROP CONSTRAINT has_owner",
        "ALTER TABLE people ADD CONSTRAINT by_name PRIMARY KEY (name)",
    )
    with store.tables.transaction() as tx:
        assert tx.get("people", {"name": "bob"}) == {"id": 2, "name": "bob", "age": None}
        assert [row["name"] for row in tx.find("people", age=30)] == ["ann"]
        tx.insert("people", {"name": "eve", "id": 2})
    assert [element.name for element in store.schema("people").elements if not element.hidden] == ["by_name", "by_age"]


def test_a_table_without_a_key_is_given_one(store: Process) -> None:
    """The hidden number of its rows goes."""
    store.ddl("CREATE TABLE notes (text STRING)")
    store.insert("notes", {"text": "a"}, {"text": "b"})
    store.ddl("ALTER TABLE notes ADD CONSTRAINT by_text PRIMARY KEY (text)")
    assert store.rows("notes") == [{"text": "a"}, {"text": "b"}]
    assert [column.name for column in store.schema("notes").columns] == ["text"]


def test_a_table_is_renamed_and_dropped_with_all_it_has(store: Process) -> None:
    """A handle goes on after a rename; after a drop nothing is left, and the name is free."""
    handle = store.tables["pets"]
    store.ddl("ALTER TABLE pets RENAME TO animals")
    assert (handle.name, len(list(handle.rows())), "pets" in store.tables) == ("public.animals", 1, False)
    store.ddl("DROP TABLE animals")
    assert list(store.tables) == ["public.people"]
    assert store.collections() == {store.schema("people").collection}
    store.ddl(PETS)
    assert store.rows("pets") == []


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE IF NOT EXISTS people (id BIGINT, PRIMARY KEY (id))",
        "DROP TABLE IF EXISTS nothing",
        "ALTER TABLE people DROP COLUMN IF EXISTS nothing",
        "ALTER TABLE people DROP CONSTRAINT IF EXISTS nothing",
        "DROP INDEX IF EXISTS nothing ON people",
        "ALTER TABLE people ALTER COLUMN age TYPE INT",
        "ALTER TABLE people ALTER COLUMN age DROP NOT NULL",
        "ALTER TABLE people ADD CONSTRAINT p PRIMARY KEY (id)",
    ],
)
def test_a_statement_with_nothing_to_do_succeeds_and_says_so(store: Process, statement: str) -> None:
    """Without a stage, and with a remark."""
    before = store.schema("people")
    change = store.ddl(statement)
    assert (change.status, change.stages) == (ChangeStatus.SUCCEEDED, ())
    assert len(change.events) > 0
    assert store.schema("people") == before


REFUSED: dict[str, tuple[type[CatalogError], str]] = {
    "CREATE TABLE people (id BIGINT, PRIMARY KEY (id))": (TableExistsError, "already something named people"),
    "CREATE TABLE t (a INT, A INT)": (NameTakenError, "already has a column, an index or a constraint A"),
    "CREATE TABLE t (a DOUBLE, PRIMARY KEY (a))": (RefusedChangeError, "a is DOUBLE"),
    "CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a + 1), PRIMARY KEY (b))": (RefusedChangeError, "b is computed"),
    "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES people)": (
        RefusedChangeError,
        "INT, those of public.people BIGINT",
    ),
    "DROP TABLE nothing": (UnknownTableError, "there is no table nothing"),
    "DROP TABLE people": (NeededElsewhereError, "needed by has_owner of public.pets"),
    "ALTER TABLE people RENAME TO pets": (TableExistsError, "already something named public.pets"),
    "ALTER TABLE people ADD COLUMN name INT": (NameTakenError, "already has a column"),
    "ALTER TABLE people ADD COLUMN n INT NOT NULL": (RefusedChangeError, "n is NOT NULL and has no default"),
    "ALTER TABLE people ADD COLUMN n INT USING nothing": (UnknownColumnError, "no column nothing"),
    "ALTER TABLE people DROP COLUMN id": (NeededElsewhereError, "id of public.people is needed by people_primary_key"),
    "ALTER TABLE people DROP COLUMN nothing": (UnknownColumnError, "has no column nothing"),
    "ALTER TABLE pets DROP COLUMN owner": (NeededElsewhereError, "needed by has_owner"),
    "ALTER TABLE people DROP COLUMNS (name, age, id)": (NeededElsewhereError, "id of public.people"),
    "ALTER TABLE people RENAME COLUMN age TO name": (NameTakenError, "name"),
    "ALTER TABLE people ALTER COLUMN id TYPE STRING": (RefusedChangeError, "id is part of the primary key"),
    "ALTER TABLE pets ALTER COLUMN owner TYPE STRING": (
        NeededElsewhereError,
        "owner of public.pets is needed by has_owner",
    ),
    "ALTER TABLE people ALTER COLUMN age TYPE STRING USING name": (RefusedChangeError, "USING of age names name"),
    "ALTER TABLE people ALTER COLUMN age SET DEFAULT name": (UnknownColumnError, "no column name"),
    "ALTER TABLE people ALTER COLUMN id DROP NOT NULL": (NeededElsewhereError, "needed by people_primary_key"),
    "ALTER TABLE people ADD CONSTRAINT c CHECK (age + 1)": (UnsupportedExpressionError, "BOOLEAN"),
    "ALTER TABLE people ADD CONSTRAINT u UNIQUE (name, name)": (RefusedChangeError, "names a column twice"),
    "ALTER TABLE pets ADD CONSTRAINT has_owner CHECK (id > 0)": (NameTakenError, "has_owner"),
    "ALTER TABLE pets ADD CONSTRAINT f FOREIGN KEY (name) REFERENCES people (name)": (
        RefusedChangeError,
        "is not unique",
    ),
    "ALTER TABLE people ADD CONSTRAINT p PRIMARY KEY (name)": (
        NeededElsewhereError,
        "needed by has_owner of public.pets",
    ),
    "ALTER TABLE people DROP CONSTRAINT nothing": (UnknownElementError, "has no index or constraint nothing"),
    "ALTER TABLE people DROP CONSTRAINT people_primary_key": (RefusedChangeError, "is the primary key"),
    "DROP INDEX has_owner ON pets": (RefusedChangeError, "has_owner is no index"),
    "CREATE INDEX i ON people (nothing)": (UnknownColumnError, "has no column nothing"),
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_written(store: Process, statement: str) -> None:
    """By an error that names what stands in the way."""
    before = store.store.refresh()
    error, text = REFUSED[statement]
    with pytest.raises(error, match=r".") as raised:
        store.ddl(statement)
    assert text in raised.value.what
    assert store.store.refresh() == before


def test_a_computed_column_is_no_primary_key(store: Process) -> None:
    """Nobody could set the key of a row."""
    store.ddl("ALTER TABLE pets ADD COLUMN n BIGINT GENERATED ALWAYS AS (id + 1)")
    with pytest.raises(RefusedChangeError, match="n is computed"):
        store.ddl("ALTER TABLE pets ADD CONSTRAINT p PRIMARY KEY (n)")


def test_an_index_that_a_constraint_is_judged_by_stays(store: Process) -> None:
    """Until the constraint goes."""
    store.ddl("CREATE INDEX by_name ON pets (name)", "CREATE TABLE names (name STRING, PRIMARY KEY (name))")
    store.insert("names", {"name": "rex"})
    store.ddl("ALTER TABLE pets ADD CONSTRAINT known FOREIGN KEY (name) REFERENCES names (name)")
    with pytest.raises(NeededElsewhereError, match=r"by_name of public\.pets is needed by known"):
        store.ddl("DROP INDEX by_name ON pets")
    store.ddl("ALTER TABLE pets DROP CONSTRAINT known", "DROP INDEX by_name ON pets")


def test_a_unique_constraint_that_is_referred_to_stays(store: Process) -> None:
    """Until the foreign key goes."""
    store.ddl(
        "ALTER TABLE people ADD CONSTRAINT one_name UNIQUE (name)",
        "CREATE TABLE fans (id BIGINT, of STRING, PRIMARY KEY (id))",
        "ALTER TABLE fans ADD CONSTRAINT f FOREIGN KEY (of) REFERENCES people (name)",
    )
    with pytest.raises(NeededElsewhereError, match=r"one_name of public\.people is needed by f of public\.fans"):
        store.ddl("ALTER TABLE people DROP CONSTRAINT one_name")


def at_rest(schema: TableSchema) -> TableSchema:
    """Return a schema without the numbers that only ever grow."""
    return replace(schema, cur=0, min=0, next_column=0, change=0)


FAILING: dict[str, tuple[str, int]] = {
    "ALTER TABLE people ALTER COLUMN age SET NOT NULL": ("age is not NULL", 1),
    "ALTER TABLE people ADD CONSTRAINT c CHECK (name <> 'bob')": ("check (name <> 'bob')", 1),
    "ALTER TABLE people ADD CONSTRAINT u UNIQUE (city)": ("unique (city)", 2),
    "CREATE UNIQUE INDEX u ON people (city)": ("unique (city)", 2),
    "ALTER TABLE people ADD COLUMN again STRING USING city UNIQUE": ("unique (again)", 2),
    "ALTER TABLE pets ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES empty (id)": ("foreign key (id)", 1),
    "ALTER TABLE people ALTER COLUMN name TYPE INT": ("expression", 0),
    "ALTER TABLE pets ADD CONSTRAINT p PRIMARY KEY (hue)": ("hue is not NULL", 1),
}


@pytest.mark.parametrize("statement", FAILING)
def test_a_change_that_rows_violate_fails_and_leaves_nothing(store: Process, statement: str) -> None:
    """The error names the rule and the rows; schema, files and names are as before, but for numbers."""
    store.ddl(
        "ALTER TABLE people ADD COLUMN city STRING DEFAULT 'rome'",
        "ALTER TABLE pets ADD COLUMN hue STRING",
        "CREATE TABLE empty (id BIGINT, PRIMARY KEY (id))",
    )
    before = [at_rest(store.schema(name)) for name in ("people", "pets", "empty")]
    files, names = store.collections(), dict(store.disk.items.names)
    with pytest.raises(SchemaChangeFailedError) as raised:
        store.ddl(statement)
    rule, count = FAILING[statement]
    assert (raised.value.rule, len(raised.value.keys)) == (rule, count)
    assert "nothing is left of it" in raised.value.what
    assert [at_rest(store.schema(name)) for name in ("people", "pets", "empty")] == before
    assert (store.collections(), store.disk.items.names) == (files, names)


CANCELLED = [
    "CREATE UNIQUE INDEX u ON people (name)",
    "ALTER TABLE people ADD COLUMN n INT USING age + 1",
    "ALTER TABLE people ALTER COLUMN name TYPE BINARY USING CAST(name AS BINARY)",
    "ALTER TABLE pets ADD CONSTRAINT p PRIMARY KEY (name)",
    "ALTER TABLE people ADD CONSTRAINT c CHECK (age > 0)",
    "CREATE TABLE t (id BIGINT, PRIMARY KEY (id))",
    "ALTER TABLE pets RENAME TO animals",
]


@pytest.mark.parametrize("statement", CANCELLED)
def test_a_change_that_is_cancelled_at_its_last_moment_leaves_nothing(store: Process, statement: str) -> None:
    """Right before it would become visible."""
    before = [at_rest(store.schema(name)) for name in ("people", "pets")]
    files, names = store.collections(), dict(store.disk.items.names)
    change = store.submit(statement)
    _run_until(store, change.id, lambda: change.refresh().stages != () and change.stage == len(change.stages) - 1)
    assert change.cancel().status is ChangeStatus.CANCELLED
    assert [at_rest(store.schema(name)) for name in ("people", "pets")] == before
    assert (store.collections(), store.disk.items.names) == (files, names)


def test_a_drop_cannot_be_cancelled_once_the_item_may_be_gone(store: Process) -> None:
    """Its comments would not come back."""
    change = store.submit("DROP TABLE pets")
    _run_until(store, change.id, lambda: change.refresh().stage == 1)
    assert not change.can_be_cancelled
    with pytest.raises(CatalogError, match="cannot be cancelled"):
        change.cancel()
    store.owner.run(change.id)
    assert "pets" not in store.tables


def test_a_statement_waits_for_the_change_before_it_on_its_table(store: Process) -> None:
    """And is planned under the schema that that one leaves."""
    first = store.submit("ALTER TABLE people RENAME COLUMN name TO called")
    second = store.submit("ALTER TABLE people ADD CONSTRAINT c CHECK (length(name) > 0)")
    beside = store.submit("ALTER TABLE pets DROP COLUMN name")
    _run_until(store, first.id, lambda: first.refresh().stages != ())
    for _ in range(3):
        store.owner.step(second.id)
    assert second.refresh().status is ChangeStatus.PENDING
    store.owner.run(beside.id)
    store.owner.run(first.id)
    store.owner.run(second.id)
    assert second.refresh().status is ChangeStatus.FAILED
    assert second.failure is not None
    assert "name" in second.failure.why


def _run_until(store: Process, change: int, reached: Callable[[], bool]) -> None:
    for _ in range(100):
        if reached():
            return
        store.owner.step(change)
    pytest.fail("it never comes there")
