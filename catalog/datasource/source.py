"""The data source as Spark's planner and executors meet it.

A DataFrame stays at the ts that was the newest when it was loaded: schema and rows are of one state. Filters are not
pushed down, because Spark shares what was pushed between queries of one load and then answers wrong rows.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from catalog.datasource.request import Request
from catalog.errors import ReadOptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from catalog.datasource.scan import Scan


class CatalogDataSource(DataSource):
    """`spark.read.format("catalog").option("collection", "role").load(store)`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._request = Request.of_options({name.lower(): value for name, value in options.items()})

    @classmethod
    def name(cls) -> str:
        return "catalog"

    @cached_property
    def _scan(self) -> Scan:
        from catalog.datasource.scan import find  # noqa: PLC0415 - looking the format up loads no engine

        return find(self._request)

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

        return from_arrow_schema(self._scan.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        if schema != self.schema():
            needed = "none: a collection's columns are those of its types; select or cast them afterwards"
            raise ReadOptionError("schema", "it is not the collection's", needed)
        return CatalogReader(self._scan.plan())


class CatalogReader(DataSourceReader):
    """Goes to every executor, with a scan that is planned."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in self._scan.parts()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Of a collection without files, Spark asks for a partition of nothing."""
        return self._scan.read(partition.value or ())
