"""`spark.readStream.format("catalog")`: rows, and then every change of them; or a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from catalog.engine.codec import to_spark
from catalog.engine.log.protocol import Operation
from catalog.engine.spark.datasource import feed
from catalog.engine.spark.datasource.feed_scan import FeedScan
from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.engine.stash.registry import Registry
from catalog.engine.store.catalog import Catalog
from catalog.errors import NoSuchVersionError, UnknownCollectionError
from catalog.objects import ItemKey
from catalog.upgrade import PROJECT
from tests.engine.spark.conftest import change_version, item, retire_all, set_colour
from tests.engine.spark.follower import started
from tests.engine.spark.test_datasource import writer

pytestmark = pytest.mark.spark

Told = tuple[int, int, int, str]
"""Of a change of an item: its ts, its diff, id and name."""


def test_rows_come_first_and_then_every_change(
    spark: SparkSession, catalog: Catalog, store: Path, tmp_path: Path
) -> None:
    """An update is what goes and what comes; a consolidation and the rows of others are nothing."""
    start = catalog.ts
    with following(catalog.feed("item", spark=spark), tmp_path / "checkpoint") as follower:
        assert sorted(follower.hear()) == [(start, 1, number, f"item {number}") for number in range(1, 21)]
        with catalog.transaction() as tx:
            tx.update(ItemKey(id=3), item("changed"))
            tx.delete(ItemKey(id=5))
        went, came = [(catalog.ts, -1, 3, "item 3"), (catalog.ts, -1, 5, "item 5")], (catalog.ts, 1, 3, "changed")
        assert follower.hear() == [*went, came]
        writer(store).consolidate("item")
        set_colour(catalog, "red")
        assert follower.hear() == []
        with catalog.transaction() as tx:
            tx.insert(ItemKey(id=5), item("back"))
        assert follower.hear() == [(catalog.ts, 1, 5, "back")]


def test_since_a_ts_there_are_changes_alone(spark: SparkSession, catalog: Catalog, store: Path, tmp_path: Path) -> None:
    """After that ts, or from the first start on; started again it goes on where it was, whatever `since` says."""
    since = catalog.ts
    with catalog.transaction() as tx:
        tx.delete(ItemKey(id=1))
    with following(feed(spark, str(store), {}, "item", since), tmp_path / "since") as follower:
        assert follower.hear() == [(catalog.ts, -1, 1, "item 1")]
    with following(catalog.feed("item", "now", spark), tmp_path / "now") as follower:
        assert follower.hear() == []
    with catalog.transaction() as tx:
        tx.insert(ItemKey(id=1), item("again"))
    for checkpoint, option in (("since", str(since)), ("now", "now")):
        with following(stream(spark, store, since=option), tmp_path / checkpoint) as follower:
            assert follower.hear() == [(catalog.ts, 1, 1, "again")]


def test_a_version_change_ends_a_stream(spark: SparkSession, catalog: Catalog, store: Path, tmp_path: Path) -> None:
    """All before it is told; then three lines say from which ts to start again, however often it is tried."""
    followed = catalog.feed("item", catalog.ts, spark)
    with following(followed, tmp_path / "checkpoint") as follower:
        assert follower.hear() == []
        with catalog.transaction() as tx:
            tx.delete(ItemKey(id=1))
        changed = change_version(store, PROJECT.current - 1, Operation.UNDO)
        again = f"feeds start again from ts {changed}, by `--since {changed}` or since={changed}; .*"
        ending = f"went from version {PROJECT.current} to .*\nwhy:  .*\nnext: {again}\n"
        with pytest.raises(StreamingQueryException, match=ending):
            follower.hear()
        assert follower.told == [(changed - 1, -1, 1, "item 1")]
    with following(followed, tmp_path / "checkpoint") as follower:
        with pytest.raises(StreamingQueryException, match=ending) as caught:
            follower.hear()
        assert str(caught.value).count('File "') < 6, "the three lines are lost in a traceback"
    with following(stream(spark, store, since=str(changed)), tmp_path / "anew") as follower:
        assert follower.hear() == []


def test_a_checkpoint_that_outlived_its_retention_says_so(
    spark: SparkSession, catalog: Catalog, store: Path, tmp_path: Path
) -> None:
    """Nothing is passed over in silence: the message names the earliest ts that is left."""
    followed = catalog.feed("item", catalog.ts, spark)
    with following(followed, tmp_path / "checkpoint") as follower:
        assert follower.hear() == []
    with catalog.transaction() as tx:
        tx.delete(ItemKey(id=1))
    earliest = retire_all(store)
    with following(followed, tmp_path / "checkpoint") as follower:
        with pytest.raises(StreamingQueryException, match=f"\nnext: the earliest ts that can be read is {earliest}\n"):
            follower.hear()
        assert follower.told == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "option feed .*: it is missing, and a stream is of changes\nwhy:  .*\nnext: needed: true for the rows"),
        ({"since": "0", "as_of": "2"}, "option as_of .*: a stream does not end at a ts\n"),
    ],
    ids=["a stream of rows", "an end"],
)
def test_what_a_stream_cannot_be_is_said(
    spark: SparkSession, catalog: Catalog, store: Path, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    """By the query, in three lines of ours and with nothing of Spark's about them."""
    assert catalog.ts
    with (
        following(stream(spark, store, **options), tmp_path / "checkpoint") as follower,
        pytest.raises(StreamingQueryException, match=message) as caught,
    ):
        follower.hear()
    assert "another exception" not in str(caught.value)


def test_what_a_stream_asks_for_is_checked_when_it_is_loaded(spark: SparkSession, catalog: Catalog) -> None:
    """As our own errors from `feed`."""
    with pytest.raises(UnknownCollectionError, match=r"did you mean item\?"):
        catalog.feed("items", spark=spark)
    with pytest.raises(NoSuchVersionError, match="the newest ts"):
        catalog.feed("item", 1_000, spark)


@pytest.mark.parametrize("name", ["role", "item", "comment"])
def test_a_feed_is_read_at_once_too(spark: SparkSession, catalog: Catalog, store: Path, name: str) -> None:
    """`spark.read` has the rows as a stream would begin with them, typed; and the changes between two ts."""
    reader = spark.read.format("catalog").option("collection", name)
    found, table = reader.option("feed", "true").load(str(store)).toArrow(), catalog.table(name)
    columns = [to_spark(table[column].combine_chunks()) for column in ("key", "value")]
    assert found.schema.types == [*(column.type for column in columns), pa.int64(), pa.int32()]
    rows = pa.table(columns, names=["key", "value"]).to_pylist()
    assert sorted(map(str, found.to_pylist())) == sorted(str({**row, "ts": catalog.ts, "diff": 1}) for row in rows)
    changed = reader.option("since", 0).option("partition_bytes", 1).load(str(store))
    assert sorted((str(r["key"]), str(r["value"])) for r in changed.toArrow().to_pylist() if r["diff"] == 1) == sorted(
        (str(row["key"]), str(row["value"])) for row in rows
    )
    assert reader.option("since", 0).option("as_of", 0).load(str(store)).collect() == []


def test_a_feed_at_once_ends_with_the_version(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """Rows of two versions are never in one frame."""
    assert catalog.ts
    changed = change_version(store, PROJECT.current - 1, Operation.UNDO)
    loaded = spark.read.format("catalog").option("collection", "item").option("since", 0).load(str(store))
    with pytest.raises(PySparkException, match=f"feeds start again from ts {changed}"):
        loaded.collect()


@pytest.mark.parametrize("version", range(PROJECT.first_proto, PROJECT.current + 1))
def test_spark_declares_the_same_types(version: int) -> None:
    """Of every version, the columns that are read are exactly those that Spark expects of the declared schema."""
    for name in Registry.of(PROJECT.types(version)).by_name:
        schema = FeedScan(ReadOptions("s", name), "id", version).schema
        assert to_arrow_schema(from_arrow_schema(schema), timezone="UTC").equals(schema)


def stream(spark: SparkSession, store: Path, **options: str) -> DataFrame:
    return spark.readStream.format("catalog").options(collection="item", **options).load(str(store))


@dataclass(slots=True)
class Follower:
    """What a running query has told."""

    query: StreamingQuery
    told: list[Told] = field(default_factory=list)

    def hear(self) -> list[Told]:
        """What is new, once all is told that was committed before."""
        self.told.clear()
        self.query.processAllAvailable()
        return list(self.told)


@contextmanager
def following(followed: DataFrame, checkpoint: Path) -> Iterator[Follower]:
    told: list[Told] = []

    def tell(batch: DataFrame, _number: int) -> None:
        rows = batch.select("ts", "diff", "key.id", "value.name") if "ts" in batch.columns else batch
        told.extend(tuple(row) for row in rows.collect())

    query = started(followed.writeStream.foreachBatch(tell).option("checkpointLocation", str(checkpoint)))
    try:
        yield Follower(query, told)
    finally:
        query.stop()
