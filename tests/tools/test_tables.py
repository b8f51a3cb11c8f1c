"""Tables in copies, scratch copies, removals, compactions, vacuums, repairs, histories and the doctor."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from catalog import STASH_VERSION, open_catalog
from catalog.engine.base.fence import Fence
from catalog.engine.log.damaged_entry import Remedy
from catalog.engine.log.maintenance import Policy
from catalog.engine.log.protocol import AppTxn, FileKind
from catalog.engine.log.replica import newest_state
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.copying import copy_tables
from catalog.engine.schema_change.layers import LayerCache, LayeredView
from catalog.engine.schema_change.replica import BULK_WRITE, TablesReplica
from catalog.engine.schema_change.sizes import table_sizes
from catalog.engine.schema_change.steps import ChangeStatus
from catalog.engine.schema_change.store import Draft, TablesStore, put
from catalog.engine.schema_change.tables import Tables
from catalog.engine.store.scratch_copy import scratch_copy
from catalog.errors import CopyTargetError, FencedError, NoStoreError, RetiredError
from catalog.tools import copy as copying
from catalog.tools.anonymise import Anonymiser
from catalog.tools.compact import compact_store
from catalog.tools.copy import copy_store
from catalog.tools.doctor.runner import DoctorContext, Status
from catalog.tools.doctor.store_checks import check_log, check_migrations
from catalog.tools.fsck.store import check_store
from catalog.tools.history import CommitKind, read_tables_timeline
from catalog.tools.remove import plan_removal, remove_store
from catalog.tools.repair import diagnose, repair
from catalog.tools.vacuum import vacuum_store
from catalog.upgrade import PROJECT
from tests.tools.stores_with_tables import PEOPLE, begun, collection_of, commit, make, place_of, rows_of
from tests.upgrade.stores import files_of


def tables_log_of(store: Path, version: int) -> Path:
    return store / "tables" / "_delta_log" / f"{version:020d}.json"


def test_a_copy_has_the_tables_of_one_ts(tmp_path: Path) -> None:
    """With rows, indexes and constraints; the copy is sound, goes on by itself, and its source is as it was."""
    source = make(
        tmp_path / "store", "ALTER TABLE orders ADD CONSTRAINT buyer FOREIGN KEY (person) REFERENCES people (id)"
    )
    before = files_of(tmp_path / "store")
    copied = copy_store(source, place_of(tmp_path / "copy"))
    assert (copied.tables, copied.tables_ts) == (2, newest_state(source.tables_log()).version)
    assert copied.tables_left_out == 0
    assert files_of(tmp_path / "store") == before
    assert rows_of(tmp_path / "copy") == PEOPLE
    state = newest_state(place_of(tmp_path / "copy").tables_log())
    assert (state.version, state.frontier, {file.kind for file in state.files.values()}) == (1, 1, {FileKind.BASE})
    with open_catalog(tmp_path / "copy") as catalog, catalog.tables.transaction() as tx:
        assert [row["id"] for row in tx.find("people", email="bob@example.com")] == [8]
        tx.insert("people", {"id": 9, "email": "new"})
    assert not check_store(place_of(tmp_path / "copy"), every_state=True).findings


def test_a_copy_can_leave_the_tables_out(tmp_path: Path) -> None:
    """It says how many; the store is sound without them."""
    copied = copy_store(make(tmp_path / "store"), place_of(tmp_path / "copy"), with_tables=False)
    assert (copied.tables, copied.tables_ts, copied.tables_left_out) == (0, None, 2)
    assert not (tmp_path / "copy" / "tables").exists()
    assert not check_store(place_of(tmp_path / "copy")).findings


def test_an_anonymised_copy_has_no_tables(tmp_path: Path) -> None:
    """Their texts are as private as names are."""
    source = make(tmp_path / "store")
    copied = copy_store(source, place_of(tmp_path / "copy"), rewrite=Anonymiser.of(source))
    assert (copied.tables, copied.tables_left_out) == (0, 2)
    assert all(b"example.com" not in content for content in files_of(tmp_path / "copy").values())
    assert not (tmp_path / "copy" / "tables").exists()


def test_a_change_under_way_is_carried_on_in_the_copy(tmp_path: Path) -> None:
    """It has no owner there, and reads at a ts of the copy; bulk writes are not copied."""
    numbers: list[int] = []
    source = make(tmp_path / "store", more=lambda tables: numbers.append(begun(tables)))

    def pin(replica: TablesReplica) -> Draft:
        value = pb.BulkWriteValue(read_ts=replica.state.version)
        return Draft(rows={BULK_WRITE: put(replica, BULK_WRITE, pb.BulkWriteKey(id="bulk-1"), value)})

    commit(source, pin)
    copy_store(source, place_of(tmp_path / "copy"))
    with open_catalog(tmp_path / "copy") as catalog:
        row = catalog.tables.change_message(numbers[0])
        assert (row.owner, row.read_ts, ChangeStatus(row.status)) == ("", 0, ChangeStatus.RUNNING)
        assert catalog.tables.store.replica.bulk_writes() == {}
        assert [change.status for change in catalog.tables.adopt()] == [ChangeStatus.SUCCEEDED]
        with catalog.tables.transaction() as tx:
            assert [row["id"] for row in tx.find("orders", person=7)] == [1]
    assert not check_store(place_of(tmp_path / "copy")).findings


def test_a_copy_begins_again_if_the_tables_are_retired_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first attempt wrote is not left behind."""
    source, attempts = make(tmp_path / "store"), list[int]()

    def retired_once(log: object, state: object, target: object) -> object:
        attempts.append(1)
        done = copy_tables(log, state, target)  # type: ignore[arg-type]
        if len(attempts) == 1:
            raise RetiredError("tables", 1, 2)
        return done

    monkeypatch.setattr(copying, "copy_tables", retired_once)
    copy_store(source, place_of(tmp_path / "copy"))
    assert len(attempts) == 2
    assert rows_of(tmp_path / "copy") == PEOPLE
    assert not check_store(place_of(tmp_path / "copy")).findings


def test_a_failed_copy_leaves_nothing_of_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the remains of one that was killed are named."""
    source = make(tmp_path / "store")

    def fail(*_: object) -> None:
        raise OSError("no more")

    monkeypatch.setattr(copying, "copy_state", fail)
    with pytest.raises(OSError, match="no more"):
        copy_store(source, place_of(tmp_path / "copy"))
    assert not (tmp_path / "copy" / "tables").exists()
    (tmp_path / "copy" / "tables").mkdir(parents=True)
    (tmp_path / "copy" / "tables" / "x").write_text("x")
    with pytest.raises(CopyTargetError, match=r"remove .*copy/tables"):
        copy_store(source, place_of(tmp_path / "copy"))


def test_a_savepoint_writes_tables_of_its_own(tmp_path: Path) -> None:
    """Nothing of it is left."""
    make(tmp_path / "store")
    before = files_of(tmp_path / "store")
    with open_catalog(tmp_path / "store", "savepoint") as catalog:
        with catalog.tables.transaction() as tx:
            tx.delete("people", {"id": 8})
        catalog.tables.execute("ALTER TABLE people ADD COLUMN age INT")
        assert list(catalog.tables["people"].rows()) == [{**PEOPLE[0], "age": None}]
    assert files_of(tmp_path / "store") == before
    assert rows_of(tmp_path / "store") == PEOPLE


def test_read_only_serves_the_tables_of_an_older_store_itself(tmp_path: Path, store_at: Callable[[int], Path]) -> None:
    """Its stash is an upgraded scratch copy; tables have no version that could be older. Trials leave them alone."""
    make(tmp_path / "newer")
    older = store_at(STASH_VERSION - 1)
    shutil.copytree(tmp_path / "newer" / "tables", older / "tables")
    with open_catalog(older, "read-only") as catalog:
        assert catalog.version == STASH_VERSION
        assert catalog.tables.store.log.uri == f"{older}/tables"
        assert list(catalog.tables) == ["public.orders", "public.people"]
    log = place_of(older).log()
    trial = scratch_copy(place_of(older), log, newest_state(log), tmp_path / "trial", with_shards=True)
    assert not (Path(trial.uri) / "tables").exists()


def test_a_removal_takes_the_tables_and_fences_who_writes_them(tmp_path: Path) -> None:
    """With signs of life, and folders that are empty; other files stay and are told."""
    place = make(tmp_path / "store", more=begun)
    (tmp_path / "store" / "heartbeats" / "tables" / "bulk-1.json").write_text("{}")
    (tmp_path / "store" / "tables" / "notes.txt").write_text("mine")
    writer = TablesStore.open(place.tables_log())
    writer.join()
    plan = plan_removal(place)
    assert plan.others == ("tables/notes.txt",)
    assert {file.path for file in plan.files} == files_of(tmp_path / "store").keys() - {"tables/notes.txt"}
    fenced: list[Fence] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("catalog.tools.remove._delete", lambda *_: fenced.append(newest_state(place.tables_log()).fence))
        patch.setattr("catalog.tools.remove.take_inventory", lambda place: _once(place, fenced))
        with pytest.raises(StopIteration):
            remove_store(place, "test")
    assert fenced[0].generation == writer.state.fence.generation + 1
    with pytest.raises(FencedError):
        writer.allocate("x")
    removed = remove_store(place, "test")
    assert removed.others == ("tables/notes.txt",)
    assert files_of(tmp_path / "store").keys() == {"tables/notes.txt"}


def _once(place: object, fenced: list[Fence]) -> object:
    from catalog.tools.inventory import take_inventory  # noqa: PLC0415 - the real one

    if fenced:
        raise StopIteration
    return take_inventory(place)  # type: ignore[arg-type]


def test_compaction_folds_tables_and_drops_what_no_schema_names(tmp_path: Path) -> None:
    """No row changes; a second one has nothing to do."""
    place = make(tmp_path / "store")

    def stray(replica: TablesReplica) -> Draft:
        return Draft(rows={"e999": [(b"key", b"value", replica.state.version + 1, 1)]})

    commit(place, stray)
    assert "F605" in {finding.code for finding in check_store(place).findings}
    done = compact_store(place)
    state = newest_state(place.tables_log())
    assert {"tables/table", "tables/schema_change"} <= {*done.collections}
    assert "e999" not in {file.collection for file in state.files.values()}
    assert done.files_after == len(newest_state(place.log()).files) + len(state.files) < done.files_before
    assert not check_store(place, every_state=True).findings
    assert rows_of(tmp_path / "store") == PEOPLE
    again = compact_store(place)
    assert (again.collections, again.files_before) == ((), again.files_after)


def test_a_vacuum_takes_the_past_of_tables_but_not_what_a_change_reads(tmp_path: Path) -> None:
    """With no retention at all, the ts that an index is built from stays; a dry run says the same."""
    numbers: list[int] = []
    place = make(tmp_path / "store", more=lambda tables: numbers.append(begun(tables)))
    with open_catalog(tmp_path / "store") as catalog:
        read_ts = catalog.tables.change_message(numbers[0]).read_ts
        with catalog.tables.transaction() as tx:
            tx.insert("orders", {"id": 2, "person": 8})
    compact_store(place)
    time.sleep(0.01)
    planned = vacuum_store(place, Policy(retention_ms=0), dry_run=True)
    done = vacuum_store(place, Policy(retention_ms=0))
    assert planned.files <= done.files
    assert newest_state(place.tables_log()).frontier == read_ts
    with open_catalog(tmp_path / "store") as catalog:
        catalog.tables._run(numbers[0])  # noqa: SLF001 - as its next owner
        assert catalog.tables.change(numbers[0]).status is ChangeStatus.SUCCEEDED
        with catalog.tables.transaction() as tx:
            assert [row["id"] for row in tx.find("orders", person=8)] == [2]
    vacuum_store(place, Policy(retention_ms=0))
    assert newest_state(place.tables_log()).frontier > read_ts
    assert not check_store(place, every_state=True).findings


def test_a_torn_entry_of_the_tables_is_set_aside(tmp_path: Path) -> None:
    """By the same mechanism as one of the stash; doctor tells of it, and its bytes are kept."""
    place = make(tmp_path / "store")
    with open_catalog(tmp_path / "store") as catalog, catalog.tables.transaction() as tx:
        tx.insert("people", {"id": 9, "email": "lost"})
    newest = newest_state(place.tables_log()).version
    tables_log_of(tmp_path / "store", newest).write_text('{"torn')
    found = diagnose(place)
    assert found.tables is not None
    assert (found.damaged, found.is_sound, found.tables.version) == (None, False, newest)
    subject = DoctorContext(PROJECT, str(tmp_path / "store"))
    assert Status.PROBLEM in {result.grade for result in check_migrations(subject) if result.name == "tables"}
    repaired = repair(place, found)
    assert (tmp_path / "store" / repaired.kept_of_tables).exists()
    assert diagnose(place).is_sound
    assert rows_of(tmp_path / "store")[:2] == PEOPLE
    assert check_store(place).ok


def test_an_entry_with_a_schema_is_not_left_out(tmp_path: Path) -> None:
    """Later commits were made under it."""
    place = make(tmp_path / "store")
    log = place.tables_log()
    version = next(c.version for c in log.commits(1, log.verify()) if {"table"} <= {f.collection for f in c.adds})
    tables_log_of(tmp_path / "store", version).write_bytes(b"\0" * 64)
    found = diagnose(place).tables
    assert found is not None
    if found.remedy is None:
        assert "a schema, a schema change or an id of tables" in found.obstacle
    else:
        assert found.remedy in {Remedy.RESTORE, Remedy.RETIRE}


def test_the_doctor_looks_at_the_files_of_tables_and_at_changes_without_an_owner(tmp_path: Path) -> None:
    """A missing file is a problem; an abandoned change a warning that says what to do."""
    place = make(tmp_path / "store", more=begun)
    subject = DoctorContext(PROJECT, str(tmp_path / "store"))
    results = list(check_log(subject))
    assert [(own.name, own.grade) for own in results] == [
        ("log", Status.OK),
        ("tables", Status.OK),
        ("tables", Status.WARNING),
    ]
    assert "`catalog ddl adopt`" in results[-1].next
    lost = next(iter(newest_state(place.tables_log()).files))
    (tmp_path / "store" / "tables" / lost).unlink()
    assert next(own.grade for own in check_log(subject) if own.name == "tables") is Status.PROBLEM
    assert [own.grade for own in check_log(replace(subject, is_deep=True))] == [Status.PROBLEM]


def test_the_history_of_tables_names_them(tmp_path: Path) -> None:
    """The newest first, folded or not; rows go by the names of tables and indexes."""
    place = make(tmp_path / "store")
    log = place.tables_log()
    state = newest_state(log)
    every = read_tables_timeline(log, state, unfolded=True)
    assert [line.newest.ts for line in every.lines] == [*range(state.version, -1, -1)]
    names = {name for line in every.lines for name in line.newest.collections}
    assert {"public.people", "public.people._by_email", "public.orders"} & names >= {"public.people", "public.orders"}
    assert every.lines[-1].happening is CommitKind.CREATED
    folded = read_tables_timeline(log, state, limit=1)
    assert (len(folded.lines), folded.more) == (1, True)


def test_the_sizes_of_tables_count_rows_that_are_there(tmp_path: Path) -> None:
    """Whatever files they are in."""

    def remove(tables: Tables) -> None:
        with tables.transaction() as tx:
            tx.delete("people", {"id": 8})

    place = make(tmp_path / "store", more=remove)
    for _ in range(2):
        log = place.tables_log()
        sizes = table_sizes(LayeredView(LayerCache(log), newest_state(log)))
        assert [(own.name, own.rows, own.indexes) for own in sizes] == [
            ("public.orders", 1, 0),
            ("public.people", 1, 1),
        ]
        compact_store(place)
    assert collection_of(place, "people") == "e1"


def test_a_store_without_tables_is_told_apart_from_one_that_lost_them(tmp_path: Path) -> None:
    """Tools find nothing to do; a maker that was stopped before its first entry has lost nothing."""
    with open_catalog(tmp_path / "store"):
        pass
    place = place_of(tmp_path / "store")
    (tmp_path / "store" / "tables" / "_delta_log").mkdir(parents=True)
    assert not check_store(place).findings
    assert diagnose(place).is_sound
    assert copy_store(place, place_of(tmp_path / "copy")).tables == 0
    with pytest.raises(NoStoreError):
        newest_state(place.tables_log())
    with open_catalog(tmp_path / "store") as catalog:
        catalog.tables.execute("CREATE TABLE people (id BIGINT, PRIMARY KEY (id))")
    assert AppTxn.TABLES_FORMAT in newest_state(place.tables_log()).app_txns
    shutil.rmtree(tmp_path / "store" / "tables" / "_delta_log")
    assert [finding.code for finding in check_store(place).findings if finding.severity == "error"] == ["F101"]
