"""Builtins as stores are opened: which build starts in which mode, what it leaves, and what their rows follow from."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.builtins import AUDIT_EVENTS, DECLARED, STORE_METRICS
from catalog.engine.base.project import BuildVersion, Project
from catalog.engine.builtins.declaration import Builtin, Declaration, Instruction, Mechanism
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn
from catalog.engine.shard.schema import Column, Schema
from catalog.engine.store.catalog import Catalog, Mode
from catalog.engine.store.leadership import LeadershipOptions
from catalog.engine.store.open import open_store
from catalog.errors import (
    BuiltinsTooNewError,
    CatalogError,
    UnfitEvolutionError,
    UninstructedSchemaError,
    UnknownCollectionError,
    UnmigratedBuiltinsError,
)
from catalog.objects import (
    AUDIT_EVENT_TYPE_CREATE,
    OBJECT_TYPE_TABLE,
    AuditLogKey,
    AuditLogValue,
    ItemKey,
    ItemValue,
    RoleId,
    SettingKey,
    SettingValue,
)
from catalog.tools.copy import copy_store
from catalog.tools.fsck.store import check_store
from catalog.upgrade import PROJECT
from tests.upgrade.stores import files_of

NEXT, LATER = BuildVersion(0, 3), BuildVersion(0, 4)
SESSION = Column(8, "session", pa.string())
WIDER = replace(AUDIT_EVENTS, schema=Schema((*AUDIT_EVENTS.schema.columns, SESSION)))
OTHER = replace(AUDIT_EVENTS, schema=Schema.of(Column(0, "event_id", pa.string(), nullable=False)))


def project(build: BuildVersion, audit_events: Builtin = AUDIT_EVENTS, *mechanisms: Mechanism) -> Project:
    """The project of this repository as another build, with another schema of one builtin and instructions about it."""
    others = tuple(builtin for builtin in DECLARED.builtins if builtin.name != AUDIT_EVENTS.name)
    derivations = {name: own for name, own in DECLARED.derivations.items() if name != AUDIT_EVENTS.name}
    told = tuple(Instruction(build, AUDIT_EVENTS.name, mechanism) for mechanism in mechanisms)
    declared = Declaration(build, (*others, audit_events), told, derivations, STORE_METRICS.name)
    return replace(PROJECT, build=build, builtins=lambda: declared)


def open_as(store: Path, mode: str = "leader", own: Project = PROJECT, generation: int = 0) -> Catalog:
    return open_store(StorePlace.at(own, store), Mode(mode), LeadershipOptions(generation, 5))


def head(store: Path) -> int:
    return DeltaLog(f"{store}/stash").verify()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("builtins") / "store"
    with open_as(folder) as catalog:
        with catalog.transaction() as tx:
            tx.insert(AuditLogKey(id=1), audited("orders"))
        assert catalog.builtin("audit_events").num_rows == 1
    return folder


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "store")


def audited(name: str) -> AuditLogValue:
    return AuditLogValue(
        event_type=AUDIT_EVENT_TYPE_CREATE,
        object_type=OBJECT_TYPE_TABLE,
        object_id="7",
        object_name=name,
        actor="ann",
        occurred_at_ms=1_700_000_000_123,
    )


def test_a_new_store_has_every_builtin(store: Path) -> None:
    """Each with a shard of its own, which a check of the store finds in order."""
    with open_as(store, "read-only") as catalog:
        assert catalog.builtins == ("audit_events", "migration_history", "object_dependencies", "store_metrics")
        assert {"object_type": "schema", "object_id": "3", "needs_object_type": "database", "needs_object_id": "1"} in (
            catalog.builtin("object_dependencies").to_pylist()
        )
        with pytest.raises(UnknownCollectionError):
            catalog.builtin("roles")


def test_a_start_with_nothing_to_do_adds_a_fence_and_nothing_else(store: Path) -> None:
    """Of the shards not a byte changes."""
    before, ts = files_of(store), head(store)
    open_as(store).close()
    changed = {path.split("/")[0] for path in before.keys() ^ files_of(store).keys()}
    assert changed == {"stash", "heartbeats"}
    assert head(store) == ts + 1


def test_a_leader_shows_rows_that_follow_from_the_newest_of_the_stash(store: Path) -> None:
    """What came, what changed and what went; others see what a leader left."""
    with open_as(store) as leader:
        (first,) = leader.builtin("audit_events").to_pylist()
        assert (first["event_id"], first["event_type"], first["object_type"], first["actor"]) == (
            1, "create", "table", "ann"
        )  # fmt: skip
        assert first["occurred_at"].isoformat() == "2023-11-14T22:13:20.123000+00:00"
        with leader.transaction() as tx:
            tx.insert(ItemKey(id=100), ItemValue(schema_id=3, name="orders", owner_id=RoleId(system=2)))
        needs = {("schema", "3"), ("role", "s2")}
        assert dependencies(leader) == needs
        with open_as(store, "read-only") as reader:
            assert dependencies(reader) == needs
        with leader.transaction() as tx:
            tx.update(ItemKey(id=100), ItemValue(schema_id=2, name="orders", owner_id=RoleId(system=2)))
        assert dependencies(leader) == {("schema", "2"), ("role", "s2")}
        with leader.transaction() as tx:
            tx.delete(ItemKey(id=100))
        assert dependencies(leader) == set()


def dependencies(catalog: Catalog) -> set[tuple[str, str]]:
    rows = catalog.builtin("object_dependencies").to_pylist()
    own = [row for row in rows if (row["object_type"], row["object_id"]) == ("item", "100")]
    return {(row["needs_object_type"], row["needs_object_id"]) for row in own}


def test_rows_go_with_the_last_of_their_source_even_if_nothing_is_left_of_it(store: Path) -> None:
    """A collection without rows has no files that could tell."""
    with open_as(store, "member") as member:
        with member.transaction() as tx:
            tx.delete(AuditLogKey(id=1))
        member._stash.consolidate("audit_log")  # noqa: SLF001
        assert not [file for file in member._stash.state.files.values() if file.collection == "audit_log"]  # noqa: SLF001
    with open_as(store) as leader:
        assert events(leader) == []


def test_a_shard_records_that_it_follows_where_a_source_is_empty(store: Path) -> None:
    """Or every start would read all commits since; `item` has no rows here."""
    with open_as(store) as leader:
        shard = leader._builtins.process.shard(shard_of(leader, "object_dependencies"))  # type: ignore[union-attr]  # noqa: SLF001
        before = shard.state.app_txns[AppTxn.FOLLOWED]
        for number in range(101):
            write(leader, number)
        leader.builtin("object_dependencies")
        assert shard.replica.catch_up().app_txns[AppTxn.FOLLOWED] == leader.ts > before + 100


def test_a_start_does_not_wait_for_rows_to_be_compared_if_there_are_many(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are when somebody reads them, or at maintenance."""
    with open_as(store) as leader:
        spoil(leader)
    monkeypatch.setattr("catalog.engine.store.leader_upgrade._COMPARED_AT_START_MAX", 0)
    place = StorePlace.at(PROJECT, store.with_name("copy"))
    copy_store(StorePlace.at(PROJECT, store), place)
    with open_as(store.with_name("copy")) as leader:
        with open_as(store.with_name("copy"), "read-only") as reader:
            assert len(events(reader)) == 2
        assert events(leader) == [(1, "orders", "ann")]


def test_rows_are_compared_where_the_changes_since_are_retired(store: Path) -> None:
    """In the end they are those that follow from the stash, each once."""
    with open_as(store) as leader:
        spoil(leader)
        with leader.transaction() as tx:
            tx.insert(AuditLogKey(id=2), audited("lines"))
        log = leader._stash.log  # noqa: SLF001
        clean(log, log.state(log.verify()), Policy(retention_ms=-1))
        assert events(leader) == [(1, "orders", "ann"), (2, "lines", "ann")]


def test_rows_of_a_copied_store_are_compared(store: Path, tmp_path: Path) -> None:
    """Its history is another: how far a shard followed the stash that it was copied from says nothing."""
    with open_as(store) as leader:
        spoil(leader)
    place = StorePlace.at(PROJECT, tmp_path / "copy")
    copy_store(StorePlace.at(PROJECT, store), place)
    assert check_store(place).ok
    with open_as(tmp_path / "copy", "read-only") as reader:
        assert [row[2] for row in events(reader)] == ["ann", "nobody"], "copied as they were"
    with open_as(tmp_path / "copy") as leader:
        assert events(leader) == [(1, "orders", "ann")]
        assert len(leader.measures()) > 0


def spoil(leader: Catalog) -> None:
    """Put a row into a builtin that follows from nothing."""
    rows = leader.builtin("audit_events")
    strange = rows.set_column(6, rows.schema.field("actor"), pa.chunked_array([["nobody"]]))
    leader._builtins.process.shard(shard_of(leader, "audit_events")).append(AUDIT_EVENTS.schema, strange)  # type: ignore[union-attr]  # noqa: SLF001


def events(catalog: Catalog) -> list[tuple[int, str, str]]:
    rows = catalog.builtin("audit_events").to_pylist()
    return [(row["event_id"], row["object_name"], row["actor"]) for row in rows]


def shard_of(catalog: Catalog, name: str) -> str:
    (used,) = (own for key, own in catalog._builtins.outcome.used.items() if key.object_name == name)  # type: ignore[union-attr]  # noqa: SLF001
    assert used.shard is not None
    return used.shard


def test_ordinary_commits_measure_nothing_and_maintenance_does(store: Path) -> None:
    """One measure for each time that maintenance cleared away what is no longer retained."""
    with open_as(store) as leader:
        initial = {own.measured_at for own in leader.measures()}
        for number in range(30):
            write(leader, number)
        assert {own.measured_at for own in leader.measures()} == initial
        leader._stash.policy = Policy(checkpoint_every=5, clean_every=10)  # noqa: SLF001
        for number in range(30, 45):
            write(leader, number)
        later = [own for own in leader.measures() if own.measured_at not in initial]
        assert {own.rows for own in later if own.collection == "role"} == {2}
        assert 1 <= len({own.measured_at for own in later}) <= 3


def write(catalog: Catalog, number: int) -> None:
    with catalog.transaction() as tx:
        tx.insert(SettingKey(name=str(number)), SettingValue(value="x"))


def stored(store: Path) -> dict[str, bytes]:
    return {path: raw for path, raw in files_of(store).items() if not path.startswith("heartbeats")}


REFUSED: list[tuple[Project, type[CatalogError]]] = [
    (project(NEXT, WIDER), UninstructedSchemaError),
    (project(NEXT, OTHER, Mechanism.EVOLUTION), UnfitEvolutionError),
]


@pytest.mark.parametrize("mode", ["leader", "member", "read-only"])
@pytest.mark.parametrize(("own", "error"), REFUSED, ids=["uninstructed", "unfit"])
def test_a_build_that_cannot_migrate_is_refused_before_anybody_is_fenced(
    store: Path, own: Project, error: type[CatalogError], mode: str
) -> None:
    """Not a byte is written, and whoever leads goes on."""
    with open_as(store) as leader:
        before = stored(store)
        with pytest.raises(error):
            open_as(store, mode, own, generation=1)
        assert stored(store) == before
        write(leader, 1)


def test_an_aborted_read_only_upgrade_leaves_lower_builds_able_to_upgrade_and_to_start(store: Path) -> None:
    """A read-only process of a later build makes shards of its own; the stash stays as it is."""
    before = files_of(store / "stash")
    with open_as(store, "read-only", project(LATER, OTHER, Mechanism.REPLACEMENT), generation=2) as tried:
        assert tried.builtin("audit_events").schema.names == ["event_id"]
        assert tried.builtin("audit_events").num_rows == 0
    assert files_of(store / "stash") == before
    with open_as(store) as running:
        assert running.builtin("audit_events").num_rows == 1
    with open_as(store, own=project(NEXT, WIDER, Mechanism.EVOLUTION)) as upgraded:
        assert upgraded.builtin("audit_events")["session"].to_pylist() == [None]


def test_two_upgrades_to_one_build_with_different_generations_do_not_meet(store: Path) -> None:
    """Each has shards of its own, and the leader's are those that stay."""
    own = project(NEXT, OTHER, Mechanism.REPLACEMENT)
    with open_as(store, "read-only", own, 1) as one, open_as(store, "read-only", own, 2) as two:
        assert shard_of(one, "audit_events") != shard_of(two, "audit_events")
        with open_as(store, own=own, generation=1) as leader:
            assert shard_of(leader, "audit_events") == shard_of(one, "audit_events")
        assert two.builtin("audit_events").num_rows == 0
        with open_as(store, own=own, generation=2) as leader:
            assert shard_of(leader, "audit_events") == shard_of(one, "audit_events"), "it was migrated already"


def test_a_leader_that_migrates_does_not_disturb_a_read_only_process_of_a_higher_build(store: Path) -> None:
    """What it reads of what is to be replaced is its own, and what evolves it may follow still."""
    with (
        open_as(store, "read-only", project(LATER, OTHER, Mechanism.REPLACEMENT), 2) as tried,
        open_as(store, own=project(NEXT, WIDER, Mechanism.EVOLUTION), generation=1) as leader,
    ):
        assert leader.builtin("audit_events").num_rows == 1
        assert tried.builtin("audit_events").num_rows == 0
        assert tried.builtin("object_dependencies").num_rows > 0


def test_a_reader_finds_the_shard_that_took_the_place_of_the_one_it_used(store: Path) -> None:
    """If its schema is the same; a build that replaces a builtin by itself gives its rows up."""
    with open_as(store, "read-only") as reader:
        shard = shard_of(reader, "audit_events")
        open_as(store, own=project(NEXT, AUDIT_EVENTS, Mechanism.REPLACEMENT)).close()
        assert reader.builtin("audit_events").num_rows == 0
        assert shard_of(reader, "audit_events") != shard


def test_a_build_below_the_one_that_migrated_is_refused_and_one_with_the_same_schemas_is_not(store: Path) -> None:
    """A patch can be taken back; a migration cannot."""
    open_as(store, own=project(NEXT)).close()
    with open_as(store) as older:
        assert older.builtin("audit_events").num_rows == 1
    open_as(store, own=project(LATER, WIDER, Mechanism.EVOLUTION)).close()
    before = head(store)
    for mode in ("leader", "member", "read-only"):
        with pytest.raises(BuiltinsTooNewError, match=r"0\.4\.0"):
            open_as(store, mode)
    assert head(store) == before


def test_a_member_waits_for_a_leader_of_its_build(store: Path) -> None:
    """None of the members migrates."""
    own = project(NEXT, WIDER, Mechanism.EVOLUTION)
    with pytest.raises(UnmigratedBuiltinsError, match="open the store as leader"):
        open_as(store, "member", own)
    open_as(store, own=own).close()
    with open_as(store, "member", own) as member:
        assert "session" in member.builtin("audit_events").schema.names


def test_a_savepoint_migrates_a_copy_of_the_shards(store: Path) -> None:
    """The store stays byte for byte what it was."""
    before = files_of(store)
    with open_as(store, "savepoint", project(NEXT, WIDER, Mechanism.EVOLUTION)) as trial:
        assert trial.builtin("audit_events")["object_name"].to_pylist() == ["orders"]
        write(trial, 1)
    assert files_of(store) == before


def test_debug_shows_builtins_with_the_schemas_that_they_have(store: Path) -> None:
    """Whatever the build says of them."""
    with open_as(store, "debug", project(NEXT, OTHER)) as catalog:
        assert catalog.builtin("audit_events")["object_name"].to_pylist() == ["orders"]


def test_a_project_without_builtins_has_none(tmp_path: Path) -> None:
    """It needs no rows about them, and has no shards."""
    with open_as(tmp_path / "store", own=replace(PROJECT, builtins=None)) as catalog:
        assert catalog.builtins == ()
        assert not (tmp_path / "store" / "shards").exists()
