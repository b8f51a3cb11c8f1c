"""Collections as frames without the data source: what a query sees is the same as with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from catalog.engine.spark import collection_frame as frames
from catalog.engine.spark.collection_frame import collection_frame
from catalog.engine.spark.datasource import dataframe
from catalog.engine.stash.registry import Registry
from catalog.engine.store.catalog import Catalog
from catalog.errors import RetiredError, UnknownCollectionError
from catalog.objects import ItemKey
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.engine.spark.conftest import item, retire_all
from tests.engine.spark.test_datasource import writer

pytestmark = pytest.mark.spark


@pytest.fixture(params=["local", "tasks"])
def bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which rows reach Spark; without files there is only one."""
    if request.param == "tasks":
        monkeypatch.setattr(frames, "LOCAL_BYTES_MAX", 0)


@pytest.mark.parametrize("version", [16, 20, 22])
def test_every_collection_has_the_schema_and_rows_of_the_data_source(
    spark: SparkSession, tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, types, nullability and values, of every collection of a version, in both ways."""
    store = tmp_path / "store"
    generate(PROJECT, store, version, 200, 3)
    for name in sorted(Registry.of(PROJECT.types(version)).by_name):
        expected = dataframe(spark, str(store), {}, name)
        rows = rows_of(expected)  # read once: the data source takes long
        for bytes_max in (frames.LOCAL_BYTES_MAX, 0):
            with monkeypatch.context() as bound:
                bound.setattr(frames, "LOCAL_BYTES_MAX", bytes_max)
                found = collection_frame(spark, str(store), {}, name)
                assert (found.schema, rows_of(found)) == (expected.schema, rows)


@pytest.mark.usefixtures("bounds")
def test_base_and_tail_are_merged_and_a_ts_is_kept(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """Rows that the tail changed, deleted or added, of now and as of a ts."""
    before = catalog.ts
    writer(store).consolidate("item")
    catalog.refresh()
    with catalog.transaction() as tx:
        tx.update(ItemKey(id=3), item("changed"))
        tx.delete(ItemKey(id=7))
        tx.insert(ItemKey(id=100), item("added"))
    for as_of in (None, before):
        found = collection_frame(spark, str(store), {}, "item", as_of)
        assert_same(found, dataframe(spark, str(store), {}, "item", as_of))
    assert collection_frame(spark, str(store), {}, "item", 0).count() == 0


@pytest.mark.usefixtures("bounds")
def test_a_frame_is_joined_with_itself(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """The same frame is used several times in one query."""
    assert catalog.ts
    items = collection_frame(spark, str(store), {}, "item")
    others = items.selectExpr("key.id + 1 as following")
    assert items.join(others, items["key.id"] == others["following"], "left_semi").count() == 19


def test_what_is_not_there_is_refused(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """As itself, before any query."""
    with pytest.raises(UnknownCollectionError):
        collection_frame(spark, str(store), {}, "rolls")
    with catalog.transaction() as tx:
        tx.delete(ItemKey(id=1))
    writer(store).consolidate("item")
    retire_all(store)
    with pytest.raises(RetiredError):
        collection_frame(spark, str(store), {}, "item", 2)


def assert_same(found: DataFrame, expected: DataFrame) -> None:
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))
