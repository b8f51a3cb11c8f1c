"""A snapshot of a shard as a DataFrame: each task reads batches and brings them to the reader's schema.

An error of the reader's schema is raised when the snapshot is made, and not by Spark. Only the DataFrame API of Spark
is used, so that classic and Connect sessions do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from catalog.engine.base.byte_budget import split_by_size
from catalog.engine.log.protocol import Log
from catalog.engine.shard.reader import BatchScan, ShardSnapshot
from catalog.engine.spark.datasource.read_options import PARTITION_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def shard_dataframe(
    spark: SparkSession, snapshot: ShardSnapshot, *, partition_bytes: int = PARTITION_BYTES
) -> DataFrame:
    """Return the rows of a snapshot as they are stored: its columns, and `_diff` to be added up where a row comes
    twice.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - a shard is mostly read without Spark

    names = snapshot.schema.outer
    declared = pa.schema([field.with_type(shard_spark_type(field.type)) for field in names])
    parts = list(split_by_size(snapshot.pieces, lambda piece: piece.batch.file.size, partition_bytes))
    tasks = spark.range(0, len(parts), 1, max(len(parts), 1))
    return tasks.mapInArrow(_reading(snapshot.replica.log, parts, names, declared), from_arrow_schema(declared))


def shard_spark_type(target: pa.DataType) -> pa.DataType:
    """Return Spark's type for one of a shard; every value of it fits, but for times between microseconds."""
    if types.is_struct(target):
        return pa.struct([field.with_type(shard_spark_type(field.type)) for field in target])
    if types.is_list(target):
        return pa.list_(target.value_field.with_type(shard_spark_type(target.value_type)))
    if types.is_map(target):
        return pa.map_(
            shard_spark_type(target.key_type), target.item_field.with_type(shard_spark_type(target.item_type))
        )
    if types.is_timestamp(target):
        return pa.timestamp("us", target.tz)
    return next((ours for test, ours in _IN_SPARK if test(target)), target)


_IN_SPARK: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (types.is_uint8, pa.int16()),
    (types.is_uint16, pa.int32()),
    (types.is_uint32, pa.int64()),
    (types.is_uint64, pa.decimal128(20, 0)),
    (types.is_float16, pa.float32()),
    (types.is_large_string, pa.string()),
    (types.is_large_binary, pa.binary()),
    (types.is_fixed_size_binary, pa.binary()),
    (types.is_date64, pa.date32()),
    (types.is_duration, pa.duration("us")),
)


def _reading(
    log: Log, parts: list[list[BatchScan]], names: pa.Schema, declared: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in tasks:
            for number in task.column(0).to_pylist():
                for piece in parts[number]:
                    rows = piece.read(log, names)
                    columns = [column.cast(field.type) for column, field in zip(rows.columns, declared, strict=True)]
                    yield pa.RecordBatch.from_arrays(columns, schema=declared)

    return run
