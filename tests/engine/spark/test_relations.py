"""Collections as relations of SQL: flat columns, of the types that are told without Spark, enums by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.engine.spark.datasource.relations import CollectionRelation, collection_relations
from catalog.engine.stash.registry import Collection, Registry
from catalog.engine.store.catalog import Catalog
from catalog.errors import UpgradeNeededError
from catalog.generated import objects_v15_pb2, objects_v22_pb2
from catalog.objects import ItemKey, ItemKind
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.earlier_builds import store_row
from tests.engine.spark.conftest import item

pytestmark = pytest.mark.spark


def test_columns_are_those_that_spark_has(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """Of every collection: the same names and types, found without Spark and by it."""
    found = collection_relations(str(store), {}, None, "catalog")
    assert (found.version, found.ts) == (catalog.version, catalog.ts)
    assert set(found.by_name) == set(Registry.of(PROJECT.current_types).by_name)
    for relation in found.by_name.values():
        schema = relation.frame(spark).schema
        assert {field.name: field.dataType.simpleString() for field in schema} == relation.columns, relation.name


def test_fields_are_columns_and_enums_are_names(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """A number that has no name stays a number, as text."""
    view, unnamed = item("item 1"), item("item 2")
    view.kind, unnamed.kind = ItemKind.ITEM_KIND_VIEW, 77  # type: ignore[assignment]
    with catalog.transaction() as tx:
        tx.update(ItemKey(id=1), view)
        store_row(tx, ItemKey(id=2), unnamed)
    relation = collection_relations(str(store), {}, None, "catalog").by_name["item"]
    rows = relation.frame(spark).where("id < 4").orderBy("id").select("id", "name", "kind", "owner_id.user").collect()
    assert [tuple(row) for row in rows] == [
        (1, "item 1", "ITEM_KIND_VIEW", 1000),
        (2, "item 2", "77", 1000),
        (3, "item 3", "ITEM_KIND_UNSPECIFIED", 1000),
    ]


def test_a_name_that_key_and_value_share_has_the_side_before_it() -> None:
    """So that it stands for neither, and no other column changes its name."""
    shared = Collection("odd", objects_v22_pb2.SchemaValue, objects_v22_pb2.ItemValue)
    assert list(CollectionRelation(ReadOptions("", "odd"), shared).columns) == [
        "database_id",
        "key_name",
        "key_owner_id",
        "key_privileges",
        "key_oid",
        "schema_id",
        "value_name",
        "kind",
        "create_sql",
        "value_owner_id",
        "value_privileges",
        "value_oid",
    ]


def test_relations_are_of_the_version_that_the_store_had_then(spark: SparkSession, tmp_path: Path) -> None:
    """Its own types, whatever this build has; and none of before protobuf."""
    generate(PROJECT, tmp_path / "old", 15, 20, 1)
    found = collection_relations(str(tmp_path / "old"), {}, None, "catalog")
    assert found.version == 15
    assert set(found.by_name) == set(Registry.of(objects_v15_pb2).by_name)
    assert "create_db" in found.by_name["role"].columns
    assert found.by_name["role"].frame(spark).count() > 0
    generate(PROJECT, tmp_path / "legacy", 14, 20, 1)
    with pytest.raises(UpgradeNeededError):
        collection_relations(str(tmp_path / "legacy"), {}, None, "catalog")


def test_all_are_of_one_state(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """Whatever is committed after they were found."""
    found = collection_relations(str(store), {}, None, "catalog")
    with open_catalog(store, "member") as other, other.transaction() as tx:
        tx.delete(ItemKey(id=1))
    catalog.close()
    assert found.by_name["item"].frame(spark).count() == 20
    assert collection_relations(str(store), {}, None, "catalog").by_name["item"].frame(spark).count() == 19
