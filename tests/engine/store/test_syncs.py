"""A store whose identity could not be synced: whoever opens it to write makes it durable first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.engine.log.place import StorePlace
from catalog.engine.storage.identity import PATH
from catalog.engine.storage.local import LocalStorage
from catalog.engine.storage.write_probe import require_exclusive
from catalog.engine.store.leadership import LeadershipOptions, leading
from catalog.errors import CatalogError
from catalog.objects import SettingKey, SettingValue
from catalog.upgrade import PROJECT
from tests.engine.log.power import Disk


def lead(store: Path) -> None:
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.upsert(SettingKey(name="colour"), SettingValue(value="red"))


def join(store: Path) -> None:
    with open_catalog(store, "member") as catalog, catalog.transaction() as tx:
        tx.upsert(SettingKey(name="colour"), SettingValue(value="red"))


def lead_at_its_own_version(store: Path) -> None:
    with leading(StorePlace.at(PROJECT, store), LeadershipOptions(None, 0)):
        pass


def test_a_leader_that_opens_a_store_makes_its_identity_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that made it failed at the folder of store.json, and the next only finds the file there."""
    store = tmp_path / "store"
    store.mkdir()
    disk = Disk(store)
    disk.attach(monkeypatch)
    require_exclusive(LocalStorage(store))
    of_probe = disk.count
    disk.fails = frozenset({disk.count + of_probe + 2})
    with pytest.raises(CatalogError, match="Input/output error"):
        open_catalog(store)
    assert (store / PATH).exists()
    lead(store)
    made = (store / PATH).read_bytes()
    disk.cut()
    assert (store / PATH).read_bytes() == made
    lead(store)


@pytest.mark.parametrize("write", [lead, join, lead_at_its_own_version])
def test_every_way_to_write_makes_the_identity_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    """Its writer left the second name of store.json, which says that the folder was never synced."""
    store = tmp_path / "store"
    lead(store)
    made = (store / PATH).read_bytes()
    disk = Disk(store)
    disk.attach(monkeypatch)
    (store / ".store.json.second.tmp").hardlink_to(store / PATH)
    disk.forget(store, PATH)
    write(store)
    disk.cut()
    assert (store / PATH).read_bytes() == made
