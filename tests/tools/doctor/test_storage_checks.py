"""What is found out about the place of a store, and that the place is left as it was."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import CommitRequest, Operation
from catalog.engine.storage.base import open_storage
from catalog.engine.storage.local import LocalStorage
from catalog.engine.storage.write_probe import is_probe, probe
from catalog.errors import StoreUnreachableError
from catalog.tools.doctor.check_list import plan
from catalog.tools.doctor.runner import CheckResult, DoctorContext, Status, examine
from catalog.tools.doctor.storage_checks import check_address, check_clock, check_commits, check_rights
from catalog.upgrade import PROJECT
from tests.cli.commands import bytes_of, call
from tests.object_store import make_bucket, storage_options
from tests.volatile import tmp_path

__all__ = ["tmp_path"]

NOBODY = 65534
SYS = Path("/sys/kernel")
"""A folder in which nobody, whoever it is, can make a file."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    call("init", "--store", tmp_path / "store")
    return tmp_path / "store"


def only(found: Iterator[CheckResult]) -> CheckResult:
    (one,) = found
    return one


def at(place: Path | str) -> DoctorContext:
    return DoctorContext(PROJECT, str(place))


def test_a_folder_is_probed_and_left_as_it_was(store: Path) -> None:
    """Written, synced, renamed and removed, by the calls that commits are made of."""
    before = bytes_of(store)
    found = only(check_rights(at(store)))
    assert (found.grade, found.found) == (
        Status.OK,
        f"a file was written, synced, renamed and removed at {store}",
    )
    assert bytes_of(store) == before


@pytest.mark.skipif(not SYS.is_dir(), reason="this system has no folder in which nobody can write")
def test_a_folder_that_can_only_be_read_is_a_warning() -> None:
    """Reading may be all that is wanted."""
    found = only(check_rights(at(SYS)))
    assert (found.grade, f"{SYS} can only be read" in found.found) == (Status.WARNING, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a while")
def test_folders_that_somebody_else_made_are_found(store: Path) -> None:
    """As when root has made or mended a store that a service then writes to."""
    for path in (store.parent, store, *store.rglob("*")):
        os.chown(path, NOBODY, -1)
    mine = [store / "stash", store / "stash" / "_delta_log"]
    for folder in mine:
        os.chown(folder, 0, -1)
    os.seteuid(NOBODY)
    try:
        closed = list(check_rights(at(store)))
        shut = only(check_rights(at(mine[0])))
    finally:
        os.seteuid(0)
    assert [own.grade for own in closed] == [Status.PROBLEM]
    assert closed[0].found == f"this user may not write to 2 folders: {mine[0]}, {mine[1]}"
    assert closed[0].next.endswith(f"chown -R {NOBODY} {store}")
    assert (shut.grade, f"{mine[0]} can only be read" in shut.found) == (Status.WARNING, True)


def test_a_store_that_is_not_there_yet_is_no_problem(tmp_path: Path) -> None:
    """What depends on it is passed over, and nothing is made."""
    found = list(examine(at(tmp_path / "new" / "store"), plan(at(tmp_path / "new" / "store"))))
    grades = {own.name: own.grade for own in found}
    assert (grades["address"], grades["rights"]) == (Status.WARNING, Status.OK)
    assert grades["store"] is grades["log"] is grades["leader"] is Status.SKIPPED
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_a_store_is_a_problem(tmp_path: Path) -> None:
    """Also somewhere above it."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for place in (tmp_path / "file", tmp_path / "file" / "store"):
        assert only(check_address(at(place))).grade is Status.PROBLEM


def test_what_a_killed_probe_leaves_is_known_to_be_the_stores(store: Path) -> None:
    """So that removing the store removes it too."""
    name = f"{uuid.uuid4().hex}.probe"
    for left in (name, f".{name}.{uuid.uuid4().hex}.tmp"):
        assert is_probe(left)
        (store / left).write_bytes(b"x")
    assert call("debug", "fsck", "--store", store)["report"]["findings"] == []
    assert call("clean", "--dry-run", "--store", store)["left"] == []
    call("clean", "--name", "store", "--store", store)
    assert not store.exists() or list(store.iterdir()) == []


class Lax(LocalStorage):
    """A place that keeps no promise about who comes second."""

    def create(self, path: str, content: bytes) -> bool:
        self.replace(path, content)
        return True


def test_a_place_that_lets_the_second_writer_win_is_found_out(tmp_path: Path) -> None:
    """Without conditional puts two commits could take one version."""
    assert not probe(Lax(tmp_path)).is_exclusive
    assert probe(LocalStorage(tmp_path)).is_exclusive
    assert list(tmp_path.iterdir()) == []


def test_an_object_store_is_written_to_only_if_that_is_agreed_to(object_store: str) -> None:
    """And then nothing is left there either."""
    uri, options = f"s3://{make_bucket(object_store)}/store", storage_options(object_store)
    call("init", "--store", uri, *(f"--storage-option={name}={value}" for name, value in options.items()))
    storage = open_storage(uri, options)
    before = {(file.path, file.modified_ms) for file in storage.entries()}
    subject = DoctorContext(PROJECT, uri, options)
    found = list(examine(subject, plan(subject)))
    assert {own.grade for own in found} <= {Status.OK, Status.WARNING}
    assert "was not tried: --probe" in next(own.found for own in found if own.name == "rights")
    assert "behind" in (clock := next(own.found for own in found if own.name == "clock")) or "ahead of" in clock
    assert {(file.path, file.modified_ms) for file in storage.entries()} == before
    agreed = list(check_rights(DoctorContext(PROJECT, uri, options, probes=True)))
    assert [own.grade for own in agreed] == [Status.OK, Status.OK]
    assert "put conditionally, replaced, read and deleted" in agreed[0].found
    assert {(file.path, file.modified_ms) for file in storage.entries()} == before


def test_an_object_store_that_does_not_answer_is_one_problem() -> None:
    """The others are passed over, and not waited for one after the other."""
    options = storage_options("http://127.0.0.1:1")
    subject = DoctorContext(PROJECT, "s3://bucket/store", options)
    found = [own for own in examine(subject, plan(subject)) if own.grade in {Status.PROBLEM, Status.SKIPPED}]
    assert [(own.name, own.grade) for own in found[:2]] == [("address", Status.PROBLEM), ("rights", Status.SKIPPED)]
    assert isinstance(found[0].error, StoreUnreachableError)
    assert {own.grade for own in found[1:]} == {Status.SKIPPED}


@contextmanager
def answering(ahead_s: float, status: int) -> Iterator[str]:
    """A server whose clock is ahead of this one."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(status)
            self.end_headers()

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string((timestamp or time.time()) + ahead_s)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize(
    ("ahead_s", "grade"), [(0, Status.OK), (120, Status.WARNING), (-7200, Status.PROBLEM)], ids=["0", "120", "-7200"]
)
def test_the_clock_is_compared_with_that_of_the_object_store(status: int, ahead_s: int, grade: Status) -> None:
    """By what every answer says, also one that refuses."""
    with answering(ahead_s, status) as address:
        found = only(check_clock(DoctorContext(PROJECT, "s3://bucket/store", storage_options(address))))
    assert found.grade is grade
    assert "the object store" in found.found


def test_a_commit_of_the_future_is_noticed(store: Path) -> None:
    """Whoever made it has another clock."""
    assert only(check_commits(at(store))).grade is Status.OK
    for ahead_s, grade in ((120, Status.WARNING), (7200, Status.PROBLEM)):
        log = DeltaLog(f"{store}/stash", clock=lambda ahead_s=ahead_s: time.time() + ahead_s)  # type: ignore[misc]
        log.compare_and_append(log.state(log.verify()), CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex))
        found = only(check_commits(at(store)))
        assert (found.grade, "ahead of this clock" in found.found) == (grade, True)
