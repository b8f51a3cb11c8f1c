"""Shards as relations of SQL: what a statement can name beside collections. Importing this loads no pyspark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import types

from catalog.engine.shard.reader import ShardSnapshot
from catalog.engine.shard.schema import DIFF, Schema
from catalog.engine.spark.datasource.shard_scan import shard_dataframe, shard_spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (types.is_boolean, "boolean"),
    (types.is_int64, "bigint"),
    (types.is_int32, "int"),
    (types.is_timestamp, "timestamp"),
)
"""Spark's names of types that Arrow names otherwise."""


@dataclass(frozen=True, slots=True)
class ShardRelation:
    name: str
    schema: Schema
    snapshot: Callable[[], ShardSnapshot | None]
    """Takes a snapshot when the rows are asked for; none: it is empty."""

    @property
    def columns(self) -> Mapping[str, str]:
        return {column.name: _type_name(shard_spark_type(column.type)) for column in self.schema.columns}

    def frame(self, session: SparkSession) -> DataFrame:
        """Return its rows, each once."""
        from pyspark.sql import functions as spark  # noqa: PLC0415 - relations are listed without

        found = self.snapshot()
        if found is None:
            return session.createDataFrame([], ", ".join(f"`{name}` {type_}" for name, type_ in self.columns.items()))
        rows = shard_dataframe(session, found).groupBy(*self.columns).agg(spark.sum(DIFF).alias(DIFF))
        return rows.where(rows[DIFF] > 0).drop(DIFF)


def _type_name(type_: pa.DataType) -> str:
    return next((name for test, name in _NAMED if test(type_)), str(type_))
