"""A process that follows a feed into parquet files, and stops in mid-batch again and again until it is killed.

Says `stopped` and how many batches it left unfinished, and `following` when its last query runs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from catalog.engine.spark.session import local_session

_COMMITS_PER_BATCH = 5


def follow(spark: SparkSession, store: Path, *, to_the_end: bool = False) -> StreamingQuery:
    """Write the feed of `item` into files that count once, whatever is repeated: in small batches, or all there is."""
    reader = spark.readStream.format("catalog").option("collection", "item").option("feed", "true")
    if not to_the_end:
        reader = reader.option("max_commits_per_batch", _COMMITS_PER_BATCH)
    writer = reader.load(str(store)).writeStream.option("checkpointLocation", str(checkpoint_of(store)))
    if to_the_end:
        writer = writer.trigger(availableNow=True)
    return started(writer.format("parquet"), str(sink_of(store)))


def started(writer: DataStreamWriter, path: str | None = None) -> StreamingQuery:
    """A query that has its planner: on a very busy machine Spark gives up on that process after ten seconds."""
    while True:
        query = writer.start(path)
        while query.isActive and str(query.status["message"]).startswith("Initializing"):
            time.sleep(0.01)
        error = query.exception()
        if error is None or "Python worker failed to connect back" not in str(error):
            return query


def checkpoint_of(store: Path) -> Path:
    return store.with_name("checkpoint")


def sink_of(store: Path) -> Path:
    return store.with_name("sink")


def unfinished(store: Path) -> set[str]:
    """The batches that were begun and are not done."""
    begun, done = (
        {path.name for path in (checkpoint_of(store) / name).glob("*") if path.name.isdigit()}
        for name in ("offsets", "commits")
    )
    return begun - done


def main(store: Path, stops: int) -> None:
    spark = local_session(settings={"spark.master": "local[2]"})
    for number in range(stops):
        before = unfinished(store)
        query = follow(spark, store)
        repeats = number % 2 == 1  # whatever was left unfinished; else it is stopped in the batch after that
        while not (query.status["isDataAvailable"] if repeats else unfinished(store) - before):
            if error := query.exception():
                raise error
            time.sleep(0.002)
        query.stop()
        print("stopped", len(unfinished(store)), flush=True)  # noqa: T201 - to whoever started it
    query = follow(spark, store)
    print("following", flush=True)  # noqa: T201
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
