"""A forked child uses, closes and releases nothing that its parent opened, and is told so."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalog import open_catalog
from catalog.engine.base.scratch_folder import scratch_folder
from catalog.engine.log.place import StorePlace
from catalog.engine.storage.heartbeat import LeaderStatus, leader_status
from catalog.engine.store.leadership import LeadershipOptions, leading
from catalog.errors import ForkedClientError, ForkedError
from catalog.objects import RoleId, RoleKey, RoleValue
from catalog.upgrade import PROJECT
from tests.object_store import make_bucket, storage_options

ANN, VALUE = RoleKey(id=RoleId(user=1000)), RoleValue(name="ann")


def in_a_child(act: Callable[[], object]) -> object:
    """Fork, act there, and return the result or the error of it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        result: object
        try:
            result = act()
        except BaseException as error:  # noqa: BLE001 - it is the result
            result = error
        with os.fdopen(writer, "wb") as stream:
            stream.write(pickle.dumps(result if isinstance(result, BaseException | int) else repr(result)))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        found: object = pickle.loads(stream.read())  # noqa: S301 - written by the child
    os.waitpid(child, 0)
    return found


USES: dict[str, Callable[[Any], object]] = {
    "allocate": lambda cat: cat.allocate("item"),
    "rows": lambda cat: list(cat.rows(RoleKey)),
    "table": lambda cat: cat.table("role"),
    "transaction": lambda cat: cat.transaction().__enter__(),
    "subscribe": lambda cat: list(cat.subscribe(RoleKey, 0)),
    "refresh": lambda cat: cat.refresh(),
    "builtin": lambda cat: cat.builtin("store_metrics"),
    "close": lambda cat: cat.close(),
    "the end of its block": lambda cat: cat.__exit__(None, None, None),
    "the stash": lambda cat: cat._stash.refresh(),  # noqa: SLF001
    "ids of the stash": lambda cat: cat._stash.allocate("item", 1),  # noqa: SLF001
    "a view of the stash": lambda cat: cat._stash.view(),  # noqa: SLF001
    "a take-over by the stash": lambda cat: cat._stash.take_over(0, "child"),  # noqa: SLF001
    "the heartbeat": lambda cat: cat._heartbeat.stop(),  # noqa: SLF001
}


@pytest.mark.parametrize("use", USES)
def test_a_forked_child_cannot_use_close_or_release_a_catalog(tmp_path: Path, use: str) -> None:
    """Its parent goes on as if there had been no child: it leads, and its ids are its own."""
    store = tmp_path / "store"
    with open_catalog(store) as cat:
        first, before = cat.allocate("item"), cat.ts
        error = in_a_child(lambda: USES[use](cat))
        assert isinstance(error, ForkedError), error
        assert (error.opened_by, error.process != os.getpid()) == (os.getpid(), True)
        assert "open the store in this process" in error.next
        assert (cat.refresh(), cat.allocate("item")) == (before, first + 1)
        place = StorePlace.at(PROJECT, store)
        assert leader_status(place.storage, place.state().fence) is LeaderStatus.BEATING


def test_a_forked_child_is_refused_while_another_thread_of_its_parent_holds_the_lock(tmp_path: Path) -> None:
    """It would wait for ever for a thread that it does not have."""
    with open_catalog(tmp_path / "store") as cat, cat._stash._lock:  # noqa: SLF001
        assert isinstance(in_a_child(cat.refresh), ForkedError)
        with cat._ids_lock:  # noqa: SLF001
            assert isinstance(in_a_child(lambda: cat.allocate("item")), ForkedError)


@pytest.mark.parametrize(
    "use",
    [
        lambda tx: tx.get(ANN),
        lambda tx: tx.insert(ANN, VALUE),
        lambda tx: tx.delete(ANN),
        lambda tx: list(tx.rows(RoleKey)),
    ],
    ids=["get", "insert", "delete", "rows"],
)
def test_a_forked_child_cannot_go_on_with_a_transaction(tmp_path: Path, use: Callable[[Any], object]) -> None:
    """Nor commit it; its parent can."""
    with open_catalog(tmp_path / "store") as cat:
        with cat.transaction() as tx:
            tx.insert(ANN, VALUE)
            before = cat.ts
            assert isinstance(in_a_child(lambda: use(tx)), ForkedError)
            assert isinstance(in_a_child(lambda: cat._stash.commit(tx)), ForkedError)  # noqa: SLF001
            assert cat.refresh() == before
        assert cat.ts == before + 1


def test_a_forked_child_opens_the_store_again(tmp_path: Path) -> None:
    """As any other process does: it joins, and gets ids of its own."""
    with open_catalog(tmp_path / "store") as cat:
        own = [cat.allocate("item") for _ in range(3)]

        def child() -> int:
            with open_catalog(tmp_path / "store", "member") as joined:
                return joined.allocate("item")

        given = in_a_child(child)
        assert isinstance(given, int), given
        assert given not in {*own, *(cat.allocate("item") for _ in range(100))}


def test_a_forked_child_cannot_release_the_lead_of_a_command(tmp_path: Path) -> None:
    """The block of its parent leads on."""
    open_catalog(tmp_path / "store").close()
    place = StorePlace.at(PROJECT, tmp_path / "store")
    leadership = leading(place, LeadershipOptions())
    led = leadership.__enter__()
    try:
        assert isinstance(in_a_child(lambda: leadership.__exit__(None, None, None)), ForkedError)
        assert leader_status(place.storage, led.fence) is LeaderStatus.BEATING
    finally:
        leadership.__exit__(None, None, None)


def test_a_forked_child_cannot_remove_the_scratch_copy_of_its_parent(tmp_path: Path) -> None:
    """A savepoint is written by the process that opened it alone."""
    with scratch_folder(tmp_path, "scratch-") as folder:
        scratch = scratch_folder(tmp_path, "other-")
        assert isinstance(in_a_child(scratch.close), ForkedError)
        assert folder.is_dir()
        assert scratch.path.is_dir()
        scratch.close()


@pytest.fixture
def remote(object_store: str) -> tuple[str, dict[str, str]]:
    return f"s3://{make_bucket(object_store)}/store", storage_options(object_store)


def test_a_forked_child_of_a_process_with_an_object_store_is_told_so_and_hangs_nobody(
    remote: tuple[str, dict[str, str]],
) -> None:
    """The client's threads are its parent's alone: it would wait for ever, and so would its parent afterwards."""
    uri, options = remote
    with open_catalog(uri, options=options) as cat, open_catalog(uri, "read-only", options=options) as reader:
        first, rows = cat.allocate("item"), reader.rows(RoleKey)
        for act in (
            lambda: open_catalog(uri, "read-only", options=options),
            lambda: open_catalog(f"{uri}-new", options=options),
            lambda: list(rows),
        ):
            error = in_a_child(act)
            assert isinstance(error, ForkedClientError), error
            assert "get_context('spawn')" in error.next
        assert cat.allocate("item") == first + 1
