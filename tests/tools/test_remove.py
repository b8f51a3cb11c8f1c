"""The removal of stores: of every version, whole or damaged, led or not, and interrupted at any point."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog import MIN_STASH_VERSION, STASH_VERSION, open_catalog
from catalog.engine.base.fence import Fence
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, Operation
from catalog.engine.storage.base import Storage, open_storage
from catalog.engine.storage.identity import make_identity
from catalog.errors import BeingRemovedError, CatalogError, FencedError, NotAStoreError, StoreUnreachableError
from catalog.objects import SettingKey, SettingValue
from catalog.tools import remove as removal
from catalog.tools.copy import copy_store
from catalog.tools.fsck.store import check_store
from catalog.tools.remove import Removed, plan_removal, remove_store
from catalog.upgrade import PROJECT
from tests.engine.stash.races.processes import Pool
from tests.upgrade.stores import files_of

MODES = ("leader", "member", "read-only", "savepoint", "debug")


def remove(store: Path) -> Removed:
    return remove_store(StorePlace.at(PROJECT, store), "test")


def fence_of(store: Path) -> Fence:
    log = DeltaLog(f"{store}/stash")
    return log.state(log.verify()).fence


def listed(folder: Path) -> list[str]:
    """Everything in a folder, empty folders too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize("version", [*range(MIN_STASH_VERSION, STASH_VERSION + 1)])
def test_a_store_of_any_version_is_removed(store_at: Callable[[int], Path], version: int) -> None:
    """Whoever led it is fenced, every file and folder of it goes, and the plan says so before."""
    store = store_at(version)
    (store / "heartbeats").mkdir(exist_ok=True)
    (store / "heartbeats" / f".0.1.json.{uuid.uuid4().hex}.tmp").write_text("{}")
    (store / f".store.json.{uuid.uuid4().hex}.tmp").write_text("{}")
    before, fence = files_of(store), fence_of(store)
    plan = plan_removal(StorePlace.at(PROJECT, store))
    assert {file.path: file.size for file in plan.files} == {path: len(raw) for path, raw in before.items()}
    assert (plan.bytes, plan.others, plan.begun) == (sum(map(len, before.values())), (), False)
    assert files_of(store) == before
    removed = remove(store)
    assert (removed.id, removed.others) == (plan.id, ())
    assert (removed.fence, removed.unfenced) == (Fence(fence.generation, fence.epoch + 1), None)
    assert removed.files == len(before) + 2, "those there were, and the two that a fence is"
    assert listed(store) == []
    with open_catalog(store) as catalog:
        assert catalog.epoch == 1, "a new store is made there"


def test_a_store_of_a_version_that_this_build_does_not_know_is_removed(store_at: Callable[[int], Path]) -> None:
    """The fence is the same at every version."""
    store = store_at(STASH_VERSION)
    log = DeltaLog(f"{store}/stash")
    later = {AppTxn.STASH_VERSION: STASH_VERSION + 1, AppTxn.DEPLOY_GENERATION: 7}
    log.compare_and_append(log.state(log.verify()), CommitRequest(Operation.MIGRATE, "later", app_txns=later))
    fence = fence_of(store)
    assert remove(store).fence == Fence(7, fence.epoch + 1)
    assert listed(store) == []


def test_whoever_leads_or_writes_is_fenced_before_anything_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removal that stops there has deleted nothing, and nobody opens the store until it is finished."""
    store = tmp_path / "store"

    def stop(*_: object) -> None:
        raise InterruptedError

    with open_catalog(store, deploy_generation=3) as leader, open_catalog(store, "member") as member:
        before = files_of(store)
        with monkeypatch.context() as patch:
            patch.setattr(removal, "take_inventory", stop)
            with pytest.raises(InterruptedError):
                remove(store)
        assert before.keys() <= files_of(store).keys()
        for catalog in (leader, member):
            with pytest.raises(FencedError), catalog.transaction() as tx:
                tx.upsert(SettingKey(name="a"), SettingValue(value="1"))
    assert remove(store).fence == Fence(3, 3), "it is fenced again by the removal that finishes"
    assert listed(store) == []


def test_a_leader_of_a_removed_store_writes_no_more(tmp_path: Path) -> None:
    """And its signs of life keep nobody from making a new store there."""
    store = tmp_path / "store"
    with open_catalog(store) as leader:
        remove(store)
        with pytest.raises(CatalogError), leader.transaction() as tx:
            tx.upsert(SettingKey(name="a"), SettingValue(value="1"))
        assert [path for path in files_of(store) if not path.startswith("heartbeats/")] == []
    open_catalog(store).close()


def test_a_store_that_is_removed_while_a_leader_opens_it_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader that had read `store.json` before finds the log gone, and looks again."""
    store = tmp_path / "store"
    make_identity(open_storage(str(store), {}), PROJECT.name)
    create = DeltaLog.create

    def late(log: DeltaLog, txid: str) -> bool:
        remove(store)
        return create(log, txid)

    monkeypatch.setattr(DeltaLog, "create", late)
    with pytest.raises(NotAStoreError, match="it was removed while it was being opened"):
        open_catalog(store)


def test_what_is_not_the_stores_stays_and_is_named(store_at: Callable[[int], Path]) -> None:
    """Files and folders, full and empty, and links, wherever they are."""
    store = store_at(STASH_VERSION)
    for path in ("notes.txt", "stash/README", "stash/_delta_log/notes.json", "heartbeats/me", "mine/deep/er/file"):
        (store / path).parent.mkdir(parents=True, exist_ok=True)
        (store / path).write_text("mine")
    (store / "stash" / "collection=role" / "mine.parquet").write_text("mine")
    (store / "empty").mkdir()
    (store / "link").symlink_to(store / "nowhere")
    (store / "stash" / "collection=role" / "folder").mkdir()
    named = (
        "empty",
        "heartbeats/me",
        "link",
        "mine",
        "notes.txt",
        "stash/README",
        "stash/_delta_log/notes.json",
        "stash/collection=role/folder",
        "stash/collection=role/mine.parquet",
    )
    assert plan_removal(StorePlace.at(PROJECT, store)).others == named
    assert remove(store).others == named
    assert set(files_of(store).values()) == {b"mine"}
    above = {"heartbeats", "stash", "stash/_delta_log", "stash/collection=role"}
    assert set(listed(store)) == {*named, *above, "mine/deep", "mine/deep/er", "mine/deep/er/file"}
    with pytest.raises(NotAStoreError):
        open_catalog(store)


def cut_newest(store: Path) -> None:
    newest = max((store / "stash" / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:-20])


def lose_log(store: Path) -> None:
    for path in (store / "stash" / "_delta_log").iterdir():
        path.unlink()


def lose_tail(store: Path) -> None:
    next((store / "stash" / "collection=fence_token").glob("tail-*")).unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [(cut_newest, "is damaged"), (lose_log, "there is no stash"), (lose_tail, "is missing")],
)
def test_a_damaged_store_is_removed_and_says_that_it_was_not_fenced(
    store_at: Callable[[int], Path], damage: Callable[[Path], None], said: str
) -> None:
    """Damage is a reason to remove a store."""
    store = store_at(STASH_VERSION)
    damage(store)
    removed = remove(store)
    assert removed.fence is None
    assert said in (removed.unfenced or "")
    assert listed(store) == []


@pytest.mark.parametrize("logged", [False, True], ids=["no log yet", "an empty log"])
def test_a_store_that_was_never_initialised_is_removed(tmp_path: Path, *, logged: bool) -> None:
    """A leader stopped before it had done so."""
    make_identity(open_storage(str(tmp_path / "store"), {}), PROJECT.name)
    if logged:
        DeltaLog(f"{tmp_path}/store/stash").create("made")
    removed = remove(tmp_path / "store")
    assert removed.fence == (Fence(0, 1) if logged else None)
    assert listed(tmp_path / "store") == []


def file_count(store: Path) -> int:
    return len(files_of(store))


@pytest.mark.parametrize("times", [1, 2, 4, 9, -2, -1])
def test_a_removal_that_was_killed_is_finished_by_the_next(
    victims: Pool, store_at: Callable[[int], Path], tmp_path: Path, times: int
) -> None:
    """Until then nobody opens, makes, copies or checks a store there; counted from the end, the last is store.json."""
    store = store_at(STASH_VERSION)
    open_catalog(store).close()
    files = file_count(store) + 2
    victim = victims.one()
    victim.tell(do="remove", store=str(store), times=times if times > 0 else files + 1 + times)
    assert list(victim.answers()) == []
    assert victim.wait() == -signal.SIGKILL
    left = files_of(store)
    assert len(left) == (files + 1 - times if times > 0 else -times)
    place = StorePlace.at(PROJECT, store)
    uses: list[Callable[[], object]] = [
        *(lambda mode=mode: open_catalog(store, mode) for mode in MODES),
        lambda: copy_store(place, StorePlace.at(PROJECT, tmp_path / "copy")),
        lambda: check_store(place),
    ]
    for use in uses:
        with pytest.raises(BeingRemovedError, match="next: finish the removal"):
            use()
    assert files_of(store) == left
    assert plan_removal(place).begun
    remove(store)
    assert listed(store) == []
    open_catalog(store).close()


def test_what_is_no_store_is_not_removed(tmp_path: Path) -> None:
    """Nothing is deleted by mistake: an empty place, somebody's folder, another project's store."""
    (tmp_path / "notes.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(NotAStoreError):
            remove(place)
    make_identity(open_storage(str(tmp_path / "other"), {}), "other")
    with pytest.raises(NotAStoreError, match="it belongs to the project other"):
        remove(tmp_path / "other")
    assert set(files_of(tmp_path)) == {"notes.txt", "other/store.json"}


def test_a_store_that_cannot_be_reached_is_not_deleted_unfenced(
    store_at: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only damage is a reason to go on without a fence, or a removal that began before."""
    store = store_at(STASH_VERSION)
    files = set(files_of(store))

    def fail(*_: object) -> None:
        raise StoreUnreachableError(str(store), "open", "no answer")

    monkeypatch.setattr("catalog.engine.stash.stash.Stash.take_over", fail)
    with pytest.raises(StoreUnreachableError):
        remove(store)
    assert set(files_of(store)) == files
    removed = remove(store)
    assert "no answer" in (removed.unfenced or "")
    assert listed(store) == []


def test_a_store_in_an_object_store_is_removed(
    store_at: Callable[[int], Path], store_bucket: tuple[str, dict[str, str]]
) -> None:
    """With everything of it, and nothing beside it."""
    bucket, options = store_bucket
    place = StorePlace.at(PROJECT, f"{bucket}/one", options)
    storage: Storage = place.storage
    copy_store(StorePlace.at(PROJECT, store_at(MIN_STASH_VERSION)), place)
    neighbour = open_storage(f"{bucket}/one-more", options)
    for found in (storage, neighbour):
        found.write("notes/deep/file", b"mine")
    plan = plan_removal(place)
    removed = remove_store(place, "test")
    assert removed.files == len(plan.files) + 2
    assert removed.fence is not None
    assert removed.others == plan.others == ("notes",)
    assert [entry.path for entry in storage.entries()] == ["notes/deep/file"]
    assert neighbour.read("notes/deep/file") == b"mine"
