"""A feed as a stream of Spark: where each batch ends, and when there is none.

Spark writes the position at which a batch ends to the query's checkpoint before it runs the batch, and after a crash
asks for the same batch again. So whatever lies between two positions is always the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from catalog.datasource.feed_scan import FeedScan, Position
from catalog.errors import CatalogError, VersionChangedError

if TYPE_CHECKING:
    import pyarrow as pa

    from catalog.stash.feed import Feed

_PAUSE_S = 0.1
"""Spark asks again at once when there is nothing new."""
_PASSED_OVER_MS = 60_000
"""Commits that change nothing of the collection are worth a batch when they are so old: a position that never moved
would be retired some day. Before that they are only remembered."""

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def _plainly(asked: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Spark shows a traceback for what a query ends with: as short as can be, so that the three lines stand out."""

    @wraps(asked)
    def answer(*given: _Given.args, **named: _Given.kwargs) -> _Answer:
        try:
            return asked(*given, **named)
        except CatalogError as error:
            raise error.with_traceback(None) from None

    return answer


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Commits after the last batch that change nothing of the collection."""

    since: int
    until: int
    first_ms: int
    """When the first of them was made."""


class FeedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """In the planner it lives as long as the query; executors have others, which only read."""

    def __init__(self, find: Callable[[], FeedScan]) -> None:
        self._find = find
        self._is_begun = False
        self._known = 0
        """The newest ts that was seen."""
        self._passed: PassedOver | None = None
        self._last: int | None = None
        """Where a query that ends by itself ends."""

    @cached_property
    def _scan(self) -> FeedScan:
        """Found when it is first asked for: Spark tells what goes wrong then, and not what does before."""
        return self._find()

    @cached_property
    def _feed(self) -> Feed:
        return self._scan.feed()

    @_plainly
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's, as are those below
        return self._scan.start().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Spark has no limit of commits; each of them has one file of a collection at most."""
        return ReadMaxFiles(self._scan.request.max_commits_per_batch)

    @_plainly
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._feed.log.verify()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._scan.position(self._known).to_json()

    @_plainly
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next batch ends: where it begins, if there is nothing to tell."""
        since = self._readable(start).ts
        newest = self._newest()
        if since is None:
            return self._scan.position(newest).to_json()
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else max(newest - since, 1)
        end = self._end(since, min(newest, since + most), is_full=newest >= since + most)
        if end == since:
            time.sleep(_PAUSE_S)
        return self._scan.position(end).to_json()

    @_plainly
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        parts = self._scan.parts(self._feed, self._readable(start), Position.of_json(end))
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._scan.read(partition.value)

    def _readable(self, start: dict[str, Any]) -> Position:
        """A position that this query can go on from: looked at once, for from then on it only moves forward."""
        begin = self._scan.require_own(Position.of_json(start))
        if not self._is_begun:
            self._known = self._feed.log.verify()
            self._feed.require_readable(self._known if begin.ts is None else begin.ts, self._known)
            self._is_begun = True
        return begin

    def _newest(self) -> int:
        self._known = self._feed.log.head(self._known)
        return self._known if self._last is None else min(self._known, self._last)

    def _end(self, since: int, last: int, *, is_full: bool) -> int:
        """The last ts of a batch: before a change of the version, so that all until then is told first."""
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
        self._passed = PassedOver(since, end, first_ms)
        return since
