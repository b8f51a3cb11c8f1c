"""The check of tables: sound ones have no findings, and each kind of damage has its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import FileKind
from catalog.engine.log.replica import newest_state
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.replica import TABLE, TablesReplica
from catalog.engine.schema_change.store import Draft, encoded, put
from catalog.engine.schema_change.stored_schema import table_message
from catalog.objects import ItemKey
from catalog.tools.fsck.findings import FsckFinding, FsckReport
from catalog.tools.fsck.store import check_store
from tests.tools.stores_with_tables import begun, collection_of, commit, make


def table_id(place: StorePlace, name: str = "people") -> int:
    replica = TablesReplica.open(place.tables_log())
    return next(schema.id for schema in replica.schemas.values() if schema.name == f"public.{name}")


def found(report: FsckReport) -> list[tuple[str, str]]:
    return [(str(finding.code), str(finding.severity)) for finding in report.findings]


def only(report: FsckReport) -> FsckFinding:
    (finding,) = report.findings
    return finding


def test_sound_tables_have_no_findings(tmp_path: Path) -> None:
    """Their entries, files and rows are counted with those of the stash."""
    place = make(
        tmp_path / "store", "ALTER TABLE orders ADD CONSTRAINT buyer FOREIGN KEY (person) REFERENCES people (id)"
    )
    assert check_store(place).findings == ()
    report = check_store(place, every_state=True)
    assert (report.ok, report.findings) == (True, ())
    assert report.entries > newest_state(place.tables_log()).version


@pytest.mark.parametrize(
    ("damage", "code"), [(lambda path: path.write_bytes(b"PAR1 no more"), "F202"), (Path.unlink, "F201")]
)
def test_damaged_files_are_found(tmp_path: Path, damage: Callable[[Path], object], code: str) -> None:
    """Those of the newest state always, earlier ones in every state; rows are then left unchecked."""
    place = make(tmp_path / "store")
    log = place.tables_log()
    live = newest_state(log).files
    gone = [f for c in log.commits(1, log.verify()) for f in c.adds if f.path not in live]
    (tmp_path / "store" / "tables" / gone[0].path).unlink()
    assert check_store(place).ok
    assert found(check_store(place, every_state=True))[0] == ("F201", "error")
    path = next(path for path, file in live.items() if file.collection == "e1")
    damage(tmp_path / "store" / "tables" / path)
    report = check_store(place)
    assert found(report) == [(code, "error"), ("F901", "note")]
    assert report.findings[0].where == f"tables/{path}"


def test_a_damaged_entry_is_found(tmp_path: Path) -> None:
    place = make(tmp_path / "store")
    entry = tmp_path / "store" / "tables" / "_delta_log" / f"{newest_state(place.tables_log()).version:020d}.json"
    entry.write_text('{"torn')
    report = check_store(place)
    assert ("F102", "error") in found(report)
    assert all(finding.where.startswith("tables/") for finding in report.findings)


def test_a_table_and_its_item_belong_together(tmp_path: Path) -> None:
    """Either without the other is found; items that no table was ever made with are none of it."""
    place = make(tmp_path / "store")
    number = table_id(place)
    with open_catalog(tmp_path / "store") as catalog, catalog.transaction() as tx:
        tx.delete(ItemKey(id=number))
    finding = only(check_store(place))
    assert (finding.code, finding.where) == ("F603", "tables/public.people")

    def drop(replica: TablesReplica) -> Draft:
        gone = [table_id(place, "orders"), number]
        rows = [row for own in gone for row in put(replica, TABLE, pb.TableKey(id=own), None)]
        names = {e.collection for own in gone for e in replica.schemas[own].elements}
        removes = tuple(file for name in names for file in replica.view.files_of(name))
        return Draft(rows={TABLE: rows}, removes=removes)

    commit(place, drop)
    finding = only(check_store(place))
    assert (finding.code, finding.where) == ("F604", "tables/orders")


def test_an_unfinished_change_explains_a_table_without_item(tmp_path: Path) -> None:
    """Only the missing sign of life of its owner is noted, which is no error."""

    def half(tables: object) -> None:
        change = tables.submit("CREATE TABLE pets (id BIGINT, PRIMARY KEY (id))", detach=True)  # type: ignore[attr-defined]
        owner = tables._owner()  # type: ignore[attr-defined]  # noqa: SLF001 - a process that stops half way
        while len(tables.store.replica.schemas) < 3:  # type: ignore[attr-defined]
            owner.step(change.id)
        tables.signs.end(f"change-{change.id}")  # type: ignore[attr-defined]

    report = check_store(make(tmp_path / "store", more=half))
    assert (report.ok, found(report)) == (True, [("F606", "note")])
    assert "RUNNING" in only(report).what


def test_a_change_without_a_sign_of_life_is_noted(tmp_path: Path) -> None:
    place = make(tmp_path / "store", more=begun)
    assert found(check_store(place)) == [("F606", "note")]
    (tmp_path / "store" / "heartbeats" / "tables").mkdir(exist_ok=True)
    number = only(check_store(place)).where.rpartition(" ")[2]
    (tmp_path / "store" / "heartbeats" / "tables" / f"change-{number}.json").write_text('{"beat": 1}')
    assert check_store(place).findings == ()


def test_rows_that_cannot_be_decoded_and_entries_without_rows_are_found(tmp_path: Path) -> None:
    """Under the schema of the newest state, with the index that no longer fits."""
    place = make(tmp_path / "store")
    collection = collection_of(place, "people")

    def spoil(replica: TablesReplica) -> Draft:
        (first, _), (second, value) = replica.view.rows(collection)
        ts = replica.state.version + 1
        return Draft(rows={collection: [(first, b"\xff\xff", ts, 1), (second, value, ts, -1)]})

    commit(place, spoil)
    report = check_store(place)
    assert {code for code, _ in found(report)} == {"F602"}
    told = {finding.what.partition(" (")[0] for finding in report.findings}
    assert {"rows cannot be decoded", "entries have no row"} <= told


def test_a_schema_that_cannot_be_read_is_found(tmp_path: Path) -> None:
    """And the rows that it governs are left unchecked."""
    place = make(tmp_path / "store")
    number = table_id(place)

    def spoil(replica: TablesReplica) -> Draft:
        message = table_message(replica.schemas[number])
        message.columns[0].type = "NO SUCH TYPE"
        key, ts = encoded(pb.TableKey(id=number)), replica.state.version + 1
        return Draft(rows={TABLE: [(key, encoded(message), ts, 1)]})

    replica = TablesReplica.open(place.tables_log())
    draft = spoil(replica)
    state = newest_state(place.tables_log())
    file = place.tables_log().write_tail(TABLE, state.fence, draft.rows[TABLE])
    from tests.engine.log.places import change  # noqa: PLC0415 - no process would commit that

    place.tables_log().compare_and_append(state, change(file))
    report = check_store(place)
    assert [code for code, _ in found(report)] == ["F601", "F901"]
    assert report.findings[0].where.startswith("tables/`table`")


def test_a_collection_that_no_schema_names_is_sweepable(tmp_path: Path) -> None:
    place = make(tmp_path / "store")
    commit(place, lambda replica: Draft(rows={"e999": [(b"key", b"value", replica.state.version + 1, 1)]}))
    report = check_store(place)
    assert (report.ok, found(report)) == (True, [("F605", "sweepable")])
    assert "`catalog debug compact`" in only(report).repair


def test_a_file_whose_rows_have_another_ts_is_found(tmp_path: Path) -> None:
    """Layers may hold earlier ones, tails only that of their commit."""
    place = make(tmp_path / "store")
    log = place.tables_log()
    state = newest_state(log)
    file = next(f for f in state.files.values() if f.kind is FileKind.TAIL and f.collection == "e1")
    from catalog.tools.fsck.files import check_ts, read_file  # noqa: PLC0415 - one file alone
    from catalog.tools.fsck.findings import FsckFindings  # noqa: PLC0415

    findings = FsckFindings()
    rows = read_file(log, file, findings)
    check_ts(replace(file, ts_max=file.ts_max + 1), rows, None, findings)
    check_ts(file, rows, (file.ts_max + 1, file.ts_max + 1), findings)
    assert [finding.code for finding in findings.listed] == ["F205", "F205"]
