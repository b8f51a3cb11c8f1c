"""Bulk writes: rows in one commit, constraints, and transactions and other bulk writes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from catalog import open_catalog
from catalog.engine.log.protocol import FaultPoint, FileKind, Operation
from catalog.engine.schema_change import bulk
from catalog.engine.schema_change.bulk_verb import Verb
from catalog.engine.schema_change.folding import FoldingTask
from catalog.engine.schema_change.maintenance import reorganise
from catalog.engine.schema_change.transaction import TableTransaction
from catalog.errors import CatalogError, KeyExistsError
from catalog.errors.tables import (
    BulkWriteExpiredError,
    CheckError,
    ExpressionFailedError,
    ForeignKeyError,
    NotNullError,
    SchemaChangedError,
    UnfitFrameError,
    UniqueError,
    UnknownTableError,
)
from tests.engine.schema_change.bulk_steps import (
    ITEMS,
    PARENTS,
    assert_sound,
    by_id,
    commit,
    copied,
    family,
    pinned,
    written,
)
from tests.engine.schema_change.stores import Disk, Point, Process, Row

APPEND, UPSERT, DELETE = Verb.APPEND, Verb.UPSERT, Verb.DELETE


@pytest.fixture(scope="module")
def made() -> Disk:
    return family()


@pytest.fixture
def disk(made: Disk) -> Disk:
    return copied(made)


@pytest.fixture
def member(disk: Disk) -> Process:
    """A process over three parents and two items."""
    return disk.open()


@pytest.fixture
def other(disk: Disk, member: Process) -> Process:
    assert member.rows("items")
    return disk.open("host-2:2")


def test_a_bulk_write_is_one_commit(member: Process) -> None:
    """Columns that are left out have their defaults in new rows and stay as they are in others."""
    ts = member.tables["items"].append([{"id": 3, "a": 3}, {"id": 4, "b": None}])
    assert member.log.commit(ts).operation is Operation.LOAD
    member.tables["items"].upsert([{"id": 2, "a": 9}, {"id": 5}])
    member.tables["items"].delete([{"id": 4}, {"id": 77}])
    assert by_id(member, "items") == {
        1: {"id": 1, "a": 1, "b": "x", "parent": 1, "code": "one", "twice": 2},
        2: {"id": 2, "a": 9, "b": "y", "parent": None, "code": None, "twice": 18},
        3: {"id": 3, "a": 3, "b": "x", "parent": None, "code": None, "twice": 6},
        5: {"id": 5, "a": None, "b": "x", "parent": None, "code": None, "twice": None},
    }
    assert member.rows("items", ts - 1) == member.rows("items", ts - 2)
    assert_sound(member)


def test_an_empty_frame_is_no_commit(member: Process) -> None:
    """The ts is the present one."""
    before = member.store.refresh()
    frames: tuple[object, ...] = [], pa.table({"id": pa.array([], pa.int64())})
    for frame in frames:
        for write in (member.tables["items"].append, member.tables["items"].upsert, member.tables["items"].delete):
            assert write(frame) == before
    assert member.store.refresh() == before


def test_rows_may_depend_on_each_other(member: Process) -> None:
    """Constraints are judged with all rows of the write: values are swapped, a tree comes in whatever order."""
    member.tables["items"].upsert([{"id": 1, "a": 2}, {"id": 2, "a": 1}])
    member.ddl(
        "CREATE TABLE tree (id BIGINT, up BIGINT, PRIMARY KEY (id), "
        "CONSTRAINT root FOREIGN KEY (up) REFERENCES tree (id))"
    )
    member.tables["tree"].append([{"id": 3, "up": 2}, {"id": 2, "up": 1}, {"id": 1}])
    with pytest.raises(ForeignKeyError):
        member.tables["tree"].delete([{"id": 1}])
    member.tables["tree"].delete([{"id": 1}, {"id": 2}, {"id": 3}])
    assert member.rows("tree") == []
    assert_sound(member)


@pytest.mark.parametrize(
    ("verb", "rows", "error"),
    [
        (APPEND, [{"id": 9}, {"id": 1}], KeyExistsError),
        (APPEND, [{"id": 9}, {"id": 9}], UnfitFrameError),
        (DELETE, [{"id": 2}, {"id": 2}], UnfitFrameError),
        (UPSERT, [{"id": 9}, {"id": None}], UnfitFrameError),
        (UPSERT, [{"a": 9}], UnfitFrameError),
        (APPEND, [{"id": 9, "a": 9}, {"id": 8, "a": 9}], UniqueError),
        (UPSERT, [{"id": 9, "a": 2}], UniqueError),
        (UPSERT, [{"id": 9, "a": 9}, {"id": 2, "a": 100}], CheckError),
        (UPSERT, [{"id": 2, "parent": 7}], ForeignKeyError),
        (APPEND, [{"id": 8}, {"id": 9, "code": "seven"}], ForeignKeyError),
        (UPSERT, [{"id": 9, "a": -(2**62) - 1}], ExpressionFailedError),
        (UPSERT, [{"id": 9, "twice": 4}], UnfitFrameError),
        (UPSERT, [{"id": 9, "nothing": 4}], UnfitFrameError),
        (UPSERT, [{"id": 9, "a": "four"}], UnfitFrameError),
    ],
)
def test_all_or_nothing(member: Process, verb: Verb, rows: list[Row], error: type[CatalogError]) -> None:
    """A write that fails leaves no row and no registration."""
    before = member.rows("items")
    with pytest.raises(error):
        getattr(member.tables["items"], verb.value)(rows)
    assert member.rows("items") == before
    assert_sound(member)


@pytest.mark.parametrize(("verb", "rows"), [(DELETE, [{"id": 1}]), (UPSERT, [{"id": 1, "code": "other"}])])
def test_rows_that_are_referred_to_stay(member: Process, verb: Verb, rows: list[Row]) -> None:
    """By their key, and by a unique value."""
    with pytest.raises(ForeignKeyError):
        getattr(member.tables["parents"], verb.value)(rows)
    member.tables["items"].delete([{"id": 1}])
    getattr(member.tables["parents"], verb.value)(rows)
    assert_sound(member)


def test_not_null_is_checked(member: Process) -> None:
    """A default satisfies it; NULL that is set does not."""
    member.ddl("ALTER TABLE items ALTER COLUMN b SET NOT NULL")
    member.tables["items"].append([{"id": 3}])
    with pytest.raises(NotNullError):
        member.tables["items"].append([{"id": 4, "b": None}])


def test_a_table_without_a_key_numbers_its_rows(member: Process) -> None:
    """An upsert adds rows, as it does in a transaction; rows without a key cannot be named."""
    member.ddl("CREATE TABLE notes (text STRING)")
    before = member.store.refresh()
    ts = member.tables["notes"].append([{"text": "a"}, {"text": "a"}] * 100)
    assert ts - before == 3, "numbers, registration, rows"
    member.tables["notes"].upsert(pa.table({"text": ["b"]}))
    member.insert("notes", {"text": "c"})
    assert [row["text"] for row in member.rows("notes")].count("a") == 200
    assert len(member.rows("notes")) == 202
    with pytest.raises(UnfitFrameError, match="no primary key"):
        member.tables["notes"].delete([{"text": "a"}])


def test_parts_of_a_key_may_have_defaults(member: Process) -> None:
    """Only a removal names the whole key."""
    member.ddl("CREATE TABLE pairs (a BIGINT, b BIGINT DEFAULT 7, PRIMARY KEY (a, b))")
    member.tables["pairs"].append([{"a": 1}, {"a": 1, "b": 8}])
    assert member.rows("pairs") == [{"a": 1, "b": 7}, {"a": 1, "b": 8}]
    with pytest.raises(UnfitFrameError, match="the column b is missing"):
        member.tables["pairs"].delete([{"a": 1}])
    with pytest.raises(UnfitFrameError, match="there twice"):
        member.tables["pairs"].upsert([{"a": 2}, {"a": 2, "b": 7}])


def _insert(**row: object) -> Callable[[Process], object]:
    return lambda process: process.insert("items", row)  # type: ignore[arg-type]


def _update(table: str, number: int, **values: object) -> Callable[[Process], object]:
    return lambda process: process.write(lambda tx: tx.update(table, {"id": number}, values))  # type: ignore[arg-type]


def _delete(table: str, *numbers: int) -> Callable[[Process], object]:
    def work(tx: TableTransaction) -> None:
        for number in numbers:
            tx.delete(table, {"id": number})

    return lambda process: process.write(work)


MEANWHILE: dict[str, Callable[[Process], object]] = {
    "nothing": lambda _process: None,
    "inserts a new key": _insert(id=3, b="other"),
    "inserts and removes a new key": lambda p: (_insert(id=3)(p), _delete("items", 3)(p)),
    "updates another column": _update("items", 1, parent=3),
    "updates the same columns": _update("items", 1, a=50, b="other"),
    "sets what the write sets": _update("items", 1, a=10, b="z"),
    "removes a row": _delete("items", 2),
    "removes and inserts a row": lambda p: (_delete("items", 2)(p), _insert(id=2, a=60, b="back")(p)),
    "takes a unique value": _insert(id=20, a=10),
    "takes a unique value and gives it back": lambda p: (_insert(id=20, a=10)(p), _update("items", 20, a=61)(p)),
    "takes a unique value that is given up": lambda p: (_update("items", 1, a=62)(p), _insert(id=20, a=1)(p)),
    "moves a row to another key": lambda p: p.write(lambda tx: tx.update("items", {"id": 1}, {"id": 21})),
    "removes a parent": _delete("parents", 2),
    "gives a parent another code": _update("parents", 2, code="zwei"),
    "makes a child": _insert(id=22, parent=2),
    "makes a child by code": _insert(id=22, code="two"),
    "writes other rows in bulk": lambda p: p.tables["items"].upsert([{"id": 40, "a": 40}]),
    "writes the same rows in bulk": lambda p: p.tables["items"].upsert([{"id": 1, "a": 70}, {"id": 3, "a": 71}]),
    "takes a unique value in bulk": lambda p: p.tables["items"].append([{"id": 20, "a": 10}]),
    "removes a parent in bulk": lambda p: p.tables["parents"].delete([{"id": 2}]),
    "makes a child in bulk": lambda p: p.tables["items"].append([{"id": 22, "parent": 2, "code": "two"}]),
    "removes rows in bulk": lambda p: p.tables["items"].delete([{"id": 1}, {"id": 2}]),
}
WRITES: dict[str, tuple[str, Verb, list[Row]]] = {
    "append": ("items", APPEND, [{"id": 3, "a": 10, "b": "z", "parent": 2}, {"id": 4, "a": 11}]),
    "append by code": ("items", APPEND, [{"id": 3, "a": 10, "code": "two"}]),
    "upsert": ("items", UPSERT, [{"id": 1, "a": 10, "b": "z"}, {"id": 2, "a": 1}, {"id": 3, "a": 2}]),
    "upsert of one column": ("items", UPSERT, [{"id": 1, "parent": 2}, {"id": 3}]),
    "upsert that changes nothing": ("items", UPSERT, [{"id": 1, "a": 1, "b": "x"}, {"id": 2, "b": "y"}]),
    "delete": ("items", DELETE, [{"id": 1}, {"id": 3}, {"id": 20}]),
    "delete of a parent": ("parents", DELETE, [{"id": 2}, {"id": 9}]),
    "upsert of a parent": ("parents", UPSERT, [{"id": 2, "code": "drei"}, {"id": 9, "code": "neun"}]),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_ends_as_if_it_had_begun_just_now(
    monkeypatch: pytest.MonkeyPatch, made: Disk, write: str, meanwhile: str
) -> None:
    """Whatever others commit in between: the same rows, or the same error, as of a transaction in its place."""
    table, verb, rows = WRITES[write]
    ends = []
    for rebased_max in (bulk.REBASED_MAX, 0, None):  # of rows as tails, as files, and a transaction
        process = copied(made).open()
        early = None
        if rebased_max is not None:
            monkeypatch.setattr(bulk, "REBASED_MAX", rebased_max)
            early = pinned(process, table, verb, rows)
        MEANWHILE[meanwhile](process.disk.open("host-2:2"))
        error = None
        try:
            commit(early) if early else written(process, table, verb, rows)
        except CatalogError as raised:
            error = type(raised)
        assert_sound(process)
        ends.append((process.rows("items"), process.rows("parents"), error))
    assert ends[0] == ends[1] == ends[2]


def test_only_rows_that_were_touched_are_derived_again(member: Process, other: Process) -> None:
    """The others stay in the files that were made before."""
    write = pinned(member, "items", UPSERT, [{"id": number, "a": number} for number in range(10, 40)])
    files = {file.path for own in write.derived.files.values() for file in own}
    other.insert("items", {"id": 11, "b": "other"}, {"id": 50})
    ts = commit(write)
    adds = member.log.commit(ts).adds
    assert {file.path for file in adds if file.kind is FileKind.LAYER} == files
    rows = member.schema("items").collection
    assert [file.rows for file in adds if file.kind is FileKind.TAIL and file.collection == rows] == [1]


def test_two_writes_of_the_same_rows_both_count(member: Process, other: Process) -> None:
    """The later commit is on top; of an append the second one is refused."""
    one = pinned(member, "items", UPSERT, [{"id": 1, "a": 10}, {"id": 3, "a": 11}])
    two = pinned(other, "items", UPSERT, [{"id": 1, "b": "two"}, {"id": 3, "a": 12}])
    first, second = (pinned(process, "items", APPEND, [{"id": 4}]) for process in (member, other))
    commit(two)
    commit(one)
    commit(second)
    with pytest.raises(KeyExistsError):
        commit(first)
    found = by_id(member, "items")
    assert (found[1]["a"], found[1]["b"], found[3]["a"]) == (10, "two", 11)
    assert_sound(member)


def test_files_that_are_not_committed_do_no_harm(member: Process, other: Process) -> None:
    """A write that was given up, or never ended, is not seen by anybody."""
    before = member.rows("items")
    write = pinned(member, "items", UPSERT, [{"id": 1, "a": 10}, {"id": 3}])
    pinned(member, "items", UPSERT, [{"id": 1, "a": 20}])
    write.release()
    write.release()
    assert other.rows("items") == before
    with pytest.raises(BulkWriteExpiredError, match="no longer registered"):
        commit(write)
    assert other.rows("items") == before


def test_rows_are_moved_in_the_store_meanwhile(member: Process, other: Process) -> None:
    """Files are merged, spilled and folded while a write is under way, and after it."""
    write = pinned(member, "items", UPSERT, [{"id": 1, "a": 10, "b": "z"}, {"id": 2, "b": None}, {"id": 3}])
    for task in (FoldingTask.MERGE, FoldingTask.SPILL, FoldingTask.FOLD):
        other.write(lambda tx: tx.upsert("items", {"id": 2, "parent": 1}))
        for collection in sorted(other.collections()):
            with other.store.own():
                reorganise(other.store.replica, collection, task)
    commit(write)
    expected = by_id(member, "items")
    assert expected[2] == {"id": 2, "a": 2, "b": None, "parent": 1, "code": None, "twice": 4}
    for collection in sorted(other.collections()):
        with other.store.own():
            reorganise(other.store.replica, collection, FoldingTask.FOLD)
    assert by_id(other, "items") == expected
    assert_sound(other)


def test_a_feed_has_the_rows_of_bulk_writes(member: Process, other: Process) -> None:
    """Each change once, with the row that was replaced; rows that stayed as they were are no changes."""
    since = member.store.refresh()
    write = pinned(member, "parents", UPSERT, [{"id": 1, "code": "one"}, {"id": 2, "code": "zwei"}, {"id": 4}])
    other.write(lambda tx: tx.update("parents", {"id": 2}, {"code": "deux"}))
    ts = commit(write)
    member.tables["parents"].delete([{"id": 4}])
    found = [(row["id"], row["code"], at - ts, diff) for row, at, diff in member.tables["parents"].subscribe(since)]
    assert found == [
        (2, "two", -1, -1),
        (2, "deux", -1, 1),
        (2, "deux", 0, -1),
        (2, "zwei", 0, 1),
        (4, None, 0, 1),
        (4, None, 2, -1),
    ]


def test_a_write_that_loses_races_is_drafted_again(disk: Disk) -> None:
    """Every commit that comes first is taken into account; what was derived anew for one is kept for the next."""
    other, rivals = disk.open("host-2:2"), list[Callable[[Process], object]]()

    def overtake(point: Point) -> None:
        if point is FaultPoint.COMMIT_BEFORE_LOG and rivals:
            rivals.pop(0)(other)

    member = disk.open(hook=overtake)
    write = pinned(member, "items", UPSERT, [{"id": 1, "a": 10}, {"id": 2, "b": "z"}])
    build = lambda process: process.ddl("CREATE INDEX by_parent ON items (parent)")  # noqa: E731
    rivals += [_update("items", 1, b="1"), build, _update("items", 2, a=33), _insert(id=30), _delete("items", 1)]
    commit(write)
    found = by_id(member, "items")
    assert (found[1]["a"], found[1]["b"], found[2]["a"], found[2]["b"]) == (10, "x", 33, "z")
    assert not rivals
    assert_sound(member)


def test_a_write_that_is_interrupted_releases_its_registration(
    member: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whatever step, by whatever."""
    before = member.rows("items")
    for step in ("pin", "derive", "check", "draft"):
        with monkeypatch.context() as patched:

            def stop(*_arguments: object) -> None:
                raise KeyboardInterrupt

            patched.setattr(bulk.BulkWrite, step, stop)
            with pytest.raises(KeyboardInterrupt):
                member.tables["items"].append([{"id": 9}])
        assert_sound(member)
    assert member.rows("items") == before


def test_the_error_of_a_write_is_not_hidden_by_its_release(member: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registration is left to the next close."""

    def fail(_self: object) -> None:
        raise SchemaChangedError("items", 1, "the store is not there")

    monkeypatch.setattr(bulk.BulkWrite, "release", fail)
    with pytest.raises(KeyExistsError):
        member.tables["items"].append([{"id": 1}])


def test_a_killed_write_is_removed_by_the_next_close(member: Process, other: Process) -> None:
    """Once its sign is dead; what it would commit is refused from then on."""
    write = pinned(member, "items", UPSERT, [{"id": 1, "a": 10}])
    other.disk.signs.gone.add(write.id)
    other.tables.execute("CREATE INDEX by_parent ON items (parent)", patience_s=60)
    assert not other.store.replica.bulk_writes()
    with pytest.raises(BulkWriteExpiredError):
        commit(write)
    assert by_id(other, "items")[1]["a"] == 1
    assert_sound(other)


def test_a_table_that_is_gone_cannot_be_written(member: Process, other: Process) -> None:
    """A handle of it says so, whatever it knew."""
    table = member.tables["items"]
    other.ddl("DROP TABLE items")
    with pytest.raises(UnknownTableError):
        table.append([{"id": 9}])
    assert_sound(member)


def test_bulk_writes_to_a_store_in_a_folder(tmp_path: Path) -> None:
    """The same on the log that is used: two processes, rows of one are rebased over those of the other."""
    with open_catalog(tmp_path / "store", "leader") as catalog, open_catalog(tmp_path / "store", "member") as second:
        for statement in (PARENTS, ITEMS):
            catalog.tables.execute(statement)
        catalog.tables["parents"].append(pa.table({"id": [1, 2], "code": ["one", "two"]}))
        items = catalog.tables["items"]
        items.append(pa.table({"id": range(5000), "a": pa.array([None] * 5000, pa.int64()), "b": ["v"] * 5000}))
        schema = items.schema
        number, a = schema.column("id").id, schema.column("a").id
        write = bulk.BulkWrite(catalog.tables, schema.id, UPSERT, frozenset({number, a}))
        write.pin()
        write.derive([{number: key, a: key % 100} for key in range(100)])
        write.check()
        second.tables["items"].upsert(pa.table({"id": [7, 6000], "b": ["other", "new"], "parent": [1, 2]}))
        with pytest.raises(UniqueError):
            second.tables["items"].append([{"id": 7000, "a": 8}, {"id": 7001, "a": 8}])
        catalog.tables.store.commit(write.draft)
        found = {row["id"]: row for row in second.tables["items"].rows()}
        assert (len(found), found[7]["a"], found[7]["b"], found[8]["b"]) == (5001, 7, "other", "v")
        second.tables["items"].delete(pa.table({"id": range(100, 5000)}))
        assert len(list(catalog.tables["items"].rows())) == 101
        catalog.tables.refresh()
        assert not catalog.tables.store.replica.bulk_writes()
