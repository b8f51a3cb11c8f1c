"""Stores whose version changes: while a leader waits, and between the ts that is asked for and now."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from catalog import STASH_VERSION, open_catalog
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, FileKind, Operation
from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.engine.spark.datasource.scan import find
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.engine.storage.base import open_storage
from catalog.engine.storage.heartbeat import Heartbeat
from catalog.engine.storage.identity import make_identity
from catalog.engine.store.catalog import Catalog, Mode
from catalog.engine.store.leadership import LeadershipOptions
from catalog.engine.store.open import open_store
from catalog.errors import (
    CatalogError,
    LegacyRowsError,
    StoreTooNewError,
    StoreTooOldError,
    UnknownCollectionError,
)
from catalog.objects import CommentKey, ItemKey, ItemValue
from catalog.upgrade import PROJECT

OLD = 17
OLD_TYPES: ModuleType = PROJECT.types(OLD)


def made(store: Path, types: ModuleType) -> Stash:
    """An empty store that this process leads, with the types of some version."""
    make_identity(open_storage(str(store), {}), PROJECT.name)
    log = DeltaLog(f"{store}/stash")
    log.create("made")
    stash = Stash.open(log, Registry.of(types), Constraints())
    stash.take_over(0, "test")
    return stash


def change_version(stash: Stash, version: int) -> int:
    """As a migration does that rewrites the items; answer its ts."""
    log, state = stash.log, stash.state
    row = (encode(ItemKey(id=1)), encode(ItemValue(schema_id=3, name="now")), state.version, 1)
    adds = (log.write("item", FileKind.BASE, state.fence, rows_table([row])),)
    removes = tuple(file for file in state.files.values() if file.collection == "item")
    marks = {AppTxn.STASH_VERSION: version}
    return log.compare_and_append(
        state, CommitRequest(Operation.MIGRATE, uuid.uuid4().hex, adds, removes, marks)
    ).version


@pytest.fixture
def past(tmp_path: Path) -> Iterator[tuple[Catalog, int]]:
    """A store that was upgraded, and a ts before that."""
    stash = made(tmp_path / "store", OLD_TYPES)
    tx = Transaction(stash.registry, stash.view())
    tx.insert(OLD_TYPES.ItemKey(id=1), OLD_TYPES.ItemValue(schema_id=3, name="then", comment="of then"))
    before = stash.commit(tx, {AppTxn.STASH_VERSION: OLD})
    change_version(stash, STASH_VERSION)
    with open_catalog(tmp_path / "store", "read-only") as catalog:
        yield catalog, before


@pytest.mark.parametrize("key_type", [ItemKey, OLD_TYPES.ItemKey], ids=["of now", "of then"])
def test_rows_before_a_change_of_version_have_the_types_of_then(
    past: tuple[Catalog, int], key_type: type[ItemKey]
) -> None:
    """A collection is named by its key's type of either version; what it yields is what was stored."""
    catalog, before = past
    ((key, value),) = catalog.rows(key_type, as_of=before)
    assert key == OLD_TYPES.ItemKey(id=1)
    assert value == OLD_TYPES.ItemValue(schema_id=3, name="then", comment="of then")


def test_rows_since_a_change_of_version_have_the_types_of_now(past: tuple[Catalog, int]) -> None:
    """Whether or not a ts is named."""
    catalog, before = past
    expected = [(ItemKey(id=1), ItemValue(schema_id=3, name="now"))]
    assert list(catalog.rows(ItemKey)) == list(catalog.rows(ItemKey, as_of=before + 1)) == expected


def test_columns_before_a_change_of_version_have_the_types_of_then(past: tuple[Catalog, int]) -> None:
    """Every field of then is there, and none of now."""
    catalog, before = past
    (row,) = catalog.table("item", as_of=before).to_pylist()
    assert row["value"]["comment"] == "of then"
    assert "comment" not in catalog.table("item").to_pylist()[0]["value"]


def test_a_collection_that_came_later_is_not_there_before(past: tuple[Catalog, int]) -> None:
    """An empty answer would say that there were no comments."""
    catalog, before = past
    with pytest.raises(UnknownCollectionError):
        catalog.rows(CommentKey, as_of=before)
    with pytest.raises(UnknownCollectionError):
        catalog.table("comment", as_of=before)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (PROJECT.first_proto - 1, LegacyRowsError),
        (PROJECT.minimum - 1, StoreTooOldError),
        (STASH_VERSION + 1, StoreTooNewError),
    ],
)
def test_rows_whose_types_this_build_does_not_have_are_refused(
    tmp_path: Path, version: int, error: type[CatalogError]
) -> None:
    """A version that was left since: too old, too new after an undo, or not of messages."""
    stash = made(tmp_path / "store", PROJECT.current_types)
    before = change_version(stash, version)
    log = stash.log
    asked = CommitRequest(Operation.UNDO, uuid.uuid4().hex, app_txns={AppTxn.STASH_VERSION: STASH_VERSION})
    log.compare_and_append(log.state(before), asked)
    with open_catalog(tmp_path / "store", "read-only") as catalog:
        for read in (
            lambda: catalog.rows(ItemKey, as_of=before),
            lambda: catalog.table("item", as_of=before),
            lambda: find(ReadOptions(str(tmp_path / "store"), "item", before)),
        ):
            with pytest.raises(error):
                read()


@pytest.mark.parametrize(("version", "error"), [(STASH_VERSION + 1, StoreTooNewError)])
def test_a_store_that_another_initialised_meanwhile_is_looked_at_again(
    tmp_path: Path, version: int, error: type[CatalogError]
) -> None:
    """A leader that waited at an empty store refuses what it finds there, and fences nobody."""
    first = made(tmp_path / "store", PROJECT.current_types)
    storage, fence = open_storage(str(tmp_path / "store"), {}), first.state.fence
    beats = Heartbeat(storage, fence, 0.1)
    beats.start()
    refused: list[CatalogError] = []

    def lead() -> None:
        try:
            open_store(StorePlace.at(PROJECT, tmp_path / "store"), Mode.LEADER, LeadershipOptions(0, 60, 0.5)).close()
        except CatalogError as caught:
            refused.append(caught)

    waiting = threading.Thread(target=lead)
    waiting.start()
    waiting.join(timeout=1)
    assert waiting.is_alive(), refused
    change_version(first, version)
    beats.stop()
    waiting.join(timeout=30)
    assert [type(caught) for caught in refused] == [error]
    log = first.log
    assert log.state(log.verify()).fence == fence


def test_a_leader_sweeps_the_signs_of_life_of_those_before_it(tmp_path: Path) -> None:
    """Also what a leader left that was killed while it wrote one; nothing else that is there."""
    folder = tmp_path / "store" / "heartbeats"
    for _ in range(3):
        open_catalog(tmp_path / "store").close()
    left = [f".0.2.json.{uuid.uuid4().hex}.tmp", "0.1.json"]
    kept = ["0.99.json", "1.1.json", "notes.txt"]
    for name in (*left, *kept):
        (folder / name).write_text("{}")
    open_catalog(tmp_path / "store").close()
    assert sorted(path.name for path in folder.iterdir()) == sorted(["0.4.json", *kept])


def test_signs_of_life_that_cannot_be_swept_keep_nobody_from_leading(tmp_path: Path) -> None:
    """They are advisory."""
    open_catalog(tmp_path / "store").close()
    (tmp_path / "store" / "heartbeats" / "0.0.json").mkdir()
    with open_catalog(tmp_path / "store") as catalog:
        assert catalog.epoch == 2
