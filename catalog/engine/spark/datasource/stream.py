"""A change feed as a stream of Spark: where each batch ends, and when there is none.

Spark writes the position at which a batch ends to the query's checkpoint before it runs the batch, and after a crash
asks for the same batch again. So the rows between two positions are always the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from catalog.engine.spark.datasource.feed_scan import FeedPosition, FeedScan
from catalog.errors import CatalogError, VersionChangedError

if TYPE_CHECKING:
    import pyarrow as pa

    from catalog.engine.stash.change_feed import ChangeFeed

_PAUSE_S = 0.1
"""Spark asks again at once when there is nothing new."""
_PASSED_OVER_MS = 60_000
"""Commits that change nothing of the collection are worth a batch when they are so old: a position that never moved
would be retired some day. Before that they are only remembered."""

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def _short_traceback(method: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Shorten the traceback that Spark shows when a query fails, so that the three lines of the error stand out."""

    @wraps(method)
    def call(*given: _Given.args, **named: _Given.kwargs) -> _Answer:
        try:
            return method(*given, **named)
        except CatalogError as error:
            raise error.with_traceback(None) from None

    return call


@dataclass(frozen=True, slots=True)
class SkippedCommits:
    """Commits after the last batch that change nothing of the collection."""

    since: int
    until: int
    first_ms: int
    """The time of the first of them."""


class FeedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader in the planner, which lives as long as the query; executors have others, which only read."""

    def __init__(self, find: Callable[[], FeedScan]) -> None:
        self._find = find
        self._is_begun = False
        self._known = 0
        """The newest ts that was seen."""
        self._passed: SkippedCommits | None = None
        self._last: int | None = None
        """The last ts of a query that ends by itself."""

    @cached_property
    def _scan(self) -> FeedScan:
        """Return the scan, found when it is first needed: Spark reports an error of then, and none of before."""
        return self._find()

    @cached_property
    def _feed(self) -> ChangeFeed:
        return self._scan.feed()

    @_short_traceback
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's, as are those below
        return self._scan.start().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of commits as one of files: a commit has one file of a collection at most."""
        return ReadMaxFiles(self._scan.request.max_commits_per_batch)

    @_short_traceback
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._feed.log.verify()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._scan.position(self._known).to_json()

    @_short_traceback
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return where the next batch ends; where it begins, if there is nothing new."""
        since = self._readable(start).ts
        newest = self._newest()
        if since is None:
            return self._scan.position(newest).to_json()
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else max(newest - since, 1)
        end = self._end(since, min(newest, since + most), is_full=newest >= since + most)
        if end == since:
            time.sleep(_PAUSE_S)
        return self._scan.position(end).to_json()

    @_short_traceback
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        parts = self._scan.parts(self._feed, self._readable(start), FeedPosition.of_json(end))
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._scan.read(partition.value)

    def _readable(self, start: dict[str, Any]) -> FeedPosition:
        """Return a position that this query can go on from; checked once, for from then on it only moves forward."""
        begin = self._scan.require_own(FeedPosition.of_json(start))
        if not self._is_begun:
            self._known = self._feed.log.verify()
            self._feed.require_readable(self._known if begin.ts is None else begin.ts, self._known)
            self._is_begun = True
        return begin

    def _newest(self) -> int:
        self._known = self._feed.log.head(self._known)
        return self._known if self._last is None else min(self._known, self._last)

    def _end(self, since: int, last: int, *, is_full: bool) -> int:
        """Return the last ts of a batch: before a change of the version, so that all changes until then come first."""
        passed = self._passed if self._passed is not None and self._passed.since == since else None
        end, first_ms = (since, None) if passed is None else (passed.until, passed.first_ms)
        is_worth = is_full or self._last is not None
        try:
            for commit in self._feed.commits(end, last):
                is_worth = is_worth or bool(self._feed.files(commit))
                first_ms = commit.timestamp_ms if first_ms is None else first_ms
                end = commit.version
        except VersionChangedError:
            if end == since:
                raise
            return end
        if first_ms is None or is_worth or first_ms < self._feed.log.now_ms() - _PASSED_OVER_MS:
            return end
        self._passed = SkippedCommits(since, end, first_ms)
        return since
