"""A collection, or its feed, as a DataFrame of a session. Importing this loads no pyspark and no pyarrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from catalog.engine.spark.datasource.read_options import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def dataframe(
    spark: SparkSession,
    store_uri: str,
    options: Mapping[str, str],
    collection: str,
    as_of: int | None = None,
    *,
    project: str = "catalog",
) -> DataFrame:
    """Return the rows of a collection, now or as of a ts: the columns `key` and `value`, typed and nested.

    An error of the request is raised here, as itself, and not by Spark. The rows stay those of the ts that was the
    newest when this was called.
    """
    from catalog.engine.spark.datasource.scan import find  # noqa: PLC0415 - loads the engine

    found = find(ReadOptions(store_uri, collection, as_of, options, project)).request
    return spark.read.format("catalog").options(**found.options()).load(found.shown_store)


def feed(
    spark: SparkSession,
    store_uri: str,
    options: Mapping[str, str],
    collection: str,
    since: int | Literal["now"] | None = None,
    *,
    project: str = "catalog",
) -> DataFrame:
    """Return the change feed of a collection as a stream: the columns `key`, `value`, `ts` and `diff`.

    Begins with the rows of when its query is first started, or with the changes after a ts. An error of the request is
    raised here, as itself, and not by Spark.
    """
    from catalog.engine.spark.datasource.feed_scan import find_feed  # noqa: PLC0415 - loads the engine

    found = find_feed(ReadOptions(store_uri, collection, None, options, project, feed=True, since=since)).request
    return spark.readStream.format("catalog").options(**found.options()).load(found.shown_store)
