"""Opening a store in each of its modes, and what a new store holds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catalog import STASH_VERSION, open_catalog
from catalog.engine.builtins import migrate
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, Operation
from catalog.engine.store.catalog import Mode
from catalog.engine.store.leadership import LeadershipOptions
from catalog.engine.store.open import open_store
from catalog.errors import (
    ClosedError,
    FencedError,
    InitializationFailedError,
    LostStashError,
    NotAStoreError,
    NotInitializedError,
    ReadOnlyError,
    StaleGenerationError,
    StoreTooNewError,
    StoreUnreachableError,
    UnfrozenTypesError,
    UpgradeNeededError,
    WrongArgumentError,
)
from catalog.objects import ItemKey, ItemValue, RoleId, RoleKey, RoleValue, SettingKey, SettingValue
from catalog.tools.fsck.stash import fsck
from catalog.upgrade import PROJECT
from tests.upgrade.golden import COMMAND, INITIAL, INITIALISED_TS, dump
from tests.upgrade.stores import files_of

SYSTEM = RoleId(system=2)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that was made and left."""
    with open_catalog(tmp_path / "store"):
        return tmp_path / "store"


def test_a_new_store_holds_what_its_golden_file_says(store: Path) -> None:
    """Whoever changes what a store begins with changes the golden file, and sees it in review."""
    assert INITIAL.is_file(), f"a new version needs {INITIAL.name}: {COMMAND}, and review what a new store holds"
    with open_catalog(store, "read-only") as catalog:
        known = json.loads(INITIAL.read_text(encoding="utf-8"))
        assert dump(catalog, INITIALISED_TS) == known, (
            f"a new store holds other rows: if they should be, {COMMAND} initial"
        )
        assert (catalog.version, catalog.epoch) == (STASH_VERSION, 1)


def test_initialising_is_one_commit(store: Path) -> None:
    """Version 0 makes the log, 1 the fence, 2 everything else; the builtins follow."""
    log = DeltaLog(f"{store}/stash", {})
    commits = [log.commit(version) for version in range(INITIALISED_TS + 1)]
    assert [commit.operation for commit in commits] == [Operation.CREATE, Operation.FENCE, Operation.TRANSACTION]
    assert commits[2].app_txns == {AppTxn.STASH_VERSION: STASH_VERSION}


made: Any = lambda kind, **fields: kind(**fields)  # noqa: E731 - with fields that a type checker would refuse

STALE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a field that is gone": (
        lambda _: made(SettingValue, vaule="x"),
        'Protocol message SettingValue has no "vaule" field',
    ),
    "a member that is gone": (lambda _: made(SettingKey).nmae, "AttributeError: "),
    "a row of another type": (lambda tx: tx.insert(SettingKey(), RoleValue()), "a row of `setting` cannot hold a "),
    "a reference to nothing": (
        lambda tx: tx.insert(ItemKey(id=1), ItemValue(schema_id=77, name="x")),
        "`schema` {",
    ),
}


@pytest.mark.parametrize("mistake", STALE)
def test_a_stale_initialize_is_told_and_the_next_start_makes_the_store(tmp_path: Path, mistake: str) -> None:
    """The advice names the file and the gate; no row of it is written."""
    change, found = STALE[mistake]
    project = replace(PROJECT, initialize=change)
    with pytest.raises(InitializationFailedError) as caught:
        open_store(StorePlace.at(project, tmp_path / "store"), Mode.LEADER, LeadershipOptions())
    what, why, fix = str(caught.value).splitlines()
    assert what.startswith(f"{tmp_path / 'store'} was not initialised: ")
    assert found in what
    assert "`initialize.py` writes the first rows" in why
    assert "`python -m build_tools check` tells what was meant" in fix
    with open_catalog(tmp_path / "store") as cat:
        assert cat.version == STASH_VERSION


def test_a_store_is_initialised_once(store: Path) -> None:
    """Opening again adds a fence and nothing else."""
    with open_catalog(store) as catalog:
        assert (catalog.epoch, len(list(catalog.rows(RoleKey)))) == (2, 2)


def test_members_write_beside_the_leader_until_another_leads(store: Path) -> None:
    """All may write, and all are fenced when a new leader comes."""
    with open_catalog(store) as leader, open_catalog(store, "member") as member:
        with member.transaction() as tx:
            tx.insert(SettingKey(name="a"), SettingValue(value="1"))
        leader.refresh()
        assert SettingKey(name="a") in [key for key, _ in leader.rows(SettingKey)]
        with open_catalog(store, deploy_generation=1):
            with pytest.raises(FencedError), member.transaction() as tx:
                tx.delete(SettingKey(name="a"))
            with pytest.raises(FencedError):
                leader.refresh()
        with pytest.raises(StaleGenerationError):
            open_catalog(store)


def test_a_member_that_opens_during_a_takeover_joins_the_next_leader(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not yet a member of the one before, so it is not fenced."""
    with open_catalog(store) as leader:
        epoch = leader.epoch
    attach = migrate.attach

    def overtaken(process: migrate.BuiltinMigrator) -> migrate.BuiltinMigrationResult:
        monkeypatch.setattr("catalog.engine.store.open.attach", attach)
        open_catalog(store).close()
        return attach(process)

    monkeypatch.setattr("catalog.engine.store.open.attach", overtaken)
    with open_catalog(store, "member") as member, member.transaction() as tx:
        assert member.epoch == epoch + 1
        tx.insert(SettingKey(name="a"), SettingValue(value="b"))


def test_read_only_writes_nothing_and_sees_others_on_refresh(store: Path) -> None:
    """It serves one ts until it is asked to look again."""
    with open_catalog(store, "read-only") as reader, open_catalog(store) as leader:
        with pytest.raises(ReadOnlyError, match="open it as leader or member"), reader.transaction():
            pass
        with leader.transaction() as tx:
            tx.insert(SettingKey(name="a"), SettingValue(value="1"))
        assert SettingKey(name="a") not in [key for key, _ in reader.rows(SettingKey)]
        reader.refresh()
        assert SettingKey(name="a") in [key for key, _ in reader.rows(SettingKey)]


def test_a_savepoint_is_writable_and_leaves_the_store_alone(store: Path) -> None:
    """What is tried there is gone afterwards, scratch and all."""
    before = sorted((path, path.read_bytes()) for path in store.rglob("*") if path.is_file())
    with open_catalog(store, "savepoint") as savepoint:
        scratch = savepoint._scratch  # noqa: SLF001
        assert scratch is not None
        with savepoint.transaction() as tx:
            tx.insert(ItemKey(id=1), ItemValue(schema_id=3, name="t", owner_id=SYSTEM))
        assert [value.name for _, value in savepoint.rows(ItemKey)] == ["t"]  # type: ignore[attr-defined]
    assert sorted((path, path.read_bytes()) for path in store.rglob("*") if path.is_file()) == before
    assert not scratch.path.exists()


def test_ids_come_in_blocks_and_never_twice(store: Path) -> None:
    """Two processes that allocate at once get different ids."""
    with open_catalog(store) as leader, open_catalog(store, "member") as member:
        given = [catalog.allocate("item") for _ in range(70) for catalog in (leader, member)]
    assert len(set(given)) == 140
    with open_catalog(store) as later:
        assert later.allocate("item") > max(given)


def test_typed_columns_are_read_without_a_jvm(store: Path) -> None:
    """The rows of a collection as Arrow structs."""
    with open_catalog(store, "read-only") as catalog:
        assert catalog.table("setting").to_pylist() == [
            {"key": {"name": "default_cluster"}, "value": {"value": "default"}},
            {"key": {"name": "default_database"}, "value": {"value": "default"}},
        ]


def test_opening_loads_no_pyspark_and_starts_no_jvm(store: Path) -> None:
    """An up-to-date store is served from this process alone."""
    code = f"import sys, catalog\nwith catalog.open_catalog({str(store)!r}): print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.split(".")[0] in {"pyspark", "py4j", "pandas"}] == []


@pytest.mark.parametrize("mode", ["member", "read-only", "savepoint", "debug"])
def test_only_a_leader_makes_a_store(tmp_path: Path, mode: str) -> None:
    """Any other mode refuses an empty place and leaves it empty."""
    with pytest.raises(NotAStoreError, match="the first start makes it"):
        open_catalog(tmp_path / "new", mode)
    assert not (tmp_path / "new").exists()


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    """Nobody's files become part of a store by accident."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NotAStoreError, match=r"notes\.txt is there"):
        open_catalog(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_store_of_another_project_or_layout_is_refused(store: Path) -> None:
    """store.json says what a store is."""
    identity = json.loads((store / "store.json").read_text())
    for change, words in (({"project": "shop"}, "belongs to the project shop"), ({"layout": 2}, "its layout is 2")):
        (store / "store.json").write_text(json.dumps(identity | change))
        with pytest.raises(NotAStoreError, match=words):
            open_catalog(store)
    (store / "store.json").write_text("{")
    with pytest.raises(NotAStoreError, match=r"store\.json cannot be read"):
        open_catalog(store)


def test_a_store_that_was_never_initialised_waits_for_a_leader(store: Path, tmp_path: Path) -> None:
    """A leader that died before its first commit left nothing that others could misread."""
    other = tmp_path / "half"
    other.mkdir()
    (other / "store.json").write_text((store / "store.json").read_text())
    DeltaLog(f"{other}/stash", {}).create("made")
    with pytest.raises(NotInitializedError, match="open it as leader once"):
        open_catalog(other, "member")
    with open_catalog(other) as catalog:
        assert catalog.version == STASH_VERSION


@pytest.mark.parametrize(
    ("version", "error", "modes"),
    [
        (STASH_VERSION + 1, StoreTooNewError, ("leader", "member", "read-only", "savepoint", "debug")),
        (STASH_VERSION - 1, UpgradeNeededError, ("member",)),
    ],
)
def test_a_store_of_another_version_is_refused_before_anyone_is_fenced(
    store: Path, version: int, error: type[Exception], modes: tuple[str, ...]
) -> None:
    """The refusal writes nothing."""
    log = DeltaLog(f"{store}/stash", {})
    state = log.state(log.verify())
    log.compare_and_append(state, CommitRequest(Operation.TRANSACTION, "x", app_txns={AppTxn.STASH_VERSION: version}))
    for mode in modes:
        with pytest.raises(error):
            open_catalog(store, mode)
    assert log.verify() == state.version + 1


def test_a_leader_of_the_same_generation_is_waited_for(store: Path) -> None:
    """The second leads when the first has ended, and not before."""
    leadership = LeadershipOptions(lock_timeout_s=30, heartbeat_s=0.2)
    first = open_store(StorePlace.at(PROJECT, store), Mode.LEADER, leadership)
    epochs = []

    def lead() -> None:
        with open_store(StorePlace.at(PROJECT, store), Mode.LEADER, leadership) as second:
            epochs.append(second.epoch)

    waiting = threading.Thread(target=lead)
    waiting.start()
    waiting.join(timeout=1.5)  # a leader that shows no sign of life is waited for less long
    assert waiting.is_alive()
    with first.transaction() as tx:
        tx.insert(SettingKey(name="a"), SettingValue(value="1"))
    first.close()
    waiting.join(timeout=20)
    assert epochs == [first.epoch + 1]


def test_a_leader_that_does_not_end_is_replaced_after_the_timeout(store: Path) -> None:
    """Waiting has an end; the fence keeps it safe."""
    leadership = LeadershipOptions(lock_timeout_s=0.3, heartbeat_s=0.05)
    with open_store(StorePlace.at(PROJECT, store), Mode.LEADER, leadership) as first:
        with open_store(StorePlace.at(PROJECT, store), Mode.LEADER, leadership) as second:
            assert second.epoch == first.epoch + 1
        with pytest.raises(FencedError):
            first.refresh()


def test_a_new_store_is_sound(store: Path) -> None:
    """What initialising wrote passes every check there is."""
    with open_catalog(store, "read-only") as catalog:
        head = catalog._stash.replica  # noqa: SLF001
        assert fsck(head.log, head.registry, head.constraints).findings == ()


def test_a_mode_that_there_is_not_is_told_with_those_that_there_are(store: Path) -> None:
    """A misspelt word is no riddle."""
    with pytest.raises(WrongArgumentError, match="leader, member, read-only, savepoint, debug"):
        open_catalog(store, "readonly")


@pytest.mark.parametrize("mode", ["read-only", "debug"])
def test_whoever_only_reads_is_given_no_ids(store: Path, mode: str) -> None:
    """And is told why, as for any other write."""
    with open_catalog(store, mode) as catalog, pytest.raises(ReadOnlyError):
        catalog.allocate("item")


def test_an_object_store_without_its_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client is an extra of the package."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(StoreUnreachableError, match=r"pip install 'stash-catalog\[s3\]'"):
        open_catalog("s3://bucket/store")


def test_a_closed_catalog_does_nothing_any_more(store: Path) -> None:
    """Another may lead since: nothing is read or written through it, and it says so."""
    with open_catalog(store) as cat:
        pass
    for use in (cat.refresh, lambda: cat.rows(RoleKey), lambda: cat.allocate("item"), lambda: cat.table("role")):
        with pytest.raises(ClosedError, match="this process has closed"):
            use()
    with pytest.raises(ClosedError), cat.transaction():
        pass


def test_a_collection_is_asked_for_by_the_type_of_its_key(store: Path) -> None:
    """Whoever passes a name is told what to pass."""
    with open_catalog(store) as cat, pytest.raises(WrongArgumentError, match="pass the type of its keys, RoleKey"):
        cat.rows("role")  # type: ignore[call-overload]


def test_a_store_whose_stash_is_lost_is_not_taken_for_a_new_one(store: Path) -> None:
    """A leader that finds an empty place where others led before it initialises nothing."""
    open_catalog(store).close()
    shutil.rmtree(store / "stash")
    for _ in range(2):
        with pytest.raises(LostStashError, match="is gone"):
            open_catalog(store)
    assert not (store / "stash").exists()


@pytest.mark.parametrize("mode", ["leader", "member"])
def test_nobody_writes_with_types_that_no_version_was_frozen_with(
    store: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever generates code from changed types without making a version of them is told to; others may read."""
    monkeypatch.setattr(PROJECT.current_types, "DESCRIPTOR_HASH", "sha256:changed")
    before = files_of(store)
    with pytest.raises(UnfrozenTypesError, match=r"`catalog create \"why\"`"):
        open_catalog(store, mode)
    assert files_of(store) == before
    open_catalog(store, "read-only").close()


def test_an_empty_address_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be the folder that the process happens to run in."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongArgumentError, match="takes the address of a store, and was given an empty one"):
        open_catalog("")
    assert list(tmp_path.iterdir()) == []
