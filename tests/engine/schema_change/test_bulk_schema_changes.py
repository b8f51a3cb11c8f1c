"""Bulk writes while schemas change: each kind of change, with every step of it between registration and commit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import pytest

from catalog.engine.schema_change.bulk_verb import Verb
from catalog.engine.schema_change.change import SchemaChange
from catalog.engine.schema_change.steps import ChangeStatus
from catalog.engine.schema_change.types import TypeName, Value
from catalog.errors import ConstraintError
from catalog.errors.tables import (
    BulkWriteExpiredError,
    NotRevertibleError,
    SchemaChangedError,
    UnfitFrameError,
    UnknownColumnError,
    UnknownTableError,
)
from tests.engine.schema_change.bulk_steps import (
    assert_sound,
    by_id,
    commit,
    copied,
    family,
    merge,
    pinned,
    place_of,
    run_to,
    written,
)
from tests.engine.schema_change.stores import Disk, Process, Row

APPEND, UPSERT, DELETE = Verb.APPEND, Verb.UPSERT, Verb.DELETE
PLAIN = (
    "CREATE TABLE plain (id BIGINT, a BIGINT, b STRING DEFAULT 'x', n INT, parent BIGINT, code STRING, "
    "PRIMARY KEY (id))"
)
STATEMENTS = {
    "index": "CREATE INDEX by_a ON plain (a) INCLUDE (n)",
    "unique": "ALTER TABLE plain ADD CONSTRAINT one_a UNIQUE (a)",
    "check": "ALTER TABLE plain ADD CONSTRAINT positive CHECK (a > 0)",
    "not null": "ALTER TABLE plain ALTER COLUMN a SET NOT NULL",
    "foreign key": "ALTER TABLE plain ADD CONSTRAINT up FOREIGN KEY (parent) REFERENCES parents (id)",
    "foreign key to a unique": "ALTER TABLE plain ADD CONSTRAINT up FOREIGN KEY (code) REFERENCES parents (code)",
    "column with a default": "ALTER TABLE plain ADD COLUMN c BIGINT DEFAULT 4",
    "column with a fill": "ALTER TABLE plain ADD COLUMN c BIGINT USING (a + 1)",
    "computed column": "ALTER TABLE plain ADD COLUMN c BIGINT GENERATED ALWAYS AS (a + 1)",
    "unique column with a fill": "ALTER TABLE plain ADD COLUMN c BIGINT USING (a + id) UNIQUE",
    "dropped column": "ALTER TABLE plain DROP COLUMN code",
    "other dropped column": "ALTER TABLE plain DROP COLUMN n",
    "type": "ALTER TABLE plain ALTER COLUMN a TYPE STRING",
    "type of an indexed column": "ALTER TABLE plain ALTER COLUMN b TYPE BINARY",
    "wider type": "ALTER TABLE plain ALTER COLUMN n TYPE BIGINT",
    "primary key": "ALTER TABLE plain ADD CONSTRAINT pk PRIMARY KEY (id, a)",
    "default": "ALTER TABLE plain ALTER COLUMN b SET DEFAULT 'new'",
    "renamed column": "ALTER TABLE plain RENAME COLUMN n TO m",
    "dropped index": "DROP INDEX by_b ON plain",
    "renamed table": "ALTER TABLE plain RENAME TO other",
    "dropped table": "DROP TABLE plain",
}
GOOD: tuple[Row, ...] = (
    {"id": 1, "a": 10, "b": "z", "parent": 2, "code": "two"},
    {"id": 2, "a": 2, "b": "z", "parent": None, "code": "one"},
    {"id": 5, "a": 12, "b": "w", "parent": 1, "code": None},
)
WRITES: dict[str, tuple[Verb, list[Row]]] = {
    "upsert": (UPSERT, [dict(row) for row in GOOD]),
    "sparse upsert": (UPSERT, [{"id": 1, "a": 10}, {"id": 2}, {"id": 5, "a": 12}]),
    "violating upsert": (
        UPSERT,
        [{"id": 1, "a": 3, "parent": 9, "code": "none"}, {"id": 5, "a": None}, {"id": 6, "a": -1}],
    ),
    "append": (APPEND, [{"id": 5, "a": 12, "parent": 3}, {"id": 6, "a": 13}]),
    "delete": (DELETE, [{"id": 1}, {"id": 3}, {"id": 77}]),
}
PLACES = 12
"""For registration and commit that are tried of each change; another SEED tries others."""


@pytest.fixture(scope="module")
def made() -> Disk:
    disk = family()
    process = disk.open()
    process.ddl("DROP TABLE items", PLAIN, "CREATE INDEX by_b ON plain (b)")
    rows: list[Row] = [{"id": n, "a": n, "n": n, "parent": 1, "code": "one"} for n in (1, 2, 3)]
    process.insert("plain", *rows, {"id": 4, "a": 44, "b": None})
    merge(process)
    return disk


@dataclass
class Scene:
    """A change that another process carries out, step by step."""

    owner: Process
    change: SchemaChange

    @classmethod
    def of(cls, made: Disk, statement: str) -> Scene:
        owner = copied(made).open("host-2:2")
        return cls(owner, owner.submit(STATEMENTS[statement]))

    @property
    def is_over(self) -> bool:
        return self.change.refresh().is_over

    @property
    def table(self) -> str:
        """Return the name that the table has by now."""
        return "plain" if "plain" in self.owner.tables else "other"

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            if not self.is_over:
                self.owner.owner.step(self.change.id)

    @property
    def place(self) -> int:
        return place_of(self.owner, self.change)

    def run_to(self, place: int) -> None:
        run_to(self.owner, self.change, place)

    def write(self, verb: Verb, rows: list[Row]) -> None:
        """Write rows in a transaction, in the types that columns have by now."""
        kinds = {column.name: column.type.name for column in self.owner.schema(self.table).readable}
        fitting = [{key: _retyped(value, kinds.get(key)) for key, value in row.items()} for row in rows]
        written(self.owner, self.table, verb, fitting)

    def ending(self, error: str) -> tuple[object, ...]:
        """Let the change end; return all rows, the outcome of the change and the error of the write."""
        self.run_to(sys.maxsize)
        assert_sound(self.owner)
        rows = [self.owner.rows(name) for name in ("plain", "other", "parents") if name in self.owner.tables]
        return rows, self.change.refresh().status, error


def _retyped(value: Value, kind: TypeName | None) -> Value:
    match value, kind:
        case int(), TypeName.STRING:
            return str(value)
        case str(), TypeName.BINARY:
            return value.encode()
        case _:
            return value


@contextmanager
def refusal(statement: str) -> Iterator[list[str]]:
    """Note how a write is refused: by the constraint, or, for whatever other reason, as one that came too late."""
    found = [""]
    try:
        yield found
    except ConstraintError as error:
        found[0] = "refused" if statement == "primary key" else type(error).__name__
    except (SchemaChangedError, UnfitFrameError, UnknownTableError, UnknownColumnError, KeyError):
        found[0] = "refused"


def check(made: Disk, statement: str, write: str, begin: int, end: int) -> bool:
    """Compare a bulk write with a transaction in the place of its commit; tell if the change was over by then."""
    verb, rows = WRITES[write]
    scene = Scene.of(made, statement)
    scene.step(begin)
    with refusal(statement) as error:
        if scene.is_over:
            return True
        bulk = pinned(scene.owner.disk.open("host-3:3"), scene.table, verb, rows)
        scene.owner.insert("parents", {"id": 50})  # stages after it read later rows than the write
        scene.step(end - begin)
        commit(bulk)
    place = scene.place
    found = scene.ending(error[0])
    beside = Scene.of(made, statement)
    beside.run_to(place)
    with refusal(statement) as expected:
        beside.write(verb, rows)
    if 50 in by_id(scene.owner, "parents"):
        beside.owner.insert("parents", {"id": 50})
    assert found == beside.ending(expected[0]), f"{statement}, {write}: registered after {begin}, committed after {end}"
    return place == sys.maxsize


def steps_of(made: Disk, statement: str) -> int:
    """Return how many steps a change takes, those included that a bulk write makes necessary."""
    scene, count = Scene.of(made, statement), 0
    pinned(scene.owner.disk.open("host-3:3"), "plain", APPEND, [{"id": 100, "a": 100}])
    while not scene.is_over:
        scene.step()
        count += 1
    return count


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_write_ends_as_a_transaction_in_its_place(made: Disk, statement: str) -> None:
    """Whatever stages of a change came in between, by force where it was not waited for: no row is lost or wrong."""
    chance, steps = Random(f"{os.environ.get('SEED', '')} {statement}"), steps_of(made, statement)  # noqa: S311 - a test's chance
    places = [
        (write, begin, end) for write in WRITES for end in range(steps + 1) for begin in range(min(end + 1, steps))
    ]
    for place in chance.sample(places, min(PLACES, len(places))):
        check(made, statement, *place)


@pytest.mark.parametrize("statement", ["index", "unique", "column with a fill", "type", "primary key", "foreign key"])
def test_a_change_is_undone_beside_a_write(made: Disk, statement: str) -> None:
    """From whatever stage: files of elements that are gone are left out, and what they held is nowhere."""
    expected = Scene.of(made, statement)
    expected.change.cancel()
    expected.write(*WRITES["upsert"])
    for steps in range(steps_of(made, statement)):
        scene = Scene.of(made, statement)
        scene.step(steps // 2)
        write = pinned(scene.owner.disk.open("host-3:3"), "plain", *WRITES["upsert"])
        scene.step(steps - steps // 2)
        try:
            scene.change.cancel()
        except NotRevertibleError:
            assert scene.place > 0
            return
        commit(write)
        assert scene.ending("") == expected.ending(""), f"cancelled after {steps}"


def test_a_change_waits_for_a_write(made: Disk) -> None:
    """For as long as it has patience: a write that is not overtaken commits the files that it has."""
    scene = Scene.of(made, "index")
    scene.change = scene.owner.submit(STATEMENTS["unique"], patience_s=60)
    write = pinned(scene.owner.disk.open("host-3:3"), "plain", *WRITES["upsert"])
    files = {file.path for own in write.derived.files.values() for file in own}
    scene.step(8)
    assert scene.change.refresh().status is ChangeStatus.WAITING
    assert [waiting.version for waiting in scene.change.waiting_on] == [write.derived.schema.cur]
    ts = commit(write)
    assert files <= {file.path for file in scene.owner.log.commit(ts).adds}
    scene.run_to(sys.maxsize)
    assert scene.change.refresh().status is ChangeStatus.SUCCEEDED
    assert_sound(scene.owner)


def test_an_index_that_is_built_meanwhile_does_not_outweigh_a_write(made: Disk) -> None:
    """Entries are dated at the ts that was read, after the files of a write that was registered before."""
    scene = Scene.of(made, "index")
    scene.step(3)
    write = pinned(scene.owner.disk.open("host-3:3"), "plain", *WRITES["upsert"])
    scene.run_to(sys.maxsize)
    commit(write)
    with scene.owner.tables.transaction() as tx:
        assert tx.find("plain", a=1) == []
        assert [row["id"] for row in tx.find("plain", a=10)] == [1]
    assert_sound(scene.owner)


def test_a_write_that_is_not_waited_for_expires(made: Disk) -> None:
    """A dead one is removed by the close; it cannot commit, and leaves nothing."""
    scene = Scene.of(made, "check")
    scene.change = scene.owner.submit(STATEMENTS["check"], patience_s=60)
    before = scene.owner.rows("plain")
    write = pinned(scene.owner.disk.open("host-3:3"), "plain", *WRITES["violating upsert"])
    scene.owner.disk.signs.gone.add(write.id)
    scene.run_to(sys.maxsize)
    with pytest.raises(BulkWriteExpiredError):
        commit(write)
    assert scene.change.refresh().status is ChangeStatus.SUCCEEDED
    assert scene.owner.rows("plain") == before
    assert_sound(scene.owner)
