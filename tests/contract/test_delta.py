"""What the log on Delta Lake does beyond the contract: what delta-rs throws, what is made durable, who else reads."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from catalog.errors import CommitFailedError
from catalog.log.entries import sealing_entry
from catalog.log.local_storage import LocalStorage
from catalog.log.maintenance import Policy, maintain
from catalog.log.protocol import Change, Mark, Operation
from tests.contract.places import DeltaPlace, append, change, created, grown, tail


class PanicException(BaseException):
    """What a library in Rust raises when it gives up."""


FAILURES = [
    OSError("broken"),
    ValueError("broken"),
    FileNotFoundError("broken"),
    Exception("broken"),
    PanicException("broken"),
]


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_whatever_delta_rs_throws_the_outcome_is_known(
    folder: DeltaPlace, monkeypatch: pytest.MonkeyPatch, failure: BaseException, *, landed: bool
) -> None:
    """Its errors have many types, and one of them is no Exception; the log is asked instead."""
    log, state = created(folder)
    asked = change(tail(log, state))
    real = DeltaTable.create_write_transaction

    def fail(*args: object, **options: object) -> None:
        if landed:
            real(*args, **options)  # type: ignore[arg-type]
        raise failure

    monkeypatch.setattr(DeltaTable, "create_write_transaction", fail)
    if landed:
        assert log.compare_and_append(state, asked) == folder.open().commit(1)
    else:
        with pytest.raises(CommitFailedError, match="broken"):
            log.compare_and_append(state, asked)
        assert folder.open().verify() == 0


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was made durable, in order, below a test's folder."""
    done: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        done.append(str(Path(f"/proc/self/fd/{handle}").readlink().relative_to(tmp_path)))

    monkeypatch.setattr(os, "fsync", fsync)
    return done


@pytest.mark.skipif(sys.platform != "linux", reason="open files are looked up in /proc")
def test_all_is_durable_before_it_is_relied_on(folder: DeltaPlace, synced: list[str]) -> None:
    """A file and its folder before the commit, the entry and its folder before it is acknowledged."""
    log, state = created(folder)
    assert {".", "store", "store/stash"} <= set(synced)
    assert synced[-2:] == ["store/stash/_delta_log/00000000000000000000.json", "store/stash/_delta_log"]
    synced.clear()
    file = tail(log, state)
    assert synced[0] == f"store/stash/{file.path}"
    assert set(synced[1:]) == {"store/stash/collection=role", "store/stash"}
    state = state.after(log.compare_and_append(state, change(file)))
    assert synced[-2:] == ["store/stash/_delta_log/00000000000000000001.json", "store/stash/_delta_log"]
    synced.clear()
    log.checkpoint(1)
    assert {"store/stash/_delta_log/00000000000000000001.checkpoint.parquet", "store/stash/_delta_log"} <= set(synced)
    assert "store/stash/_delta_log/_last_checkpoint" in synced


@pytest.mark.skipif(sys.platform != "linux", reason="open files are looked up in /proc")
def test_nothing_is_built_on_an_entry_that_may_be_lost(folder: DeltaPlace, synced: list[str]) -> None:
    """Another process may have been stopped between writing an entry and making it durable."""
    log, state = created(folder)
    state = append(log, state)
    other = folder.open()
    synced.clear()
    other.compare_and_append(state, change())
    assert [path.rpartition("/")[2] for path in synced if path.endswith(".json")] == [
        f"{1:020d}.json",
        f"{2:020d}.json",
    ]


def test_others_read_it_as_a_plain_delta_table(folder: DeltaPlace) -> None:
    """Sealed versions and all."""
    log, state = created(folder)
    state = append(log, state, b"a", b"b")
    folder.entry(2).write_bytes(sealing_entry(Change(Operation.SEAL, "seal"), 1))
    state = append(log, log.state(2), b"c")
    log.checkpoint(3)
    found = pl.read_delta(folder.uri)
    assert sorted(found.select("collection", "key", "ts", "diff").rows()) == [
        ("role", b"a", 1, 1),
        ("role", b"b", 1, 1),
        ("role", b"c", 3, 1),
    ]


def test_checkpoints_forget_what_was_removed_long_ago(folder: DeltaPlace) -> None:
    """They stay small in a long life; the files themselves are vacuum's."""
    log, state = created(folder)
    assert DeltaTable(folder.uri).metadata().configuration["delta.deletedFileRetentionDuration"] == "interval 0 seconds"
    state = grown(log, state, 3)
    assert len(list(log.files())) == 3
    assert len(state.files) == 1


def test_opening_is_flat_in_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of a thousand entries asks for as much as one of ten, and lists nothing."""
    asked: Counter[str] = Counter()
    for method in ("read", "size", "paths"):
        monkeypatch.setattr(LocalStorage, method, counted(asked, getattr(LocalStorage, method)))
    requests = []
    for count in (10, 1_000):
        place = DeltaPlace(str(tmp_path / str(count)))
        log, _ = created(place)
        for version in range(1, count + 1):
            place.entry(version).write_bytes(sealing_entry(Change(Operation.SEAL, f"{version}"), 1))
        log.checkpoint(count)
        newest = append(log, grown(log, log.state(count), 5), EPOCH=1)
        asked.clear()
        log = place.open()
        assert log.state(log.verify()) == newest
        requests.append(dict(asked))
    assert requests[0] == requests[1]
    assert "paths" not in requests[0]


def counted(asked: Counter[str], method: Callable[..., object]) -> Callable[..., object]:
    def call(*given: object) -> object:
        asked[method.__name__] += 1
        return method(*given)

    return call


HASTY = Policy(checkpoint_every=2, clean_every=4, retention_ms=0, orphan_ms=0)
KILLED = """
import sys
from catalog.log.maintenance import Policy, maintain
from tests.contract.places import DeltaPlace, append
log = DeltaPlace(sys.argv[1]).open()
state = log.state(log.verify())
while True:
    state = append(log, state, removes=tuple(state.files.values()), EPOCH=state.marks.get("epoch", 0) + 1)
    print(state.marks["epoch"], flush=True)
    policy = Policy(checkpoint_every=2, clean_every=4, retention_ms=0, orphan_ms=0)
    state = maintain(log, state, policy).state
"""


def test_a_killed_process_loses_nothing_that_it_acknowledged(folder: DeltaPlace) -> None:
    """The log holds what was acknowledged, and at most one commit more."""
    created(folder)
    for delay_ms in (90, 140):
        command = [sys.executable, "-c", KILLED, folder.uri]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
            assert process.stdout is not None
            acknowledged = [int(process.stdout.readline())]
            time.sleep(delay_ms / 1000)
            process.kill()
            acknowledged += [int(line) for line in process.stdout.read().split()]
        log = folder.open()
        state = log.state(log.verify())
        assert state.marks[Mark.EPOCH] - acknowledged[-1] in {0, 1}
        assert [log.read(file).num_rows for file in state.files.values()] == [1]
        assert maintain(log, grown(log, state, 4), HASTY).postponed is None
