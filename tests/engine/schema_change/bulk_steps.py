"""Bulk writes step by step, as tests drive them, and what must be true of tables after each."""

from __future__ import annotations

import sys
from itertools import count

from catalog.engine.schema_change.bulk import BulkWrite
from catalog.engine.schema_change.bulk_verb import Verb
from catalog.engine.schema_change.change import SchemaChange
from catalog.engine.schema_change.checking import check_table
from catalog.engine.schema_change.derive import stored_row
from catalog.engine.schema_change.folding import FoldingTask
from catalog.engine.schema_change.frames import frame_rows
from catalog.engine.schema_change.maintenance import reorganise
from catalog.engine.schema_change.plan import StageKind
from catalog.engine.schema_change.schema import STORING, State, TableState
from catalog.engine.schema_change.steps import ChangeStatus, stage_of
from catalog.engine.schema_change.types import Value
from tests.engine.schema_change.stores import Disk, Items, Observed, Process, Row

PARENTS = "CREATE TABLE parents (id BIGINT, code STRING, PRIMARY KEY (id), CONSTRAINT one_code UNIQUE (code))"
ITEMS = (
    "CREATE TABLE items (id BIGINT, a BIGINT, b STRING DEFAULT 'x', parent BIGINT, code STRING, "
    "twice BIGINT GENERATED ALWAYS AS (a * 2), PRIMARY KEY (id), CONSTRAINT one_a UNIQUE (a), "
    "CONSTRAINT small CHECK (a < 100), CONSTRAINT up FOREIGN KEY (parent) REFERENCES parents (id), "
    "CONSTRAINT coded FOREIGN KEY (code) REFERENCES parents (code))"
)


def copied(disk: Disk) -> Disk:
    """Return another store with all that one has; making tables takes longer than what is done to them."""
    memory = Observed()
    memory.commits, memory.states = dict(disk.memory.commits), dict(disk.memory.states)
    memory.files, memory.checkpointed = dict(disk.memory.files), disk.memory.checkpointed
    following = next(disk.items.numbers)
    disk.items.numbers = count(following)
    return Disk(memory, Items(dict(disk.items.names), count(following)))


def family() -> Disk:
    """Return a store with three parents and two items, which refer to them."""
    disk = Disk()
    process = disk.open()
    process.ddl(PARENTS, ITEMS, "CREATE INDEX by_b ON items (b) INCLUDE (a)")
    process.insert("parents", {"id": 1, "code": "one"}, {"id": 2, "code": "two"}, {"id": 3, "code": "three"})
    process.insert("items", {"id": 1, "a": 1, "parent": 1, "code": "one"}, {"id": 2, "a": 2, "b": "y"})
    merge(process)
    return disk


def merge(process: Process) -> None:
    """Leave one tail file in each collection, so that copies of the store are opened quickly."""
    for collection in sorted(process.store.view.collections()):
        with process.store.own():
            reorganise(process.store.replica, collection, FoldingTask.MERGE)


def pinned(process: Process, table: str, verb: Verb, rows: list[Row]) -> BulkWrite:
    """Register a bulk write, derive and check it; it is not committed, and released if it fails."""
    schema = process.schema(table)
    found = frame_rows(schema, rows, ())
    columns = frozenset(number for row in found for number in row)
    write = BulkWrite(process.tables, schema.id, verb, columns, made_for=schema)
    try:
        write.pin()
        write.derive(found)
        write.check()
    except BaseException:
        write.release()
        raise
    return write


def commit(write: BulkWrite) -> int:
    """Commit a bulk write; release it if it fails."""
    try:
        return write.tables.store.commit(write.draft)
    except BaseException:
        write.release()
        raise


def written(process: Process, table: str, verb: Verb, rows: list[Row]) -> int:
    """Do in one transaction what a bulk write does."""

    def key(row: Row) -> dict[str, Value]:
        schema = process.schema(table)
        return {column.name: row[column.name] for column in schema.key_columns()}

    with process.tables.transaction() as tx:
        for row in rows:
            match verb:
                case Verb.APPEND:
                    tx.insert(table, row)
                case Verb.UPSERT:
                    tx.upsert(table, row)
                case Verb.DELETE if tx.get(table, key(row)) is not None:
                    tx.delete(table, key(row))
                case Verb.DELETE:
                    pass
    return process.store.ts


def assert_sound(process: Process) -> None:
    """Every index equals what its rows give, public constraints hold, and no bulk write is registered."""
    process.store.refresh()
    replica = process.store.replica
    assert not replica.bulk_writes()
    named = {element.collection for schema in replica.schemas.values() for element in schema.elements}
    assert {name for name in replica.view.collections() if name[1:].isdecimal()} <= named
    for schema in replica.schemas.values():
        if schema.state is not TableState.PUBLIC:
            continue
        codec = replica.codecs.of(schema)
        rows = [codec.row(key, value) for key, value in replica.view.rows(schema.collection)]
        for element in schema.elements:
            is_complete = element.built or element.state is State.PUBLIC
            if element.kind in STORING and is_complete and element.support in {0, schema.primary.id}:
                wanted = sorted(stored_row(codec, element, row)[0] for row in rows)
                found = [key for key, _ in replica.view.rows(element.collection)]
                assert found == wanted, f"{element.name} of {schema.name} differs from its rows"
        assert check_table(replica, schema).findings == ()


def place_of(process: Process, change: SchemaChange) -> int:
    """Return the stage of a change that counts for writers: what is announced and not closed does not."""
    row = process.tables.change_message(change.id)
    if ChangeStatus(row.status).is_over:
        return sys.maxsize
    return row.stage - 1 if row.stages and stage_of(row).kind is StageKind.CLOSE else row.stage


def run_to(process: Process, change: SchemaChange, place: int) -> None:
    """Carry a change on to a stage, or to its end."""
    while not change.refresh().is_over and place_of(process, change) < place:
        process.owner.step(change.id)


def by_id(process: Process, table: str) -> dict[Value, Row]:
    return {row["id"]: row for row in process.rows(table)}
