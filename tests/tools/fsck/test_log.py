"""What a check of a stash finds in its log and marks; files and rows are still checked as far as they are known."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.engine.log.delta_entries import checkpoint_path, commit_entry
from catalog.engine.log.protocol import AppTxn, CommitRequest, Operation
from catalog.engine.storage.base import open_storage
from catalog.generated import objects_pb2 as types
from catalog.tools.fsck.findings import FsckCode, Severity
from tests.engine.log.places import DeltaPlace, MemoryPlace, Place
from tests.engine.stash.test_stash import open_stash
from tests.tools.fsck.test_stash import checked, filled, live_file, only, raw, slip


@pytest.fixture(params=["memory", "local"])
def near(request: pytest.FixtureRequest, folder: DeltaPlace) -> Place:
    return MemoryPlace() if request.param == "memory" else folder


@pytest.mark.parametrize("content", [b"", b"\x00\xff garbage", b"17\n", None])
def test_a_damaged_entry_in_the_middle_is_found(folder: DeltaPlace, content: bytes | None) -> None:
    """Without a checkpoint after it nothing newer can be read, so what is before it is checked."""
    stash = filled(folder)
    folder.entry(3).unlink() if content is None else folder.entry(3).write_bytes(content)
    report = checked(folder)
    errors = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    assert [(error.code, error.where) for error in errors] == [
        (FsckCode.ENTRY, "entry 3"),
        (FsckCode.STATE, f"ts {stash.ts}"),
    ]
    assert "`catalog repair` restores it, or says what would be lost" in errors[0].repair
    assert errors[1].what.endswith("files and rows were checked as of ts 2")
    assert report.files


@pytest.mark.parametrize("damage", ["garbage", "missing"])
def test_a_damaged_entry_before_a_checkpoint_is_found(folder: DeltaPlace, damage: str) -> None:
    """The newest state is checked, and no file is taken for an orphan."""
    stash = filled(folder)
    stash.log.checkpoint(stash.ts)
    folder.entry(3).write_bytes(b"garbage") if damage == "garbage" else folder.entry(3).unlink()
    where, what, repair = only(checked(folder), FsckCode.ENTRY)
    assert where == "entry 3"
    assert "is damaged" in what
    assert "restore a copy" in repair


def test_a_gap_after_a_checkpoint_is_found(folder: DeltaPlace) -> None:
    """Entries beyond it are not forgotten."""
    stash = filled(folder)
    stash.log.checkpoint(3)
    folder.entry(5).unlink()
    found = {(finding.code, finding.where) for finding in checked(folder).findings}
    assert (FsckCode.ENTRY, "entry 5") in found
    assert (FsckCode.STATE, f"ts {stash.ts}") in found


@pytest.mark.parametrize("content", [b"", b"garbage"])
def test_a_torn_newest_entry_can_be_set_aside(folder: DeltaPlace, content: bytes) -> None:
    """Its transaction was never acknowledged; everything before it is still checked."""
    stash = filled(folder)
    newest = stash.ts
    folder.entry(newest).write_bytes(content)
    errors = [finding for finding in checked(folder).findings if finding.severity is Severity.ERROR]
    assert [(error.code, error.where) for error in errors] == [
        (FsckCode.ENTRY, f"entry {newest}"),
        (FsckCode.STATE, f"ts {newest}"),
    ]
    assert "`catalog repair` restores it" in errors[0].repair


def test_a_foreign_entry_is_found(folder: DeltaPlace) -> None:
    """Somebody else wrote to the store."""
    stash = filled(folder)
    stash.log.checkpoint(stash.ts)
    folder.entry(3).write_bytes(folder.entry(3).read_bytes().replace(b"stash.", b"other."))
    where, what, repair = only(checked(folder), FsckCode.ENTRY)
    assert where == "entry 3"
    assert "was not written by this program" in what
    assert "restore a copy from before that" in repair


def test_an_entry_that_removes_what_is_not_there_is_found(folder: DeltaPlace) -> None:
    """delta-rs would accept it without a word."""
    stash = filled(folder)
    newest = stash.ts
    nothing = replace(live_file(stash, "role"), path="collection=role/nothing.parquet")
    change = CommitRequest(Operation.TRANSACTION, "removes nothing", removes=(nothing,))
    folder.entry(newest + 1).write_bytes(commit_entry(stash.log.state(newest), change, 1))
    newest += 1
    where, what, _ = only(checked(folder), FsckCode.SEQUENCE)
    assert (where, what) == (f"entry {newest}", "it removes collection=role/nothing.parquet, which did not exist")


def test_a_checkpoint_that_lost_a_file_is_found(folder: DeltaPlace) -> None:
    """It can be read, but the entry of its version names another state."""
    stash = filled(folder)
    stash.log.checkpoint(stash.ts - 1)
    checkpoint = folder.checkpoint(stash.ts - 1)
    table = pq.ParquetFile(checkpoint).read()
    role = live_file(stash, "role").path
    kept = [(row["add"] or {}).get("path") != role for row in table.select(["add"]).to_pylist()]
    pq.write_table(table.filter(pa.array(kept)), checkpoint)
    where, what, repair = only(checked(folder), FsckCode.DAMAGED_CHECKPOINT)
    assert where == f"checkpoint {stash.ts - 1}"
    assert f"entry {stash.ts - 1} leads to another state" in what
    assert "checkpoint again" in repair


@pytest.fixture(params=["folder", "bucket"])
def stored(request: pytest.FixtureRequest) -> DeltaPlace:
    """Where a log has checkpoints that can be damaged."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, DeltaPlace)
    return found


@pytest.mark.parametrize("content", [b"", b"garbage", b"PAR1 garbage PAR1"])
@pytest.mark.parametrize("newest", [True, False])
def test_a_garbage_checkpoint_is_found(stored: DeltaPlace, content: bytes, *, newest: bool) -> None:
    """It is stepped over when a store is opened, so nobody else would tell; checkpointing again repairs it."""
    stash = filled(stored)
    for version in (stash.ts - 2, stash.ts):
        stash.log.checkpoint(version)
    assert checked(stored).findings == ()
    damaged = stash.ts if newest else stash.ts - 2
    open_storage(stored.uri, stored.options).replace(checkpoint_path(damaged), content)
    where, what, repair = only(checked(stored), FsckCode.DAMAGED_CHECKPOINT)
    assert where == f"checkpoint {damaged}"
    assert "is damaged" in what
    assert "checkpoint again at that version" in repair
    stored.open().checkpoint(damaged)
    assert checked(stored).findings == ()


def test_what_is_no_stash_is_a_finding(folder: DeltaPlace) -> None:
    """Checking never raises."""
    where, what, repair = only(checked(folder), FsckCode.NO_LOG)
    assert where == folder.open().uri
    assert "there is no stash" in what
    assert "initialise a store" in repair


@pytest.mark.parametrize("mark", [AppTxn.EPOCH, AppTxn.DEPLOY_GENERATION])
def test_a_fence_that_differs_from_its_row_is_found(near: Place, mark: AppTxn) -> None:
    """The next leader writes both."""
    slip(filled(near), near, change=lambda change: replace(change, app_txns={mark: 9}))
    where, what, repair = only(checked(near), FsckCode.FENCE)
    assert where == '`fence_token` {"scope": "store"}'
    assert "the row says (1, 1), the marks of the log" in what
    assert "`catalog repair` writes the row as the log has it, and so does the next leader" in repair
    stash = open_stash(near)
    stash.take_over(9, "next")
    assert checked(near).findings == ()


def test_a_version_that_differs_from_its_row_is_found(near: Place) -> None:
    """If both are there."""
    stash = filled(near)
    row = raw(types.ConfigKey(name="stash_version"), types.ConfigValue(number=22))
    slip(stash, near, "config", (row,), change=lambda change: replace(change, app_txns={AppTxn.STASH_VERSION: 22}))
    assert checked(near).findings == ()
    slip(open_stash(near), near, change=lambda change: replace(change, app_txns={AppTxn.STASH_VERSION: 21}))
    where, what, repair = only(checked(near), FsckCode.VERSION)
    assert where == '`config` {"name": "stash_version"}'
    assert what == "the row says 22, the mark of the log 21"
    assert "`catalog repair` writes the row as the log has it" in repair


def test_a_fence_that_went_back_is_found(near: Place) -> None:
    """No commit may do that."""
    stash = filled(near)
    slip(stash, near, change=lambda change: replace(change, app_txns={AppTxn.EPOCH: 0}))
    assert {finding.code for finding in checked(near).findings} == {FsckCode.SEQUENCE, FsckCode.FENCE}


def test_a_commit_that_landed_twice_is_found(near: Place) -> None:
    """By its txid."""
    stash = filled(near)
    for _ in range(2):
        slip(stash, near, change=lambda change: replace(change, txid="twice"))
    where, what, _ = only(checked(near), FsckCode.SEQUENCE)
    assert where == f"entry {stash.refresh()}"
    assert what == f"it is entry {stash.ts - 1} again: twice"
