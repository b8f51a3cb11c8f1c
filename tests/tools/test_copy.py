"""Copies of stores: of every version, while others write, to any place, and interrupted at any point."""

from __future__ import annotations

import shutil
import signal
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from catalog import MIN_STASH_VERSION, STASH_VERSION, open_catalog
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, FileKind, LogState, Operation
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.engine_rows import NOT_PROTECTED
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.engine.storage.base import open_storage
from catalog.engine.storage.identity import make_identity, read_identity
from catalog.engine.store.scratch_copy import ProgressCallback
from catalog.errors import CopyTargetError, NotAStoreError, NotInitializedError, RetiredError, StoreFullError
from catalog.objects import SettingKey, SettingValue
from catalog.tools.copy import Copied, copy_store
from catalog.tools.fsck.store import check_store
from catalog.upgrade import PROJECT
from tests.engine.stash.crashes.ledger import count_of, open_stash, rows_after, rows_of, transact
from tests.engine.stash.races.processes import Pool
from tests.upgrade.stores import files_of

Rows = dict[str, list[tuple[bytes, bytes]]]
Options = Mapping[str, str]


def copy(
    source: Path | str,
    target: Path | str,
    options: tuple[Options, Options] = ({}, {}),
    progress: ProgressCallback | None = None,
) -> Copied:
    before, after = (StorePlace.at(PROJECT, place, own) for place, own in zip((source, target), options, strict=True))
    return copy_store(before, after, progress=progress)


def state_of(store: Path | str, options: Options | None = None, ts: int | None = None) -> LogState:
    log = DeltaLog(f"{store}/stash", options)
    return log.state(log.verify() if ts is None else ts)


def all_rows(store: Path | str, options: Options | None = None, ts: int | None = None) -> Rows:
    """Every row of every collection, the engine's own too; now, or at a ts."""
    view = load_view(BaseFileCache(DeltaLog(f"{store}/stash", options)), state_of(store, options, ts))
    found = {name: list(view.rows(name)) for name in sorted(view.collections())}
    return {name: rows for name, rows in found.items() if rows}


def findings_of(store: Path | str, options: Options | None = None) -> list[object]:
    return list(check_store(StorePlace.at(PROJECT, store, options), every_state=True).findings)


def ledger(store: Path) -> Stash:
    """A store that the processes of these tests write to."""
    make_identity(open_storage(str(store), {}), PROJECT.name)
    log = DeltaLog(f"{store}/stash")
    log.create("made")
    stash = open_stash(log)
    stash.take_over(0, "test")
    config = stash.registry.named("config")
    with stash.transaction(NOT_PROTECTED) as tx:
        transact(tx, 1)
        tx.insert(config.key_type(name="stash_version"), config.value_type(number=STASH_VERSION))
    log.compare_and_append(
        stash.state,
        CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, app_txns={AppTxn.STASH_VERSION: STASH_VERSION}),
    )
    return stash


@pytest.mark.parametrize("version", range(MIN_STASH_VERSION, STASH_VERSION + 1))
def test_a_store_of_any_version_is_copied(store_at: Callable[[int], Path], tmp_path: Path, version: int) -> None:
    """Row for row and with its marks, under an id of its own; of the source not a byte changes."""
    source, target = store_at(version), tmp_path / "copy"
    before = files_of(source)
    copied = copy(source, target)
    assert files_of(source) == before
    assert all_rows(target) == all_rows(source)
    marks = {**state_of(source).app_txns, AppTxn.FRONTIER: 1, AppTxn.RUNNING_STEP: 0}
    assert state_of(target).app_txns == marks
    assert findings_of(target) == []
    original = read_identity(open_storage(str(source), {}), PROJECT.name)
    identity = read_identity(open_storage(str(target), {}), PROJECT.name)
    assert original is not None
    assert identity is not None
    assert identity == replace(original, id=identity.id, copy_of=original.id)
    assert identity.id != original.id
    live = state_of(target).files.values()
    assert {file.kind for file in live} == {FileKind.BASE}
    assert copied == Copied(
        source=str(source),
        target=str(target),
        id=identity.id,
        copy_of=original.id,
        version=version,
        ts=state_of(source).version,
        rows=sum(map(len, all_rows(source).values())),
        files=len(live),
        bytes=sum(file.size for file in live),
    )


def test_a_store_of_a_version_that_this_build_does_not_know_is_copied(
    store_at: Callable[[int], Path], tmp_path: Path
) -> None:
    """Rows are copied as bytes."""
    source = store_at(STASH_VERSION)
    later = {AppTxn.STASH_VERSION: STASH_VERSION + 1}
    DeltaLog(f"{source}/stash").compare_and_append(
        state_of(source), CommitRequest(Operation.MIGRATE, "later", app_txns=later)
    )
    assert copy(source, tmp_path / "copy").version == STASH_VERSION + 1
    assert all_rows(tmp_path / "copy") == all_rows(source)


def test_a_copy_leads_a_life_of_its_own(tmp_path: Path) -> None:
    """It is made while somebody leads the source, whom it does not fence, and is written to like any store."""
    with open_catalog(tmp_path / "store") as leader:
        copy(tmp_path / "store", tmp_path / "copy")
        with leader.transaction() as tx:
            tx.insert(SettingKey(name="a"), SettingValue(value="source"))
        with open_catalog(tmp_path / "copy") as catalog:
            assert catalog.epoch == leader.epoch + 1
            with catalog.transaction() as tx:
                tx.insert(SettingKey(name="a"), SettingValue(value="copy"))
        assert dict(_settings(leader.rows(SettingKey)))["a"] == "source"
    assert findings_of(tmp_path / "copy") == []


def _settings(rows: object) -> list[tuple[str, str]]:
    return [(key.name, value.value) for key, value in rows]  # type: ignore[attr-defined]


@pytest.mark.parametrize("eager", [False, True], ids=["retained", "retired at once"])
def test_a_copy_of_a_store_that_is_written_to_is_one_state_of_it(victims: Pool, tmp_path: Path, *, eager: bool) -> None:
    """Exactly that of the ts it names, whatever is committed, consolidated and deleted meanwhile."""
    source = tmp_path / "store"
    ledger(source)
    writer = victims.one()
    writer.tell(do="write", store=str(source), eager=eager)
    made = [(writer.hear(), copy(source, tmp_path / f"copy {number}")) for number in range(5)]
    last = max(copied.ts for _, copied in made)
    done = {1: 2}
    for told, _ in made:
        done[told["done"]] = told["ts"]
    while max(done.values()) <= last:
        told = writer.hear()
        done[told["done"]] = told["ts"]
    writer.close()
    for number, (_, copied) in enumerate(made):
        target = tmp_path / f"copy {number}"
        stash = open_stash(DeltaLog(f"{target}/stash"))
        count = count_of(stash.view())
        assert count == max(said for said, ts in done.items() if ts <= copied.ts)
        assert rows_of(stash.view()) == rows_after(count)
        assert eager or all_rows(target) == all_rows(source, ts=copied.ts)
        assert findings_of(target) == []
    assert made[-1][1].ts > made[0][1].ts


def retire(source: Path) -> None:
    """Write all of a store anew, and delete whatever is not of its newest state."""
    log = DeltaLog(f"{source}/stash")
    stash = Stash.open(log, Registry.of(PROJECT.current_types), Constraints())
    stash.join()
    for name in sorted(stash.view().collections()):
        stash.consolidate(name)
    clean(log, stash.state, Policy(retention_ms=0, orphan_ms=0))


def test_a_copy_whose_source_is_retired_begins_again(store_at: Callable[[int], Path], tmp_path: Path) -> None:
    """With the newest state, into the same place, and without a trace of what was copied before."""
    source, asked = store_at(STASH_VERSION), list[int]()
    first = state_of(source).version

    def progress(rows: int, _total: int) -> None:
        if not asked:
            retire(source)
        asked.append(rows)

    copied = copy(source, tmp_path / "copy", progress=progress)
    assert copied.ts == state_of(source).version > first
    assert asked.count(asked[0]) == 2, "it did not begin again"
    assert all_rows(tmp_path / "copy") == all_rows(source)
    assert findings_of(tmp_path / "copy") == []


def test_a_source_that_is_retired_again_and_again_is_given_up(store_at: Callable[[int], Path], tmp_path: Path) -> None:
    """And leaves nothing at the target."""
    source = store_at(STASH_VERSION)
    with pytest.raises(RetiredError):
        copy(source, tmp_path / "copy", progress=lambda *_: retire(source))
    assert list((tmp_path / "copy").iterdir()) == []


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), OSError("no more"), MemoryError()], ids=repr)
def test_a_copy_that_fails_removes_what_it_wrote(
    store_at: Callable[[int], Path], tmp_path: Path, reason: BaseException
) -> None:
    """So that the next one succeeds at the same place."""
    source, target = store_at(MIN_STASH_VERSION), tmp_path / "copy"
    told = list[int]()

    def progress(rows: int, _total: int) -> None:
        told.append(rows)
        if len(told) == 3:
            raise reason

    with pytest.raises(type(reason)):
        copy(source, target, progress=progress)
    assert list(target.iterdir()) == []
    copy(source, target)
    assert all_rows(target) == all_rows(source)


@pytest.mark.parametrize("times", [1, 4, 0], ids=["first file", "fourth file", "before store.json"])
def test_a_copy_that_was_killed_is_no_store_and_says_what_to_remove(
    victims: Pool, store_at: Callable[[int], Path], tmp_path: Path, times: int
) -> None:
    """Nobody opens it, no copy is mixed with it, and once it is removed the next copy succeeds."""
    source, target = store_at(STASH_VERSION), tmp_path / "copy"
    before = files_of(source)
    victim = victims.one()
    victim.tell(do="copy", store=str(source), target=str(target), times=times)
    assert list(victim.answers()) == []
    assert victim.wait() == -signal.SIGKILL
    left = files_of(target)
    assert left
    for mode in ("leader", "member", "read-only", "savepoint", "debug"):
        with pytest.raises(NotAStoreError):
            open_catalog(target, mode)
    with pytest.raises(CopyTargetError) as caught:
        copy(source, target)
    assert f"remove {target}/stash, and copy again" in caught.value.next
    assert files_of(target) == left
    shutil.rmtree(target / "stash")
    copy(source, target)
    assert (files_of(source), all_rows(target)) == (before, all_rows(source))


def make_file(target: Path) -> None:
    target.mkdir()
    (target / "notes.txt").write_text("mine")


def make_folder(target: Path) -> None:
    (target / "empty").mkdir(parents=True)


def make_link(target: Path) -> None:
    target.mkdir()
    (target / "link").symlink_to(target / "nowhere")


def make_store(target: Path) -> None:
    open_catalog(target).close()


def be_a_file(target: Path) -> None:
    target.write_text("mine")


@pytest.mark.parametrize(
    ("occupy", "named"),
    [
        (make_file, "it holds notes.txt"),
        (make_folder, "it holds empty"),
        (make_link, "it holds link"),
        (make_store, "it holds heartbeats, shards, stash and 1 more"),
        (be_a_file, "it is a file"),
    ],
)
def test_a_place_that_is_not_empty_is_refused_and_left_alone(
    store_at: Callable[[int], Path], tmp_path: Path, occupy: Callable[[Path], None], named: str
) -> None:
    """What is there is named."""
    source, target = store_at(STASH_VERSION), tmp_path / "copy"
    occupy(target)
    before = sorted(map(str, tmp_path.rglob("*"))), files_of(tmp_path)
    with pytest.raises(CopyTargetError, match=named):
        copy(source, target)
    assert (sorted(map(str, tmp_path.rglob("*"))), files_of(tmp_path)) == before


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("store", "it is the store to copy"),
        ("link", "it is the store to copy"),
        ("store/copies/one", "it is inside the store to copy"),
        ("link/copy", "it is inside the store to copy"),
        ("", "it contains the store to copy"),
        ("other/copy", "it is inside another store"),
    ],
)
def test_a_store_is_copied_neither_into_itself_nor_into_another(
    store_at: Callable[[int], Path], tmp_path: Path, target: str, named: str
) -> None:
    """By whatever name it goes."""
    source = store_at(STASH_VERSION)
    (tmp_path / "link").symlink_to(source)
    open_catalog(tmp_path / "other").close()
    before = files_of(tmp_path)
    with pytest.raises(CopyTargetError, match=named):
        copy(source, tmp_path / target)
    assert files_of(tmp_path) == before


def test_a_disk_without_room_is_refused_before_anything_is_written(
    store_at: Callable[[int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how much is needed."""
    source = store_at(STASH_VERSION)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(StoreFullError, match="MiB are needed, and 0 MiB are free"):
        copy(source, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_what_holds_no_rows_is_not_copied(tmp_path: Path) -> None:
    """A place that is no store, and a store that nobody initialised."""
    with pytest.raises(NotAStoreError):
        copy(tmp_path / "store", tmp_path / "copy")
    make_identity(open_storage(str(tmp_path / "store"), {}), PROJECT.name)
    DeltaLog(f"{tmp_path}/store/stash").create("made")
    with pytest.raises(NotInitializedError):
        copy(tmp_path / "store", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_stores_are_copied_between_folders_and_object_stores(
    store_at: Callable[[int], Path], tmp_path: Path, store_bucket: tuple[str, dict[str, str]]
) -> None:
    """There, within, and back: the rows are those of the first."""
    source, (place, options) = store_at(MIN_STASH_VERSION), store_bucket
    copy(source, f"{place}/one", ({}, options))
    copied = copy(f"{place}/one", f"{place}/two", (options, options))
    copy(f"{place}/two", tmp_path / "back", (options, {}))
    rows = all_rows(source)
    assert copied.rows == sum(map(len, rows.values()))
    assert all_rows(f"{place}/one", options) == all_rows(f"{place}/two", options) == all_rows(tmp_path / "back") == rows
    assert findings_of(f"{place}/two", options) == findings_of(tmp_path / "back") == []
    with pytest.raises(CopyTargetError, match=r"it holds heartbeats, stash, store\.json"):
        copy(source, f"{place}/one", ({}, options))
    with pytest.raises(CopyTargetError, match="it is inside the store to copy"):
        copy(f"{place}/one", f"{place}/one/copy", (options, options))
    with pytest.raises(CopyTargetError, match="it is inside another store"):
        copy(source, f"{place}/one/copy", ({}, options))


def test_a_copy_to_an_object_store_that_fails_removes_what_it_wrote(
    store_at: Callable[[int], Path], store_bucket: tuple[str, dict[str, str]]
) -> None:
    """As it does in a folder."""
    source, (place, options) = store_at(STASH_VERSION), store_bucket

    def progress(_rows: int, _total: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        copy(source, f"{place}/one", ({}, options), progress=progress)
    assert open_storage(f"{place}/one", options).found() == "nothing is there"
    assert copy(source, f"{place}/one", ({}, options)).rows
