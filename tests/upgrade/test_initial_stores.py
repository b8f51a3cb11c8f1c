"""What a store held that was initialised by an old version, loaded as it was then and opened by this build."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.engine.stash.engine_rows import STORAGE
from catalog.upgrade import PROJECT
from tests.migrations.plain import Store, golden
from tests.upgrade.stores import load, plain_at

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = tmp_path_factory.mktemp("fresh") / "store"
    open_catalog(store).close()
    return plain_at(store, PROJECT.current)


@pytest.mark.parametrize("version", range(PROJECT.minimum, PROJECT.current))
def test_an_old_store_opened_equals_a_fresh_one(
    tmp_path: Path, spark: SparkSession, fresh: Store, version: int
) -> None:
    """Engine collections and audit log aside, nobody can tell which version a store began with.

    The shards of builtins have names of their own in every store.
    """
    store = tmp_path / "store"
    load(store, version, golden(version))
    open_catalog(store, deploy_generation=1, spark=spark).close()
    found = plain_at(store, PROJECT.current)
    differing = [name for name in found if found[name] != fresh[name] and name not in {"audit_log", STORAGE}]
    assert found.keys() == fresh.keys()
    assert found[STORAGE].keys() == fresh[STORAGE].keys()
    assert differing == [], f"initialize() and the steps from v{version} on do not agree about {', '.join(differing)}"


def test_a_store_is_loaded_as_it_was(tmp_path: Path) -> None:
    """What is loaded is what is read, at the version that was said; otherwise nothing here would show anything."""
    version = PROJECT.first_proto
    load(tmp_path / "store", version, golden(version))
    assert plain_at(tmp_path / "store", version) == golden(version)
    with open_catalog(tmp_path / "store", "debug") as catalog:
        assert catalog.version == version
