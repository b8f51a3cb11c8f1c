"""Bulk writes among transactions, steps of schema changes and maintenance, by chance, over two tables.

A second store is the oracle: whatever is committed in the first is done there at once, in a transaction, and its schema
changes go along stage by stage. Both have the same rows after every step. `SEED=` repeats one run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from catalog.engine.schema_change.bulk import BulkWrite
from catalog.engine.schema_change.bulk_verb import Verb
from catalog.engine.schema_change.change import SchemaChange
from catalog.engine.schema_change.folding import FoldingTask
from catalog.engine.schema_change.maintenance import reorganise
from catalog.engine.schema_change.types import TypeName, Value
from catalog.errors import CatalogError
from catalog.errors.tables import BulkWriteExpiredError, NotRevertibleError
from tests.engine.schema_change.bulk_steps import (
    PARENTS,
    assert_sound,
    commit,
    copied,
    merge,
    pinned,
    place_of,
    run_to,
    written,
)
from tests.engine.schema_change.stores import Disk, Process, Row

SEEDS = 60
STEPS = 25
CHILDREN = (
    "CREATE TABLE children (id BIGINT, a BIGINT, b STRING DEFAULT 'x', n INT, parent BIGINT, code STRING, "
    "PRIMARY KEY (id), CONSTRAINT up FOREIGN KEY (parent) REFERENCES parents (id))"
)
STATEMENTS = (
    "CREATE INDEX by_a ON children (a) INCLUDE (b)",
    "DROP INDEX by_a ON children",
    "ALTER TABLE children ADD CONSTRAINT one_a UNIQUE (a)",
    "ALTER TABLE children DROP CONSTRAINT one_a",
    "ALTER TABLE children ADD CONSTRAINT positive CHECK (a > 0)",
    "ALTER TABLE children ALTER COLUMN b SET NOT NULL",
    "ALTER TABLE children ADD CONSTRAINT coded FOREIGN KEY (code) REFERENCES parents (code)",
    "ALTER TABLE children DROP CONSTRAINT up",
    "ALTER TABLE children ADD COLUMN c BIGINT USING (id + 1)",
    "ALTER TABLE children ADD COLUMN d BIGINT GENERATED ALWAYS AS (id * 2)",
    "ALTER TABLE children ADD COLUMN e BIGINT DEFAULT 7",
    "ALTER TABLE children ALTER COLUMN a TYPE STRING",
    "ALTER TABLE children ALTER COLUMN n TYPE BIGINT",
    "ALTER TABLE children ALTER COLUMN b SET DEFAULT 'new'",
    "ALTER TABLE children DROP COLUMN n",
    "ALTER TABLE children ADD CONSTRAINT pk PRIMARY KEY (id, parent)",
    "ALTER TABLE parents ADD COLUMN e STRING DEFAULT 'e'",
    "CREATE INDEX by_code ON parents (code)",
    "DROP TABLE children",
)
VALUES: dict[str, tuple[Value, ...]] = {
    "id": (1, 2, 3, 4),
    "a": (1, 2, 3, -1, None),
    "b": ("x", "y", None),
    "n": (1, None),
    "parent": (1, 2, 3, None),
    "code": ("one", "two", "three", None),
}


@pytest.fixture(scope="module")
def made() -> Disk:
    disk = Disk()
    process = disk.open()
    process.ddl(PARENTS, CHILDREN)
    process.insert("parents", {"id": 1, "code": "one"}, {"id": 2, "code": "two"})
    process.insert("children", {"id": 1, "a": 1, "parent": 1}, {"id": 2, "a": 2, "b": "y", "code": "two"})
    merge(process)
    return disk


@dataclass
class Run:
    chance: Random
    process: Process
    """Where bulk writes are."""
    oracle: Process
    members: list[Process] = field(init=False)
    writes: list[tuple[str, Verb, list[Row], BulkWrite]] = field(default_factory=list)
    changes: tuple[SchemaChange, SchemaChange] | None = None
    """The one that is under way, in both stores."""
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.members = [self.process, self.process.disk.open("host-3:3")]

    def step(self) -> None:
        kinds: dict[Callable[[], None], int] = {
            self.transact: 4,
            self.register: 4,
            self.commit: 3 if self.writes else 0,
            self.submit: 0 if self.changes else 2,
            self.go_on: 6 if self.changes else 0,
            self.cancel: 1 if self.changes else 0,
            self.maintain: 1,
            self.die: 1 if self.writes else 0,
        }
        self.chance.choices(list(kinds), list(kinds.values()))[0]()
        self.compare()

    def compare(self) -> None:
        for name in ("parents", "children"):
            assert (name in self.process.tables) == (name in self.oracle.tables)
            if name in self.process.tables:
                assert _shown(self.process, name) == _shown(self.oracle, name), f"rows of {name}"

    def transact(self) -> None:
        table, verb, rows = self.wish()
        error = _attempt(lambda: written(self.process, table, verb, rows))
        expected = _attempt(lambda: written(self.oracle, table, verb, rows))
        assert bool(error) == bool(expected), f"{verb} {rows} of {table}: {error}, and {expected}"

    def register(self) -> None:
        table, verb, rows = self.wish()
        process = self.chance.choice(self.members)
        write: list[BulkWrite] = []
        error = _attempt(lambda: write.append(pinned(process, table, verb, rows)))
        if error is None:
            self.writes.append((table, verb, rows, write[0]))
        else:
            assert _attempt(lambda: written(self.oracle, table, verb, rows)), f"{verb} {rows} of {table}: {error}"
        self.seen["registered" if error is None else "refused at once"] += 1

    def commit(self) -> None:
        table, verb, rows, write = self.writes.pop(self.chance.randrange(len(self.writes)))
        derived = write.derived
        error = _attempt(lambda: commit(write))
        if isinstance(error, BulkWriteExpiredError):
            self.seen["expired"] += 1
            return
        expected = _attempt(lambda: written(self.oracle, table, verb, _fitting(self.oracle, table, rows)))
        assert bool(error) == bool(expected), f"{verb} {rows} of {table}: {error}, and {expected}"
        self.seen["derived again" if write.derived is not derived else "kept its files"] += 1
        self.seen["committed" if error is None else "refused late"] += 1

    def submit(self) -> None:
        statement = self.chance.choice(STATEMENTS)
        if _attempt(lambda: self.oracle.tables.plan(statement)) is None:
            self.changes = self.process.submit(statement), self.oracle.submit(statement)

    def go_on(self) -> None:
        assert self.changes is not None
        own, beside = self.changes
        self.process.owner.step(own.id)
        run_to(self.oracle, beside, place_of(self.process, own))
        if own.refresh().is_over:
            assert own.status is beside.refresh().status, f"{own.statement}: {own.status!r} and {beside.status!r}"
            self.seen[own.status.name] += 1
            self.changes = None

    def cancel(self) -> None:
        assert self.changes is not None
        own, beside = self.changes
        try:
            own.cancel()
        except NotRevertibleError:
            return
        beside.cancel()
        self.seen["CANCELLED"] += 1
        self.changes = None

    def maintain(self) -> None:
        task = self.chance.choice(list(FoldingTask))
        self.process.store.refresh()
        collection = self.chance.choice(sorted(self.process.store.view.collections()))
        with self.process.store.own():
            reorganise(self.process.store.replica, collection, task)

    def die(self) -> None:
        self.process.disk.signs.gone.add(self.chance.choice(self.writes)[3].id)

    def wish(self) -> tuple[str, Verb, list[Row]]:
        """Return a table, a verb, and rows with one set of columns."""
        chance = self.chance
        table = chance.choice(["parents", "children", "children"])
        verb = chance.choice(list(Verb))
        known = ["code"] if table == "parents" else ["a", "b", "n", "parent", "code"]
        names = ["id", *chance.sample(known, chance.randint(0, len(known)))]
        if verb is Verb.DELETE:
            names = ["id", "parent"] if table == "children" else ["id"]
        ids = chance.sample(VALUES["id"], chance.randint(1, 3))
        rows = [{name: chance.choice(VALUES[name]) for name in names} | {"id": number} for number in ids]
        return table, verb, _fitting(self.process, table, rows)

    def end(self) -> None:
        while self.writes:
            self.commit()
        while self.changes:
            self.go_on()
        self.compare()
        assert_sound(self.process)


def _attempt(work: Callable[[], object]) -> CatalogError | None:
    try:
        work()
    except CatalogError as error:
        return error
    return None


def _fitting(process: Process, table: str, rows: list[Row]) -> list[Row]:
    """Return rows in the types that columns have by now."""
    process.store.refresh()
    schema = process.store.replica.schemas.get(process.tables.names.table_id(table) or 0)
    kinds = {} if schema is None else {column.name: column.type.name for column in schema.readable}
    if kinds.get("a") is not TypeName.STRING:
        return rows
    return [{name: str(v) if name == "a" and isinstance(v, int) else v for name, v in row.items()} for row in rows]


def _shown(process: Process, table: str) -> list[Row] | None:
    found: list[list[Row]] = []
    _attempt(lambda: found.append(process.rows(table)))
    return found[0] if found else None


def run(made: Disk, seed: str) -> Counter[str]:
    chance = Random(seed)  # noqa: S311 - a test's chance
    walk = Run(chance, copied(made).open(), copied(made).open())
    try:
        for _ in range(STEPS):
            walk.step()
        walk.end()
    except Exception as error:
        error.add_note(f"SEED={seed}")
        raise
    return walk.seen


def test_bulk_writes_equal_transactions_in_their_place(made: Disk) -> None:
    """In whatever order they meet; and everything that can happen to them does happen."""
    if seed := os.environ.get("SEED"):
        run(made, seed)
        return
    seen = Counter[str]()
    for number in range(SEEDS):
        seen += run(made, str(number))
    wanted = {
        "registered",
        "refused at once",
        "derived again",
        "kept its files",
        "committed",
        "refused late",
        "expired",
    }
    assert seen.keys() >= {*wanted, "SUCCEEDED", "FAILED", "CANCELLED"}, seen
