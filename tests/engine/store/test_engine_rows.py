"""Rows that the engine relies on are written by the engine alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catalog import objects, open_catalog
from catalog.authoring import Transaction
from catalog.engine.log.place import StorePlace
from catalog.engine.store.catalog import Mode
from catalog.engine.store.leadership import LeadershipOptions
from catalog.engine.store.open import open_store
from catalog.errors import InitializationFailedError, ProtectedRowError
from catalog.objects import ConfigKey, ConfigValue, SettingKey, SettingValue
from catalog.upgrade import PROJECT

ROWS: dict[str, tuple[Any, Any]] = {
    "the version": (ConfigKey(name="stash_version"), ConfigValue(number=21)),
    "the build of the builtins": (ConfigKey(name="builtin_version"), ConfigValue(text="99.0.0")),
    "a new fact": (ConfigKey(name="new"), ConfigValue(text="x")),
    "the fence": (objects.FenceTokenKey(scope="store"), objects.FenceTokenValue(epoch=99)),
    "a second fence": (objects.FenceTokenKey(scope="other"), objects.FenceTokenValue(epoch=99)),
    "an event": (objects.MigrationEventKey(id=1), objects.MigrationEventValue(version=22, name="v21_to_v22")),
    "a builtin": (
        objects.BuiltinMappingKey(schema_name="catalog", object_name="x"),
        objects.BuiltinMappingValue(id=1),
    ),
    "a shard to be deleted": (objects.UnfinalizedShardKey(shard="s1"), objects.UnfinalizedShardValue(reason="x")),
}


@pytest.mark.parametrize("mode", ["leader", "member", "savepoint"])
@pytest.mark.parametrize("row", ROWS)
def test_a_program_cannot_write_the_rows_of_the_engine(tmp_path: Path, row: str, mode: str) -> None:
    """By no verb; they can be read, and a transaction may write others beside."""
    key, value = ROWS[row]
    open_catalog(tmp_path / "store").close()
    with open_catalog(tmp_path / "store", mode) as cat:
        before, kind = cat.ts, type(key)
        present = list(cat.rows(kind))
        for verb in ("insert", "upsert", "update", "delete"):
            if (key in [own for own, _ in present]) == (verb == "insert") and verb != "upsert":
                continue  # refused for another reason
            with cat.transaction() as tx:
                assert list(tx.rows(kind)) == present
            with pytest.raises(ProtectedRowError, match="belong to the engine") as caught, cat.transaction() as tx:
                getattr(tx, verb)(key, *([] if verb == "delete" else [value]))
            assert "--protected" not in caught.value.next
        assert cat.refresh() == before
        with cat.transaction() as tx:
            tx.insert(SettingKey(name="own"), SettingValue(value="1"))


@pytest.mark.parametrize("mode", ["leader", "member", "savepoint"])
@pytest.mark.parametrize("verb", ["update", "upsert", "delete"])
def test_a_program_cannot_take_the_data_of_a_builtin_away(tmp_path: Path, verb: str, mode: str) -> None:
    """The row that names its shard is the engine's; those of a program's own objects are the program's."""
    open_catalog(tmp_path / "store").close()
    with open_catalog(tmp_path / "store", mode) as cat:
        id_, before = next(value.id for _, value in cat.rows(objects.BuiltinMappingKey)), cat.ts  # type: ignore[attr-defined]
        words = [] if verb == "delete" else [objects.StorageMetadataValue(shard="s1")]
        with pytest.raises(ProtectedRowError, match="storage_metadata"), cat.transaction() as tx:
            getattr(tx, verb)(objects.StorageMetadataKey(id=id_), *words)
        assert cat.refresh() == before
        own = objects.StorageMetadataKey(id=cat.allocate("item"))
        with cat.transaction() as tx:
            tx.insert(own, objects.StorageMetadataValue(shard="s1"))
        with cat.transaction() as tx:
            tx.delete(own)


def test_the_initialisation_of_a_project_writes_no_row_of_the_engine(tmp_path: Path) -> None:
    """The version of a new store is the engine's to say."""

    def initialize(tx: Transaction) -> None:
        tx.upsert(ConfigKey(name="stash_version"), ConfigValue(number=7))

    place = StorePlace.at(replace(PROJECT, initialize=initialize), tmp_path / "store")
    with pytest.raises(InitializationFailedError, match="the rows of `config` belong to the engine"):
        open_store(place, Mode.LEADER, LeadershipOptions())
    open_catalog(tmp_path / "store").close()
