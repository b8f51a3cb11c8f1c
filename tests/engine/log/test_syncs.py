"""A failed sync is not believed the second time: what was acknowledged survives a power cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import LogState
from catalog.engine.storage.identity import make_identity
from catalog.engine.storage.local import LocalStorage
from catalog.errors import CatalogError, CommitFailedError, IndeterminateError
from tests.engine.log.places import DeltaPlace, append, change, created, grown, tail
from tests.engine.log.power import Disk

COMMITS = 4
SYNCS = 6
"""Of a commit to a collection of its own: the folder above, the file, its folder; the entry, the log."""


def commit(log: DeltaLog, acknowledged: list[LogState], collection: str) -> None:
    """Commit after the newest state; note what was acknowledged."""
    state = log.state(log.verify())
    acknowledged.append(state.after(log.compare_and_append(state, change(tail(log, state, collection=collection)))))


def assert_kept(place: DeltaPlace, acknowledged: list[LogState]) -> None:
    log = place.open()
    head = log.state(log.verify())
    for state in acknowledged:
        assert log.state(state.version).files == state.files
    for file in head.files.values():
        assert log.read(file).num_rows == 1


@pytest.mark.parametrize("second", [False, True], ids=["the same process", "another process"])
@pytest.mark.parametrize("failing", range(1, 2 * SYNCS))
def test_no_commit_is_built_on_one_whose_sync_failed(
    folder: DeltaPlace, monkeypatch: pytest.MonkeyPatch, failing: int, *, second: bool
) -> None:
    """Whichever sync failed, of a file, an entry or a folder: what is acknowledged later survives a power cut."""
    log, state = created(folder)
    append(log, state)
    disk = Disk(folder.folder, frozenset({failing}))
    disk.attach(monkeypatch)
    acknowledged: list[LogState] = []
    failed = 0
    for number in range(COMMITS):
        opened = folder.open() if second else log
        assert isinstance(opened, DeltaLog)
        try:
            commit(opened, acknowledged, f"c{number}")
        except CatalogError:
            failed += 1
    assert len(acknowledged) >= COMMITS - 1
    assert failed <= 1
    disk.cut()
    assert_kept(folder, acknowledged)


def test_an_entry_whose_folder_cannot_be_synced_is_in_doubt_and_the_next_writes_it_again(
    folder: DeltaPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer is told so; another process that goes on from it takes no bare sync for an answer."""
    log, state = created(folder)
    state = append(log, state)
    file = tail(log, state)
    disk = Disk(folder.folder, frozenset({2, 4}))  # the log, after the entry; and again, after it was written again
    disk.attach(monkeypatch)
    with pytest.raises(IndeterminateError, match=r"not known to be durable: .*Input/output error"):
        log.compare_and_append(state, change(file))
    entry = folder.entry(2)
    before = entry.stat().st_ino
    acknowledged: list[LogState] = []
    commit(folder.open(), acknowledged, "role")
    assert entry.stat().st_ino != before
    disk.cut()
    assert_kept(folder, acknowledged)


def test_nothing_is_built_on_an_entry_that_cannot_be_written_again(
    folder: DeltaPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next commit fails, before anything of it is in the log."""
    log, state = created(folder)
    state = append(log, state)
    file = tail(log, state)
    disk = Disk(folder.folder, frozenset(range(2, 100)))
    disk.attach(monkeypatch)
    with pytest.raises(IndeterminateError):
        log.compare_and_append(state, change(file))
    after = log.state(2)
    with pytest.raises(CommitFailedError, match="Input/output error"):
        folder.open().compare_and_append(after, change(app_txns={}))
    assert folder.open().verify() == 2


def test_a_first_entry_that_could_not_be_synced_is_written_again(
    folder: DeltaPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made by delta-rs, which syncs nothing."""
    folder.folder.mkdir(parents=True)
    disk = Disk(folder.folder)
    disk.attach(monkeypatch)
    disk.fails = frozenset({3})
    with pytest.raises(CatalogError, match="Input/output error"):
        folder.open().create("first")
    acknowledged: list[LogState] = []
    commit(folder.open(), acknowledged, "role")
    disk.cut()
    assert_kept(folder, acknowledged)


@pytest.mark.parametrize("failing", range(1, 8))
def test_checkpoints_archive_and_expiry_survive_a_sync_that_failed(
    folder: DeltaPlace, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Nothing leaves the log, and nothing is deleted, before what replaces it is durable."""
    log, state = created(folder)
    for version in (3, 6):
        state = grown(log, state, 3)
        log.checkpoint(version)
    state = grown(log, state, 1)
    disk = Disk(folder.folder, frozenset({failing}))
    disk.attach(monkeypatch)
    for _ in range(2):
        try:
            folder.open().checkpoint(7)
            folder.open().expire(7)
        except CatalogError:
            continue
    disk.cut()
    assert folder.open().verify() == 7
    assert folder.open().state(7) == state


def test_a_folder_whose_name_could_not_be_synced_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files in it would be lost with its name."""
    (tmp_path / "root").mkdir()
    disk = Disk(tmp_path / "root", frozenset({1}))
    disk.attach(monkeypatch)
    storage = LocalStorage(tmp_path / "root")
    with pytest.raises(CatalogError, match="Input/output error"):
        storage.write("collection=role/a", b"a")
    storage.write("collection=role/b", b"b")
    disk.cut()
    assert storage.read("collection=role/b") == b"b"


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_identity_that_could_not_be_synced_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """The next process that opens the store for writing finds it, and makes it durable."""
    (tmp_path / "root").mkdir()
    disk = Disk(tmp_path / "root", frozenset({failing}))
    disk.attach(monkeypatch)
    made = None
    for _ in range(2):
        try:
            made = make_identity(LocalStorage(tmp_path / "root"), "catalog")
        except CatalogError:
            continue
    assert made is not None
    disk.cut()
    assert make_identity(LocalStorage(tmp_path / "root"), "catalog") == made


def test_a_file_has_one_name_once_it_is_durable(folder: DeltaPlace) -> None:
    """So the next writer need not write it again."""
    log, state = created(folder)
    append(log, state)
    assert folder.entry(1).stat().st_nlink == 1
    assert [path.name for path in (folder.folder / "_delta_log").glob(".*")] == []
