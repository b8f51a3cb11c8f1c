"""Snapshots of shards as DataFrames."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from catalog.engine.shard.schema import Column, Schema
from catalog.engine.spark.datasource.shard_scan import shard_dataframe
from catalog.errors import ReaderFencedError
from tests.engine.log.places import DeltaPlace
from tests.engine.shard.shards import FIRST, ID, NAME, SIZE, append, evolve, made

pytestmark = pytest.mark.spark

NOTES = Column(3, "notes", pa.list_(pa.struct([("text", pa.string()), ("at", pa.timestamp("us", "UTC"))])))
FACTS = Column(4, "facts", pa.map_(pa.string(), pa.uint64()))
KINDS = Schema.of(
    ID,
    *(
        Column(number, str(type_), type_)
        for number, type_ in enumerate(
            [
                pa.uint8(),
                pa.uint16(),
                pa.uint32(),
                pa.uint64(),
                pa.int8(),
                pa.float16(),
                pa.float32(),
                pa.bool_(),
                pa.large_string(),
                pa.large_binary(),
                pa.binary(2),
                pa.date32(),
                pa.timestamp("us"),
                pa.timestamp("s", "UTC"),
                pa.decimal128(9, 2),
            ],
            start=10,
        )
    ),
)
NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)
VALUES: tuple[Any, ...] = (255, 2**16 - 1, 2**32 - 1, 2**64 - 1, -1, 0.5, 0.25, True, "text", b"bytes", b"ab")
VALUES += (date(2026, 5, 17), NOON.replace(tzinfo=None), NOON, Decimal("1.25"))


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda row: (row["id"], row["_diff"]))


def test_old_batches_are_migrated_by_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """Dropped, added and nested columns; each batch in whatever schema it was written, however tasks are cut."""
    shard = made(DeltaPlace(str(tmp_path / "s1")))
    append(shard, FIRST, (1, "a", 10), (2, "b", 20))
    second = Schema.of(ID, SIZE, NOTES, FACTS)
    evolve(shard, second)
    ts = append(shard, second, (3, 30, [{"text": "t", "at": NOON}], [("k", 2**64 - 1)]))
    append(shard, second, (1, 10, None, None), diff=-1)
    for partition_bytes in (1, 2**30):
        frame = shard_dataframe(spark, shard.reader(second).snapshot(), partition_bytes=partition_bytes)
        assert frame.rdd.getNumPartitions() == (3 if partition_bytes == 1 else 1)
        found = rows(frame)
        assert found[-1]["notes"][0].pop("at").timestamp() == NOON.timestamp()
        third = {"notes": [{"text": "t"}], "facts": {"k": Decimal(2**64 - 1)}}
        assert found == [
            {"id": 1, "size": 10, "notes": None, "facts": None, "_diff": -1},
            {"id": 1, "size": 10, "notes": None, "facts": None, "_diff": 1},
            {"id": 2, "size": 20, "notes": None, "facts": None, "_diff": 1},
            {"id": 3, "size": 30, **third, "_diff": 1},
        ]
    names = shard_dataframe(spark, shard.reader(Schema.of(ID)).snapshot(ts))
    assert {row["id"] for row in names.collect()} == {1, 2, 3}
    counted = shard_dataframe(spark, shard.reader(Schema.of(ID, SIZE)).snapshot()).groupBy("id", "size").sum("_diff")
    assert {tuple(row) for row in counted.collect()} == {(1, 10, 0), (2, 20, 1), (3, 30, 1)}


def test_every_type_of_a_shard_has_one_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    """And every value of it fits."""
    shard = made(DeltaPlace(str(tmp_path / "s1")), KINDS)
    append(shard, KINDS, (1, *VALUES), (2, *(None for _ in VALUES)))
    first, second = rows(shard_dataframe(spark, shard.reader(KINDS).snapshot()))
    first["timestamp[s, tz=UTC]"] = first["timestamp[s, tz=UTC]"].astimezone(UTC)
    assert tuple(first.values()) == (1, *VALUES, 1)
    assert set(list(second.values())[1:-1]) == {None}


def test_a_shard_without_rows_is_a_frame_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    """With its columns all the same; and a reader that is fenced learns it before Spark is asked."""
    shard = made(DeltaPlace(str(tmp_path / "s1")))
    frame = shard_dataframe(spark, shard.reader(FIRST).snapshot())
    assert (frame.columns, frame.collect()) == (["id", "name", "size", "_diff"], [])
    evolve(shard, Schema.of(ID, SIZE))
    with pytest.raises(ReaderFencedError):
        shard.reader(Schema.of(ID, NAME)).snapshot()
