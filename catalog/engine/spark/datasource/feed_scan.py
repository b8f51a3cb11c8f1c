"""The change feed of a collection, divided for Spark: the files between two positions, and how their rows are read.

Planner and executors share positions and parts only: plain data that a checkpoint can hold and that leads to the same
rows whenever it is read again. Uses nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from catalog.engine.base.arrow import repeated
from catalog.engine.base.byte_budget import split_by_size
from catalog.engine.log.protocol import DataFile, FileKind
from catalog.engine.spark.datasource.read_options import NOW, ReadOptions
from catalog.engine.spark.datasource.scan import (
    CollectionScan,
    collection_of,
    cost,
    find,
    pack,
    place_of,
    read_file,
    row_schema,
    spark_rows,
)
from catalog.engine.stash.change_feed import ChangeFeed, initialized_at, require_reached
from catalog.errors import OtherFeedError, RetiredError

_TS = pa.field("ts", pa.int64(), nullable=False)
_DIFF = pa.field("diff", pa.int32(), nullable=False)


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """The position up to which a feed was read, as a checkpoint holds it."""

    store: str
    """The store's id: another store has other ts."""
    collection: str
    ts: int | None = None
    """None: nothing of it was read."""

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Self:
        """Parse a position; one of another program becomes a position of nothing, which no feed goes on from."""
        return cls(str(data.get("store", "")), str(data.get("collection", "")), data.get("ts"))

    def to_json(self) -> dict[str, Any]:
        ts = {} if self.ts is None else {"ts": self.ts}
        return {"store": self.store, "collection": self.collection, **ts}


@dataclass(frozen=True, slots=True)
class FeedPartition:
    """The files that one task reads."""

    files: tuple[DataFile, ...]
    as_of: int | None = None
    """Not changes, but the rows that are there at a ts."""
    tails: tuple[DataFile, ...] = ()
    """With that: all files that say which of them are."""


@dataclass(frozen=True, slots=True)
class FeedScan:
    """The feed of a collection, at one version of the types."""

    request: ReadOptions
    """With the store's full address."""
    store: str
    version: int

    @property
    def schema(self) -> pa.Schema:
        """Return the columns exactly as Spark declares them."""
        return row_schema(collection_of(self.request, self.version)).append(_TS).append(_DIFF)

    def feed(self) -> ChangeFeed:
        return ChangeFeed(place_of(self.request).log(), self.request.collection, self.version)

    def position(self, ts: int | None) -> FeedPosition:
        return FeedPosition(self.store, self.request.collection, ts)

    def start(self) -> FeedPosition:
        """Return where a new reader begins: always the same, since Spark asks again after a crash."""
        return self.position(self.request.since if isinstance(self.request.since, int) else None)

    def require_own(self, position: FeedPosition) -> FeedPosition:
        """Refuse to go on from a position of another feed."""
        if (position.store, position.collection) != (self.store, self.request.collection):
            raise OtherFeedError(self.request.store, self.request.collection, position.collection)
        return position

    def parts(self, feed: ChangeFeed, start: FeedPosition, end: FeedPosition) -> list[FeedPartition]:
        """Return the parts between two positions, in the order of ts, as many as the bytes call for."""
        since, until = self.require_own(start).ts, self.require_own(end).ts
        if until is None or since == until:
            return []
        if since is not None:
            files = [file for commit in feed.commits(since, until) for file in feed.files(commit)]
            return [FeedPartition(tuple(own)) for own in split_by_size(files, cost, self.request.partition_bytes)]
        if self.request.since == NOW:
            return []
        feed.require_readable(until, feed.log.head(until))
        state = feed.log.state(until)
        files = state.files_of(self.request.collection)
        tails = tuple(file for file in files if file.kind is FileKind.TAIL)
        return [FeedPartition(own, until, tails) for own in pack(files, self.request.partition_bytes)]

    def parts_until(self, until: int | None) -> list[FeedPartition]:
        """Return all parts up to a ts, or to the newest."""
        feed, start = self.feed(), self.start()
        newest = feed.log.verify()
        last = newest if until is None else until
        require_reached(feed.log, last, newest)
        feed.require_readable(last if start.ts is None else start.ts, newest)
        return self.parts(feed, start, self.position(last))

    def read(self, part: FeedPartition) -> Iterator[pa.RecordBatch]:
        return self._changes(part.files) if part.as_of is None else self._rows(part, part.as_of)

    def _rows(self, part: FeedPartition, as_of: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows as of a ts, as if all had been added then."""
        schema = self.schema
        for batch in CollectionScan(replace(self.request, as_of=as_of), self.version, part.tails).read(part.files):
            ts, diff = repeated(_TS.type, as_of, len(batch)), repeated(_DIFF.type, 1, len(batch))
            yield pa.record_batch([*batch.columns, ts, diff], schema=schema)

    def _changes(self, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
        collection, log = collection_of(self.request, self.version), place_of(self.request).log()
        for file in files:
            yield from spark_rows(collection, read_file(log, file, file.ts_min), self.schema)


def find_feed(request: ReadOptions) -> FeedScan:
    """Return the feed of a request, with the types of the ts that it begins after.

    A reader that goes on from a checkpoint may begin long after that: if that ts is retired, the types are those of
    now.
    """
    place = place_of(request)
    identity = place.identity()
    request = replace(request, store=place.uri)
    began = request.since if isinstance(request.since, int) else request.as_of
    try:
        found = find(replace(request, as_of=None if began is None else initialized_at(place.log(), began)))
    except RetiredError:
        found = find(replace(request, as_of=None))
    return FeedScan(request, identity.id, found.version)
