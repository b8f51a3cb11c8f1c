"""Stores with tables, and the ways in which tests damage them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from catalog import open_catalog
from catalog.engine.log.place import StorePlace
from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.store import Draft, TablesStore
from catalog.engine.schema_change.tables import Tables
from catalog.engine.schema_change.types import Value
from catalog.upgrade import PROJECT

PEOPLE: list[dict[str, Value]] = [{"id": 7, "email": "ann@example.com"}, {"id": 8, "email": "bob@example.com"}]


def place_of(store: Path | str) -> StorePlace:
    return StorePlace.at(PROJECT, store)


def make(store: Path, *statements: str, more: Callable[[Tables], object] | None = None) -> StorePlace:
    """A store with two tables that have a unique index and a foreign key."""
    with open_catalog(store) as catalog:
        tables = catalog.tables
        tables.execute("CREATE TABLE people (id BIGINT, email STRING, PRIMARY KEY (id))")
        tables.execute("CREATE TABLE orders (id BIGINT, person BIGINT, PRIMARY KEY (id))")
        with tables.transaction() as tx:
            for person in PEOPLE:
                tx.insert("people", person)
            tx.insert("orders", {"id": 1, "person": 7})
        for statement in ("CREATE UNIQUE INDEX by_email ON people (email)", *statements):
            tables.execute(statement)
        if more is not None:
            more(tables)
    return place_of(store)


def rows_of(store: Path | str, table: str = "people", mode: str = "read-only") -> list[dict[str, Value]]:
    with open_catalog(store, mode) as catalog:
        return list(catalog.tables[table].rows())


def begun(tables: Tables) -> int:
    """Begin to build an index until the ts is fixed that it reads; leave it without a living owner."""
    change = tables.submit("CREATE INDEX by_person ON orders (person)", detach=True)
    owner = tables._owner()  # noqa: SLF001 - a process that stops half way
    while not tables.change_message(change.id).read_ts:
        owner.step(change.id)
    tables.signs.end(f"change-{change.id}")
    return change.id


def commit(place: StorePlace, draft: Callable[[TablesReplica], Draft]) -> int:
    """Commit by hand what no process would."""
    store = TablesStore.open(place.tables_log())
    store.join()
    return store.commit(draft)


def collection_of(place: StorePlace, table: str) -> str:
    replica = TablesReplica.open(place.tables_log())
    return next(schema.collection for schema in replica.schemas.values() if schema.name == f"public.{table}")
