"""`spark.read.format("catalog")` and `dataframe`: the same rows as without Spark, or a clear error."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from catalog import open_catalog
from catalog.constraints import CONSTRAINTS
from catalog.engine.codec import to_spark
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.protocol import ROWS, CommitRequest, FileKind, Operation
from catalog.engine.spark.datasource import dataframe
from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.engine.spark.datasource.scan import CollectionScan, find
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.stash import Stash
from catalog.engine.store.catalog import Catalog
from catalog.errors import NoSuchVersionError, NotAStoreError, ReadOptionError, RetiredError, UnknownCollectionError
from catalog.generated import objects_pb2
from catalog.objects import ItemKey, SettingKey, SettingValue
from catalog.upgrade import PROJECT
from tests.engine.spark.conftest import item
from tests.object_store import make_bucket, storage_options

pytestmark = pytest.mark.spark

COLLECTIONS = sorted(Registry.of(objects_pb2).by_name)


def test_every_collection_is_typed_and_equal(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """Every collection of a store that has tails only has the rows and types of `Catalog.table`."""
    for name in COLLECTIONS:
        assert_same(read(spark, store, name), catalog, name)


def test_base_tail_and_both_are_merged(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """Rows that the tail changed, deleted, brought back or added count as the tail has them, once."""
    stash = writer(store)
    stash.consolidate("item")
    catalog.refresh()
    assert_same(read(spark, store, "item"), catalog, "item")
    with catalog.transaction() as tx:
        tx.update(ItemKey(id=3), item("changed"))
        tx.update(ItemKey(id=5), item("changed twice"))
        tx.delete(ItemKey(id=7))
        tx.delete(ItemKey(id=9))
        tx.insert(ItemKey(id=100), item("added"))
        tx.insert(ItemKey(id=101), item("added and deleted"))
    with catalog.transaction() as tx:
        tx.update(ItemKey(id=5), item("changed again"))
        tx.insert(ItemKey(id=9), item("back"))
        tx.delete(ItemKey(id=101))
    merged = read(spark, store, "item")
    assert_same(merged, catalog, "item")
    assert merged.count() == 20
    spread = reader(spark, "item").option("partition_bytes", 1).load(str(store))
    assert spread.rdd.getNumPartitions() == 3
    assert_same(spread, catalog, "item")
    writer(store).consolidate("item")
    catalog.refresh()
    assert_same(read(spark, store, "item"), catalog, "item")


def test_as_of_reads_earlier_rows(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """A ts has the rows it had, through `dataframe` and through an option, also after a consolidation."""
    before = catalog.ts
    with catalog.transaction() as tx:
        tx.delete(ItemKey(id=1))
    writer(store).consolidate("item")
    catalog.refresh()
    assert_same(dataframe(spark, str(store), {}, "item", before), catalog, "item", before)
    assert reader(spark, "item").option("as_of", before).load(str(store)).count() == 20
    assert reader(spark, "item").option("as_of", 0).load(str(store)).count() == 0
    assert dataframe(spark, str(store), {}, "item").count() == 19


def test_a_frame_stays_at_its_ts(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """What is committed after a load is not seen by it, however late it is first run."""
    frame, loaded = dataframe(spark, str(store), {}, "item"), read(spark, store, "item")
    with catalog.transaction() as tx:
        tx.delete(ItemKey(id=1))
    writer(store).consolidate("item")
    assert frame.count() == loaded.count() == 20


def test_views_join_and_filter_in_sql(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """Two collections join as views, and one view is filtered twice in one query without mixing up rows."""
    assert catalog.ts
    for name in ("role", "item"):
        read(spark, store, name).createOrReplaceTempView(f"the_{name}")
    joined = spark.sql(
        "select r.value.name, count(*) from the_item i join the_role r on i.value.owner_id = r.key.id group by 1"
    )
    assert [tuple(row) for row in joined.collect()] == [("ann", 20)]
    twice = spark.sql(
        "select i.value.name from the_item i where i.key.id = 3 union all "
        "select i.value.name from the_item i where i.key.id = 4"
    )
    assert sorted(row.name for row in twice.collect()) == ["item 3", "item 4"]
    spark.sql(f"create temporary view declared using catalog options (path '{store}', collection 'role')")
    assert spark.table("declared").count() == 3


def test_an_empty_collection_has_its_columns(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """A collection without files, and one whose rows are all deleted, are empty and typed."""
    assert "comment" in COLLECTIONS
    empty = read(spark, store, "comment")
    assert empty.collect() == []
    assert empty.columns == ["key", "value"]
    with catalog.transaction() as tx:
        tx.insert(SettingKey(name="x"), SettingValue(value="y"))
        for key, _ in list(tx.rows(SettingKey)):
            tx.delete(key)
    assert read(spark, store, "setting").collect() == []


def test_small_files_share_a_partition(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """2,000 rows in 200 files are read by two tasks."""
    log = DeltaLog(f"{store}/stash")
    state = log.state(log.verify())
    files = []
    for first in range(10_000, 12_000, 10):
        names = [f"{number}" for number in range(first, first + 10)]
        keys = [encode(SettingKey(name=name)) for name in names]
        values = [encode(SettingValue(value=name)) for name in names]
        rows = pa.table({"key": keys, "value": values, "ts": [state.version] * 10, "diff": [1] * 10}, schema=ROWS)
        files.append(log.write("setting", FileKind.BASE, state.fence, rows))
    log.compare_and_append(state, CommitRequest(Operation.CONSOLIDATE, "many", tuple(files)))
    catalog.refresh()
    frame = read(spark, store, "setting")
    assert frame.rdd.getNumPartitions() == 2
    assert_same(frame, catalog, "setting")
    assert frame.count() == 2_002


def test_only_the_collection_is_read(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """Files of other collections need not even be there."""
    for file in (store / "stash" / "collection=role").iterdir():
        file.unlink()
    assert read(spark, store, "item").count() == len(catalog.table("item"))


def test_a_flipped_byte_is_found_by_the_executor(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """A damaged base file fails the query and is named."""
    assert catalog.ts
    writer(store).consolidate("item")
    (damaged,) = (store / "stash" / "collection=item").glob("base-*")
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(PySparkException, match="checksum") as caught:
        read(spark, store, "item").collect()
    assert damaged.name in str(caught.value)


def test_an_unknown_collection_names_what_was_meant_or_those_there_are(
    spark: SparkSession, catalog: Catalog, store: Path
) -> None:
    """The one that is most alike, or all; from `dataframe` as our own error."""
    assert catalog.ts
    for name, advice in (("rolls", r"did you mean role\?"), ("xyz", "use one of: .*item.*role")):
        with pytest.raises(UnknownCollectionError, match=advice):
            dataframe(spark, str(store), {}, name)
        with pytest.raises(AnalysisException, match=advice):
            read(spark, store, name)


def test_times_that_cannot_be_read_are_refused(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """A retired ts names the earliest, one to come the newest."""
    with catalog.transaction() as tx:
        tx.delete(ItemKey(id=1))
    log = DeltaLog(f"{store}/stash")
    earliest = clean(log, log.state(log.verify()), Policy(retention_ms=0)).state.frontier
    assert earliest > 2
    with pytest.raises(RetiredError, match=f"earliest ts that can be read is {earliest}"):
        dataframe(spark, str(store), {}, "item", 2)
    with pytest.raises(AnalysisException, match=f"earliest ts that can be read is {earliest}"):
        reader(spark, "item").option("as_of", 2).load(str(store))
    with pytest.raises(NoSuchVersionError, match="newest ts"):
        dataframe(spark, str(store), {}, "item", 1_000)


def test_a_frame_that_outlives_its_retention_says_so(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """When files were vacuumed after the load, the query fails because its ts is retired, not because of damage."""
    frame = dataframe(spark, str(store), {}, "item")
    assert frame.count() == 20
    with catalog.transaction() as tx:
        tx.delete(ItemKey(id=1))
    writer(store).consolidate("item")
    log = DeltaLog(f"{store}/stash")
    clean(log, log.state(log.verify()), Policy(retention_ms=0))
    with pytest.raises(PySparkException, match="retention has ended"):
        frame.collect()


def test_no_store_is_said(spark: SparkSession, tmp_path: Path) -> None:
    """A place without a store is named, with what is there instead."""
    with pytest.raises(NotAStoreError, match="nothing is there"):
        dataframe(spark, str(tmp_path / "none"), {}, "item")
    with pytest.raises(AnalysisException, match=r"there is no store\.json"):
        read(spark, tmp_path, "item")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "s"}, "option collection .*: it is missing"),
        ({"collection": "role"}, "option path .*: it is missing"),
        ({"path": "s", "collection": "role", "asof": "3"}, "option asof .*: there is no such option"),
        ({"path": "s", "collection": "role", "as_of": "x"}, "option as_of .*: it is 'x'"),
        ({"path": "s", "collection": "role", "as_of": "-1"}, "option as_of .*: it is '-1'"),
        ({"path": "s", "collection": "role", "partition_bytes": "0"}, "option partition_bytes .*: it is '0'"),
    ],
)
def test_options_that_say_nothing_are_refused(options: dict[str, str], message: str) -> None:
    """A misspelt option never reads other rows than were meant; the error survives pickling."""
    with pytest.raises(ReadOptionError, match=message) as caught:
        ReadOptions.of_options(options)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own bytes


def test_storage_options_go_with_the_request_unseen() -> None:
    """Options of the storage come back as they were given, and are not shown."""
    request = ReadOptions("s3://b/s", "role", 3, {"aws_secret_access_key": "hidden"})
    assert ReadOptions.of_options({"path": "s3://b/s", **request.options()}) == request
    assert "hidden" not in repr(request)


@pytest.mark.usefixtures("spark", "catalog")
def test_no_plan_shows_a_secret_of_the_storage(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark writes options into plans, which stand in its pages and logs; a stream's too."""
    hidden = {"aws_secret_access_key": "hunter-1", "sas_key": "hunter-2", "proxy_url": "http://me:hunter-3@h:1"}
    with open_catalog(store, "read-only", options={**hidden, "region": "eu-1"}) as opened:
        for frame in (opened.dataframe("role"), opened.feed("role")):
            frame.explain(extended=True)
            plan = capsys.readouterr().out
            assert "hunter" not in plan
            assert not frame.isStreaming or "eu-1" in plan
    request = ReadOptions("s3://key:hunter-4@b/s", "role", 3, hidden)
    assert ReadOptions.of_options({"path": request.shown_store, **request.options()}) == request
    assert "hunter" not in request.shown_store
    assert all("secret" in name for name, value in request.options().items() if "hunter" in value)


def test_an_object_store_is_read_through_its_options(spark: SparkSession, object_store: str) -> None:
    """Planner and executors reach the store by the options of the query, without anything of Hadoop's."""
    store, storage = f"s3://{make_bucket(object_store)}/store", storage_options(object_store)
    with open_catalog(store, options=storage) as catalog:
        writer(store, storage).consolidate("setting")
        catalog.refresh()
        with catalog.transaction() as tx:
            tx.insert(SettingKey(name="x"), SettingValue(value="y"))
        assert_same(dataframe(spark, store, storage, "setting"), catalog, "setting")
        given = reader(spark, "role").options(**{f"storage.{name}": value for name, value in storage.items()})
        assert_same(given.load(store), catalog, "role")


def test_a_schema_of_ones_own_is_refused(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """Columns are those of the types, whatever the query would like."""
    assert catalog.ts
    with pytest.raises(PySparkException, match="select or cast"):
        reader(spark, "item").schema("key long, value string").load(str(store)).collect()


def test_a_project_that_is_not_there_is_named() -> None:
    with pytest.raises(ReadOptionError, match="no_such_project cannot be loaded"):
        find(ReadOptions("s", "role", project="no_such_project"))


@pytest.mark.parametrize("version", range(PROJECT.first_proto, PROJECT.current + 1))
def test_spark_declares_the_same_types(version: int) -> None:
    """Of every version, the columns that are read are exactly those that Spark expects of the declared schema."""
    for name in Registry.of(PROJECT.types(version)).by_name:
        schema = CollectionScan(ReadOptions("s", name), version, ()).schema
        assert to_arrow_schema(from_arrow_schema(schema), timezone="UTC").equals(schema)


def reader(spark: SparkSession, name: str) -> DataFrameReader:
    return spark.read.format("catalog").option("collection", name)


def read(spark: SparkSession, store: Path, name: str) -> DataFrame:
    return reader(spark, name).load(str(store))


def writer(store: str | Path, storage: Mapping[str, str] | None = None) -> Stash:
    stash = Stash.open(DeltaLog(f"{store}/stash", storage), Registry.of(objects_pb2), CONSTRAINTS)
    stash.join()
    return stash


def assert_same(frame: DataFrame, catalog: Catalog, name: str, as_of: int | None = None) -> None:
    """The rows of a frame are those of the catalog's own table, type by type."""
    table, found = catalog.table(name, as_of), frame.toArrow()
    columns = [to_spark(table[column].combine_chunks()) for column in ("key", "value")]
    assert found.schema.types == [column.type for column in columns]
    expected = pa.table(columns, names=["key", "value"])
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
