"""The feed of a collection, divided for Spark: which files lie between two positions, and how their rows are read.

All that a planner and executors share is in positions and parts: plain data that a checkpoint can hold and that leads
to the same rows whenever it is read again. Everything but Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from catalog.codec import bounded_batches, codec_for, to_spark
from catalog.datasource.request import NOW, Request
from catalog.datasource.scan import Scan, collection_of, cost, find, log_of, pack, read_file, row_schema
from catalog.errors import OtherFeedError, RetiredError
from catalog.log.protocol import DataFile, FileKind
from catalog.log.storage import open_storage
from catalog.stash.feed import Feed, initialized_at, require_reached
from catalog.stash.identity import require_identity

_TS = pa.field("ts", pa.int64(), nullable=False)
_DIFF = pa.field("diff", pa.int32(), nullable=False)


@dataclass(frozen=True, slots=True)
class Position:
    """How far a feed was read: what a checkpoint holds."""

    store: str
    """The store's id: another store has other ts."""
    collection: str
    ts: int | None = None
    """None: nothing of it was read."""

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Self:
        """What is none of ours becomes a position of nothing, which no feed goes on from."""
        return cls(str(said.get("store", "")), str(said.get("collection", "")), said.get("ts"))

    def to_json(self) -> dict[str, Any]:
        ts = {} if self.ts is None else {"ts": self.ts}
        return {"store": self.store, "collection": self.collection, **ts}


@dataclass(frozen=True, slots=True)
class Part:
    """What one task reads."""

    files: tuple[DataFile, ...]
    as_of: int | None = None
    """Not changes, but the rows that are there at a ts."""
    tails: tuple[DataFile, ...] = ()
    """With that: all files that say which of them are."""


@dataclass(frozen=True, slots=True)
class FeedScan:
    """The feed of a collection, at one version of the types."""

    request: Request
    """With the store's full address."""
    store: str
    version: int

    @property
    def schema(self) -> pa.Schema:
        """Columns exactly as Spark declares them."""
        collection = collection_of(self.request.load_project(), self.version, self.request.collection)
        return row_schema(collection).append(_TS).append(_DIFF)

    def feed(self) -> Feed:
        return Feed(log_of(self.request), self.request.collection, self.version)

    def position(self, ts: int | None) -> Position:
        return Position(self.store, self.request.collection, ts)

    def start(self) -> Position:
        """Where a new reader begins: always the same, since after a crash it is asked for again."""
        return self.position(self.request.since if isinstance(self.request.since, int) else None)

    def require_own(self, position: Position) -> Position:
        """Refuse to go on where another feed was left."""
        if (position.store, position.collection) != (self.store, self.request.collection):
            raise OtherFeedError(self.request.store, self.request.collection, position.collection)
        return position

    def parts(self, feed: Feed, start: Position, end: Position) -> list[Part]:
        """What lies between two positions, in the order of ts, as many parts as the bytes call for."""
        since, until = self.require_own(start).ts, self.require_own(end).ts
        if until is None or since == until:
            return []
        if since is not None:
            files = [file for commit in feed.commits(since, until) for file in feed.files(commit)]
            return [Part(own) for own in _in_turn(files, self.request.partition_bytes)]
        if self.request.since == NOW:
            return []
        feed.require_readable(until, feed.log.head(until))
        state = feed.log.state(until)
        files = [file for file in state.files.values() if file.collection == self.request.collection]
        tails = tuple(file for file in files if file.kind is FileKind.TAIL)
        return [Part(own, until, tails) for own in pack(files, self.request.partition_bytes)]

    def parts_until(self, until: int | None) -> list[Part]:
        """All of it up to a ts, or to the newest."""
        feed, start = self.feed(), self.start()
        newest = feed.log.verify()
        last = newest if until is None else until
        require_reached(feed.log, last, newest)
        feed.require_readable(last if start.ts is None else start.ts, newest)
        return self.parts(feed, start, self.position(last))

    def read(self, part: Part) -> Iterator[pa.RecordBatch]:
        return self._changes(part.files) if part.as_of is None else self._rows(part, part.as_of)

    def _rows(self, part: Part, as_of: int) -> Iterator[pa.RecordBatch]:
        """Rows as they are at a ts, as if all had come then."""
        schema = self.schema
        for batch in Scan(replace(self.request, as_of=as_of), self.version, part.tails).read(part.files):
            ts, diff = (
                pa.repeat(pa.scalar(as_of, _TS.type), len(batch)),
                pa.repeat(pa.scalar(1, _DIFF.type), len(batch)),
            )
            yield pa.record_batch([*batch.columns, ts, diff], schema=schema)

    def _changes(self, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
        collection = collection_of(self.request.load_project(), self.version, self.request.collection)
        key, value = codec_for(collection.key_type.DESCRIPTOR), codec_for(collection.value_type.DESCRIPTOR)
        schema, log = self.schema, log_of(self.request)
        for file in files:
            for batch in bounded_batches(read_file(log, file, file.ts_min)):
                decoded = [to_spark(key.decode(batch["key"])), to_spark(value.decode(batch["value"]))]
                yield pa.record_batch([*decoded, batch["ts"], batch["diff"]], schema=schema)


def find_feed(request: Request) -> FeedScan:
    """The feed that is asked for, with the types of the ts that it begins after.

    Whoever goes on from a checkpoint may begin long after that: if it is retired, the types are those of now.
    """
    storage = open_storage(request.store, request.storage)
    identity = require_identity(storage, request.load_project().name)
    request = replace(request, store=storage.uri)
    began = request.since if isinstance(request.since, int) else request.as_of
    try:
        found = find(replace(request, as_of=None if began is None else initialized_at(log_of(request), began)))
    except RetiredError:
        found = find(replace(request, as_of=None))
    return FeedScan(request, identity.id, found.version)


def _in_turn(files: Sequence[DataFile], part_bytes: int) -> Iterator[tuple[DataFile, ...]]:
    """Files one after another, as many together as are worth a task."""
    held: list[DataFile] = []
    size = 0
    for file in files:
        if held and size + cost(file) > part_bytes:
            yield tuple(held)
            held, size = [], 0
        held.append(file)
        size += cost(file)
    if held:
        yield tuple(held)
