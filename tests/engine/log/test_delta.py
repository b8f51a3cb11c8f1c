"""What the log on Delta Lake does beyond the contract: what delta-rs throws, what is made durable, who else reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import polars as pl
import pytest
from deltalake import DeltaTable

from catalog.engine.log.delta_entries import commit_entry
from catalog.engine.log.maintenance import Policy, maintain
from catalog.engine.log.protocol import AppTxn, CommitRequest, LogState, Operation
from catalog.engine.storage.local import LocalStorage
from catalog.errors import CommitFailedError
from tests.engine.log.places import DeltaPlace, append, change, created, grown, tail


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
def test_whatever_the_storage_throws_the_outcome_is_known(
    folder: DeltaPlace, monkeypatch: pytest.MonkeyPatch, failure: BaseException, *, landed: bool
) -> None:
    """After a link that seems to have failed, the log is asked."""
    _check_outcome(folder, monkeypatch, (LocalStorage, "create"), failure, landed=landed)
    assert folder.open().verify() == landed


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_whatever_delta_rs_throws_the_outcome_is_known(
    bucket: DeltaPlace, monkeypatch: pytest.MonkeyPatch, failure: BaseException, *, landed: bool
) -> None:
    """Its errors have many types, and one of them is no Exception; the log is asked instead."""
    _check_outcome(bucket, monkeypatch, (DeltaTable, "create_write_transaction"), failure, landed=landed)
    assert bucket.open().verify() == 1  # the commit, or the seal in its place


def _check_outcome(
    place: DeltaPlace,
    monkeypatch: pytest.MonkeyPatch,
    call: tuple[type, str],
    failure: BaseException,
    *,
    landed: bool,
) -> None:
    log, state = created(place)
    asked = change(tail(log, state))
    real = getattr(*call)

    def fail(*args: object, **options: object) -> None:
        if landed:
            real(*args, **options)
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(*call, fail)
        if landed:
            assert log.compare_and_append(state, asked) == place.open().commit(1)
        else:
            with pytest.raises(CommitFailedError, match="broken"):
                log.compare_and_append(state, asked)


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
    assert synced[-2].startswith("store/stash/_delta_log/.00000000000000000000.json.")
    assert synced[-1] == "store/stash/_delta_log"
    synced.clear()
    file = tail(log, state)
    assert synced[-2:] == [f"store/stash/{file.path}", "store/stash/collection=role"]
    assert "store/stash" in synced[:-2]
    state = state.after(log.compare_and_append(state, change(file)))
    staged, logs = synced[-2:]
    assert staged.startswith("store/stash/_delta_log/.00000000000000000001.json.")
    assert logs == "store/stash/_delta_log"
    synced.clear()
    log.checkpoint(1)
    assert any(path.startswith("store/stash/_delta_log/.00000000000000000001.checkpoint.parquet.") for path in synced)
    assert "store/stash/_delta_log" in synced
    assert "store/stash/_delta_log/_last_checkpoint" in synced


@pytest.mark.skipif(sys.platform != "linux", reason="open files are looked up in /proc")
def test_nothing_is_built_on_an_entry_that_may_be_lost(folder: DeltaPlace, synced: list[str]) -> None:
    """Another process may have been stopped between writing an entry and making it durable."""
    log, state = created(folder)
    state = append(log, state)
    other = folder.open()
    synced.clear()
    other.compare_and_append(state, change())
    assert [path.rpartition("/")[2].lstrip(".")[:25] for path in synced if ".json" in path] == [
        f"{1:020d}.json",
        f"{2:020d}.json",
    ]


def test_others_read_it_as_a_plain_delta_table(folder: DeltaPlace) -> None:
    """Sealed versions and all."""
    log, state = created(folder)
    state = append(log, state, b"a", b"b")
    folder.entry(2).write_bytes(commit_entry(state, CommitRequest(Operation.SEAL, "seal"), 1))
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
            before = LogState(version - 1, {}, {})
            place.entry(version).write_bytes(commit_entry(before, CommitRequest(Operation.SEAL, f"{version}"), 1))
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
from catalog.engine.log.maintenance import Policy, maintain
from tests.engine.log.places import DeltaPlace, append
log = DeltaPlace(sys.argv[1]).open()
state = log.state(log.verify())
while True:
    state = append(log, state, removes=tuple(state.files.values()), EPOCH=state.app_txns.get("epoch", 0) + 1)
    print(state.app_txns["epoch"], flush=True)
    policy = Policy(checkpoint_every=2, clean_every=4, retention_ms=0, orphan_ms=0)
    state = maintain(log, state, policy).state
"""


def test_a_killed_process_loses_nothing_that_it_acknowledged(folder: DeltaPlace) -> None:
    """The log holds what was acknowledged, and at most one commit more."""
    created(folder)
    for delay_ms in (90, 140):
        command = [sys.executable, "-c", KILLED, folder.uri]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as process:
            assert process.stdout is not None
            acknowledged = [int(process.stdout.readline())]
            time.sleep(delay_ms / 1000)
            process.kill()
            acknowledged += [int(line) for line in process.stdout.read().split()]
        log = folder.open()
        state = log.state(log.verify())
        assert state.app_txns[AppTxn.EPOCH] - acknowledged[-1] in {0, 1}
        assert [log.read(file).num_rows for file in state.files.values()] == [1]
        assert maintain(log, grown(log, state, 4), HASTY).postponed is None


def test_of_those_who_make_a_log_at_once_one_makes_it(tmp_path: Path) -> None:
    """The others find it made; none commits a second creation after the first."""
    for number in range(6):
        place = DeltaPlace(str(tmp_path / str(number)))
        barrier = Barrier(4)

        def create(who: int, place: DeltaPlace = place, barrier: Barrier = barrier) -> bool:
            barrier.wait()
            return place.open().create(f"{who}")

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(create, range(4))) == 1
        assert place.open().verify() == 0


def test_a_second_creation_that_an_earlier_build_let_through_changes_nothing(folder: DeltaPlace) -> None:
    """Such logs are there, and are read on."""
    log, state = created(folder)
    state = append(log, state)
    actions = [json.loads(line) for line in folder.entry(0).read_bytes().splitlines()]
    info = actions[0]["commitInfo"]
    del info["stash.digest"], info["stash.state"]
    folder.entry(2).write_text("".join(json.dumps(action) + "\n" for action in actions))
    state = replace(state, version=2)
    assert folder.open().state(folder.open().verify()) == state
    append(folder.open(), state)
    assert folder.open().verify() == 3
