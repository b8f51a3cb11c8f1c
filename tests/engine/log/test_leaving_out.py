"""A commit that is left out of a log: refused if later ones need it, safe under live processes and after crashes."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from catalog import open_catalog
from catalog.cli.app import run
from catalog.cli.main_group import root
from catalog.engine.log.damaged_entry import DamagedEntry, Remedy, find_damaged, repair_entry
from catalog.engine.log.delta_entries import commit_entry
from catalog.engine.log.digests import part_digest
from catalog.engine.log.entry_proofs import with_one_bit_flipped
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, DataFile, FileKind, LogState, Operation
from catalog.engine.storage.local import LocalStorage
from catalog.errors import NotRepairableError, StateLeftOutError, StoreUnreachableError
from catalog.objects import SettingKey, SettingValue
from catalog.tools.compact import compact_store
from catalog.tools.fsck.findings import Severity
from catalog.tools.repair import diagnose, repair
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import findings_of
from tests.upgrade.stores import files_of, log_of, rows_at

STORES = Path(__file__).parents[2] / "golden" / "stores"

BEAT = 0.05
DEFAULTS = {"default_cluster", "default_database"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with three settings, each of a commit of its own."""
    with open_catalog(tmp_path / "store") as catalog:
        for name in ("a", "b", "c"):
            with catalog.transaction() as tx:
                tx.insert(SettingKey(name=name), SettingValue(value="1"))
    return tmp_path / "store"


def place_of(store: Path) -> StorePlace:
    return StorePlace.at(PROJECT, store)


def entry(store: Path, version: int) -> Path:
    return store / "stash" / "_delta_log" / f"{version:020d}.json"


def head_of(store: Path) -> int:
    return max(int(path.stem) for path in entry(store, 0).parent.glob("*.json"))


def lose(store: Path, version: int) -> int:
    """Lose all that a commit wrote; return its version."""
    entry(store, version).write_bytes(b"")
    for file in (store / "stash").rglob("tail-*.parquet"):
        if set(pq.read_table(file, partitioning=None)["ts"].to_pylist()) == {version}:
            file.unlink()
    return version


def names(store: Path) -> set[str]:
    with open_catalog(store, "read-only") as catalog:
        return {key.name for key, _ in catalog.rows(SettingKey)} - DEFAULTS


def leave_out(store: Path) -> None:
    repair(place_of(store), diagnose(place_of(store), heartbeat_s=BEAT), accept_loss=True, heartbeat_s=BEAT)


def obstacle_of(store: Path) -> str:
    """Return why nothing can be done, after a repair has refused to do it and changed nothing."""
    left, diagnosis = files_of(store), diagnose(place_of(store), heartbeat_s=BEAT)
    with pytest.raises(NotRepairableError):
        repair(place_of(store), diagnosis, accept_loss=True, heartbeat_s=BEAT)
    assert files_of(store) == left
    assert diagnosis.damaged is not None
    return diagnosis.damaged.obstacle


@pytest.mark.parametrize("age", [0, 1])
@pytest.mark.parametrize("mode", ["leader", "member"])
def test_a_live_process_that_knows_a_lost_commit_writes_nothing_after_the_repair(
    store: Path, age: int, mode: str
) -> None:
    """It is told to open the store again; else its next commit would lead to a state that is not in the log."""
    with open_catalog(store) as leader, open_catalog(store, "member") as member:
        live = leader if mode == "leader" else member
        for name in ("lost", "kept"):
            with live.transaction() as tx:
                tx.insert(SettingKey(name=name), SettingValue(value="1"))
        lost = {"kept", "lost"}.difference({"lost"} if age else {"kept"})
        lose(store, head_of(store) - age)
        leave_out(store)
        for _ in range(2):
            with pytest.raises(StateLeftOutError, match="open the store again"), live.transaction() as tx:
                tx.insert(SettingKey(name="more"), SettingValue(value="1"))
    assert names(store) == {"a", "b", "c"} | lost
    assert findings_of(store) == []
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="more"), SettingValue(value="1"))
    assert "more" in names(store)


@pytest.mark.parametrize(
    "change",
    [
        lambda tx: tx.update(SettingKey(name="lost"), SettingValue(value="2")),
        lambda tx: tx.delete(SettingKey(name="lost")),
        lambda tx: tx.insert(SettingKey(name="a"), SettingValue(value="again")),
    ],
    ids=["updated", "deleted", "inserted again"],
)
def test_a_commit_whose_rows_later_ones_changed_is_not_left_out(store: Path, change: Callable[..., None]) -> None:
    """Else a row would occur twice, or less than never."""
    with open_catalog(store) as catalog:
        with catalog.transaction() as tx:
            tx.insert(SettingKey(name="lost"), SettingValue(value="1"))
            tx.delete(SettingKey(name="a"))
        with catalog.transaction() as tx:
            change(tx)
    lose(store, head_of(store) - 1)
    assert obstacle_of(store) == "a later commit changed a row of `setting` that it wrote"


def test_a_commit_that_made_a_leader_is_not_left_out(store: Path) -> None:
    """Else its epoch would be given away twice."""
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="d"), SettingValue(value="1"))
    lose(store, head_of(store) - 1)
    assert obstacle_of(store) == f"entry {head_of(store)} is of a leader that began with it"


def test_a_leader_of_a_later_generation_is_restored(store: Path) -> None:
    """Its files tell generation and epoch."""
    with open_catalog(store, deploy_generation=7) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="d"), SettingValue(value="1"))
    entry(store, head_of(store) - 1).write_bytes(b"")
    diagnosis = diagnose(place_of(store), heartbeat_s=BEAT)
    assert diagnosis.damaged is not None
    assert diagnosis.damaged.remedy is Remedy.RESTORE
    repair(place_of(store), diagnosis, heartbeat_s=BEAT)
    assert findings_of(store) == []


def test_an_entry_of_another_history_is_named_and_not_called_sound(store: Path, tmp_path: Path) -> None:
    """For example one that was restored from the wrong copy: every line of it is whole."""
    other = tmp_path / "other"
    with open_catalog(other) as catalog:
        for name in ("x", "y", "z"):
            with catalog.transaction() as tx:
                tx.insert(SettingKey(name=name), SettingValue(value="1"))
    version = head_of(store) - 1
    entry(store, version).write_bytes(entry(other, version).read_bytes())
    assert obstacle_of(store) == "it, or one before it, is of another history, and nothing tells which"


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that earlier builds migrated; this build has written to it, consolidated and retired since."""
    store = tmp_path_factory.mktemp("varied") / "store"
    with tarfile.open(STORES / "v18_upgraded_to_v22.tar.gz") as archive:
        archive.extractall(store, filter="data")
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="a"), SettingValue(value="1"))
    compact_store(place_of(store), ["setting"])
    log = log_of(store)
    retired = CommitRequest(Operation.RETAIN, "retired", app_txns={AppTxn.FRONTIER: 5})
    log.compare_and_append(log.state(log.verify()), retired)
    open_catalog(store).close()
    return store


@pytest.mark.parametrize("operation", ["migrate", "transaction", "fence", "consolidate", "retain"])
def test_a_lost_entry_of_any_kind_is_restored_if_later_ones_prove_it(
    varied: Path, copied: Callable[[Path], Path], operation: str
) -> None:
    """Those of earlier builds too, which have no digest of their own: the next one that this build wrote vouches."""
    store, truth = copied(varied), rows_at(varied)
    others = sorted(entry(store, 0).parent.glob("*.json"))[:-1]
    lost = max(path for path in others if f'"stash.operation":"{operation}"' in path.read_text())
    lost.write_bytes(b"")
    diagnosis = diagnose(place_of(store), heartbeat_s=BEAT)
    assert diagnosis.damaged is not None
    assert (diagnosis.damaged.version, diagnosis.damaged.remedy) == (int(lost.stem), Remedy.RESTORE)
    repair(place_of(store), diagnosis, heartbeat_s=BEAT)
    assert rows_at(store) == truth
    assert log_of(store).commit(int(lost.stem)).operation == operation
    assert [found for found in findings_of(store) if found.severity is not Severity.NOTE] == []


def test_a_lost_consolidation_that_nothing_proves_is_not_left_out(varied: Path, copied: Callable[[Path], Path]) -> None:
    """It could as well be a migration, and later commits would then be of another version than the rest."""
    store = copied(varied)
    lost = max(path for path in entry(store, 0).parent.glob("*.json") if '"consolidate"' in path.read_text())
    for path in (lost, entry(store, int(lost.stem) + 1)):
        path.write_bytes(b"")
    assert obstacle_of(store).startswith("it may be the migration or consolidation that wrote collection=setting/base-")


@pytest.mark.parametrize("files", [1, 20, 5000])
def test_the_search_for_a_flipped_bit_is_short_for_entries_of_any_length(files: int) -> None:
    """A line that is implausible by itself is where it is; a long entry without one is not searched."""
    crcs = [f"{number:032x}-{number:08x}" for number in range(files)]
    paths = [f"collection=item/tail-0.1-{own}.parquet" for own in crcs]
    adds = tuple(DataFile(path, "item", FileKind.TAIL, 1000, 5, 8, 8) for path in paths)
    whole = commit_entry(LogState(7, {}, {}), CommitRequest(Operation.TRANSACTION, "t", adds), 1)
    assert with_one_bit_flipped("", 8, whole.replace(b'"add":', b'"ade":', 1)) == whole
    tried = with_one_bit_flipped("", 8, whole.replace(b'"size":1000', b'"size":1001', 1))
    assert tried == (whole if files < 5000 else None)


def test_doctor_names_a_damaged_entry_of_a_shard_and_repair_sets_it_aside(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A start needs the shards of builtins as well as the stash."""
    (log,) = (store / "shards").glob("builtin_migrations/_delta_log")
    max(log.glob("*.json")).write_bytes(b"")
    assert run(root, ["doctor", "-s", str(store)]) == 1
    assert "builtin_migrationsisdamaged:itisempty" in "".join(capsys.readouterr().out.split())  # lines are wrapped
    assert run(root, ["repair", "-s", str(store), "--yes"]) == 0
    assert run(root, ["doctor", "-s", str(store)]) == 0
    assert run(root, ["start", "-s", str(store)]) == 0


def test_numbers_that_are_equal_and_written_otherwise_are_not_taken_for_each_other() -> None:
    """Digests are remembered, but not by a part that only compares equal."""
    assert len({part_digest("file", own) for own in (1, True, 1.0)}) == 3


class Stopped(LocalStorage):
    """A storage whose process stops at one of its writes, before or after it."""

    def __init__(self, store: Path, number: int, *, after: bool) -> None:
        super().__init__(store / "stash")
        self.left, self.after = number, after

    def _pass(self, write: Callable[[], object]) -> object:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise StoreUnreachableError(self.uri, "write", "stopped")
        done = write()
        if self.left == 0:
            raise StoreUnreachableError(self.uri, "write", "stopped")
        return done

    def create(self, path: str, content: bytes) -> bool:
        return bool(self._pass(lambda: super(Stopped, self).create(path, content)))

    def replace(self, path: str, content: bytes) -> None:
        self._pass(lambda: super(Stopped, self).replace(path, content))

    def delete(self, path: str) -> None:
        self._pass(lambda: super(Stopped, self).delete(path))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("remedy", [Remedy.RESTORE, Remedy.SET_ASIDE, Remedy.LEAVE_OUT])
def test_a_repair_that_stops_at_any_write_is_done_again_with_the_same_loss(
    store: Path, remedy: Remedy, when: str, copied: Callable[[Path], Path]
) -> None:
    """Nothing is lost beyond what was told, and nothing is called restored that is not."""
    version = head_of(store) - (remedy is not Remedy.SET_ASIDE)
    if remedy is Remedy.RESTORE:
        entry(store, version).write_bytes(b"")
    else:
        lose(store, version)
    number, is_done = 0, False
    while not is_done:
        number += 1
        own = copied(store)
        stopping = Stopped(own, number, after=when == "after")
        damaged = _found(stopping, remedy)
        try:
            repair_entry(stopping, damaged, 1, accept_loss=True)
            is_done = stopping.left > 0
        except StoreUnreachableError:
            pass
        again = find_damaged(LocalStorage(own / "stash"))
        if again is not None:
            assert (again.version, again.remedy, again.lost) == (version, remedy, damaged.lost)
            repair_entry(LocalStorage(own / "stash"), again, 2, accept_loss=True)
        expected = {"a", "b", "c"} - (set() if remedy is Remedy.RESTORE else {"abc"[version - head_of(store) + 2]})
        assert names(own) == expected
        assert findings_of(own) == []
    assert number > 2  # the bytes are kept, and the entry is replaced


def _found(storage: LocalStorage, remedy: Remedy) -> DamagedEntry:
    damaged = find_damaged(storage)
    assert damaged is not None
    assert damaged.remedy is remedy
    return damaged


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Path], Path]:
    """Copy a store to a new place each time."""
    numbers = count()
    return lambda store: Path(shutil.copytree(store, tmp_path / f"copy-{next(numbers)}"))
