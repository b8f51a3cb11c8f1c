"""One SparkSession for all, and stores to read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.protocol import AppTxn, CommitRequest, Operation
from catalog.engine.spark.session import local_session
from catalog.engine.store.catalog import Catalog
from catalog.objects import ItemKey, ItemValue, RoleId, RoleKey, RoleValue, SettingKey, SettingValue
from tests.volatile import tmp_path

__all__ = ["tmp_path"]

PUBLIC_SCHEMA = 3
OWNER = RoleId(user=1000)


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return local_session(settings={"spark.master": "local[2]"})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "a store"


@pytest.fixture
def catalog(store: Path) -> Iterator[Catalog]:
    """An initialised store with a role and twenty items."""
    with open_catalog(store) as catalog:
        with catalog.transaction() as tx:
            tx.insert(RoleKey(id=OWNER), RoleValue(name="ann", permissions=2**64 - 1, member_of=[RoleId(system=2)]))
            for number in range(1, 21):
                tx.insert(ItemKey(id=number), item(f"item {number}"))
        yield catalog


def item(name: str) -> ItemValue:
    return ItemValue(name=name, schema_id=PUBLIC_SCHEMA, owner_id=OWNER, create_sql=f"create {name}")


def set_colour(catalog: Catalog, colour: str) -> int:
    """A change of a row that is no item; answer its ts."""
    with catalog.transaction() as tx:
        tx.upsert(SettingKey(name="colour"), SettingValue(value=colour))
    return catalog.ts


def change_version(store: Path, version: int, operation: Operation = Operation.MIGRATE) -> int:
    """As a step does that has no rows to rewrite; answer its ts."""
    log = DeltaLog(f"{store}/stash")
    asked = CommitRequest(operation, uuid.uuid4().hex, app_txns={AppTxn.STASH_VERSION: version})
    return log.compare_and_append(log.state(log.verify()), asked).version


def retire_all(store: Path) -> int:
    """Let the retention end of all but the newest state; answer the earliest ts that is left."""
    log = DeltaLog(f"{store}/stash")
    return clean(log, log.state(log.verify()), Policy(retention_ms=0)).state.frontier
