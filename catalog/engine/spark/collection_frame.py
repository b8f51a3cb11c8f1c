"""Collections as DataFrames without the data source, which costs a process per frame to plan and one more to read.

A small collection is read by this process and reaches Spark as local data. A larger one is read by tasks in the workers
that other jobs use. Both have the very columns that `datasource.dataframe` declares, nullability included. Works in
classic and Connect sessions. Importing this loads no pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from catalog.engine.log.protocol import DataFile
from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.engine.spark.datasource.scan import find

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Part = TypeVar("_Part")

LOCAL_BYTES_MAX = 4 * 2**20
"""Stored bytes that are read here: less work than a job, and little enough to be sent with a query several times."""
LOCAL_ROWS_MAX = 100_000
"""Small rows compress well: bounds what their bytes do not."""


def collection_frame(
    spark: SparkSession,
    store_uri: str,
    options: Mapping[str, str],
    collection: str,
    as_of: int | None = None,
    *,
    project: str = "catalog",
) -> DataFrame:
    """Return the rows of a collection, now or as of a ts: the columns `key` and `value`, typed and nested.

    The same arguments, columns and rows as `datasource.dataframe`. A small collection is read before this returns; the
    rows of a larger one are read by every query anew, unless the caller persists the frame. Errors of the request are
    raised here, as themselves.

    >>> collection_frame(session, "/stores/main", {}, "item").where("value.schema_id = 3").count()
    """
    scan = find(ReadOptions(store_uri, collection, as_of, options, project)).plan()
    if fits_locally(scan.files):
        return local_frame(spark, scan.schema, scan.read(scan.files))
    return task_frame(spark, scan.schema, scan.read, scan.parts())


def fits_locally(files: Iterable[DataFile]) -> bool:
    """Tell if the rows of files are few enough to be read by this process and sent to Spark."""
    held = list(files)
    return sum(file.size for file in held) <= LOCAL_BYTES_MAX and sum(file.rows for file in held) <= LOCAL_ROWS_MAX


def local_frame(spark: SparkSession, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> DataFrame:
    """Return a frame of rows that are here; Spark keeps them in its plan, so that no query reads them again."""
    nothing = pa.record_batch([pa.nulls(0, field.type) for field in schema], schema=schema)
    rows = list(batches) or [nothing]  # Spark takes no columns without chunks
    return spark.createDataFrame(pa.Table.from_batches(rows, schema), _in_spark(schema))


def task_frame(
    spark: SparkSession, schema: pa.Schema, read: Callable[[_Part], Iterator[pa.RecordBatch]], parts: Sequence[_Part]
) -> DataFrame:
    """Return a frame whose rows are read by tasks, a part by each; what `read` yields must have exactly this schema."""
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(_reading(read, list(parts)), _in_spark(schema))


def _reading(read: Callable[[Any], Iterator[pa.RecordBatch]], parts: list[Any]) -> Callable[[Iterator[Any]], Any]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read(parts[number])

    return run


def _in_spark(schema: pa.Schema) -> Any:  # noqa: ANN401 - a StructType
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - loaded with the session

    return from_arrow_schema(schema)
