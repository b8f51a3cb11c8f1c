"""A snapshot of a shard as a DataFrame: each task reads batches and brings them to the reader's schema.

What is wrong with the reader's schema was raised when the snapshot was made, and not by Spark. Of Spark only the
DataFrame API is used, so that classic and Connect sessions do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from catalog.datasource.request import PARTITION_BYTES
from catalog.log.protocol import Log
from catalog.shard.reader import Piece, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def shard_dataframe(spark: SparkSession, snapshot: Snapshot, *, partition_bytes: int = PARTITION_BYTES) -> DataFrame:
    """The rows of a snapshot as they are stored: its columns, and `_diff` to be added up where a row comes more than
    once.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - a shard is mostly read without Spark

    names = snapshot.schema.outer
    declared = pa.schema([field.with_type(spark_type(field.type)) for field in names])
    parts = _parts(snapshot.pieces, partition_bytes)
    tasks = spark.range(0, len(parts), 1, max(len(parts), 1))
    return tasks.mapInArrow(_reading(snapshot.head.log, parts, names, declared), from_arrow_schema(declared))


def spark_type(target: pa.DataType) -> pa.DataType:
    """The type that Spark has for one of a shard; every value of it fits, but for times between microseconds."""
    if types.is_struct(target):
        return pa.struct([field.with_type(spark_type(field.type)) for field in target])
    if types.is_list(target):
        return pa.list_(target.value_field.with_type(spark_type(target.value_type)))
    if types.is_map(target):
        return pa.map_(spark_type(target.key_type), target.item_field.with_type(spark_type(target.item_type)))
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


def _parts(pieces: tuple[Piece, ...], bytes_max: int) -> list[list[Piece]]:
    """Pieces in turn, as many together as are worth a task."""
    parts: list[list[Piece]] = []
    size = bytes_max
    for piece in pieces:
        if size + piece.batch.file.size > bytes_max:
            parts.append([])
            size = 0
        parts[-1].append(piece)
        size += piece.batch.file.size
    return parts


def _reading(
    log: Log, parts: list[list[Piece]], names: pa.Schema, declared: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in tasks:
            for number in task.column(0).to_pylist():
                for piece in parts[number]:
                    rows = piece.read(log, names)
                    columns = [column.cast(field.type) for column, field in zip(rows.columns, declared, strict=True)]
                    yield pa.RecordBatch.from_arrays(columns, schema=declared)

    return run
