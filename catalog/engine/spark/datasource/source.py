"""The data source as Spark's planner and executors call it.

A DataFrame stays at the ts that was the newest when it was loaded: schema and rows are of one state. Filters are not
pushed down, because Spark shares what was pushed between queries of one load and then returns wrong rows. Spark asks
for the schema before it knows whether a stream is wanted: a feed, which has other columns, is requested by an option.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.errors import ReadOptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from catalog.engine.spark.datasource.feed_scan import FeedScan
    from catalog.engine.spark.datasource.scan import CollectionScan


class CatalogDataSource(DataSource):
    """`spark.read.format("catalog").option("collection", "role").load(store)`, and `spark.readStream` for its feed."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._request = ReadOptions.of_options({name.lower(): value for name, value in options.items()})

    @classmethod
    def name(cls) -> str:
        return "catalog"

    @cached_property
    def _scan(self) -> CollectionScan:
        from catalog.engine.spark.datasource.scan import find  # noqa: PLC0415 - looking the format up loads no engine

        return find(self._request)

    @cached_property
    def _feed(self) -> FeedScan:
        from catalog.engine.spark.datasource.feed_scan import find_feed  # noqa: PLC0415

        return find_feed(self._request)

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

        return from_arrow_schema(self._feed.schema if self._request.feed else self._scan.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        self._require_own(schema)
        return FeedReader(self._feed) if self._request.feed else CatalogReader(self._scan.plan())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        from catalog.engine.spark.datasource.stream import FeedStreamReader  # noqa: PLC0415

        return FeedStreamReader(partial(self._streamed, schema))

    def _streamed(self, schema: StructType) -> FeedScan:
        if not self._request.feed:
            needed = "true for the rows of now and then every change, or since for the changes after a ts"
            raise ReadOptionError("feed", "it is missing, and a stream is of changes", needed)
        if self._request.as_of is not None:
            raise ReadOptionError("as_of", "a stream does not end at a ts", "none; since says after which ts it begins")
        self._require_own(schema)
        return self._feed

    def _require_own(self, schema: StructType) -> None:
        if schema != self.schema():
            needed = "none: a collection's columns are those of its types; select or cast them afterwards"
            raise ReadOptionError("schema", "it is not the collection's", needed)


class CatalogReader(DataSourceReader):
    """A planned scan, pickled to every executor."""

    def __init__(self, scan: CollectionScan) -> None:
        self._scan = scan

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in self._scan.parts()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; of a collection without files, Spark asks for a partition of nothing."""
        return self._scan.read(partition.value or ())


class FeedReader(DataSourceReader):
    """A feed up to a ts: that of the option as_of, or the newest."""

    def __init__(self, feed: FeedScan) -> None:
        self._feed = feed

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in self._feed.parts_until(self._feed.request.as_of)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._feed.read(partition.value) if partition.value is not None else iter(())
