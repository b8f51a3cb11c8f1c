"""The files of a read, how they are divided, and how their rows are read. Uses nothing of Spark.

A driver or planner makes a `CollectionScan`, and executors read parts of it. Of the tail, each part knows only which
keys it touches and when it last did. So every part decides by itself which of its rows are live, and none holds more
than a file.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.codec import bounded_batches, codec_for, spark_type, to_spark
from catalog.engine.log.maintenance import require_retained
from catalog.engine.log.place import StorePlace, stash_version
from catalog.engine.log.protocol import DataFile, FileKind, Log, LogState
from catalog.engine.log.replica import newest_state, retired_if_missing
from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.engine.stash.recorded_types import require_recorded
from catalog.engine.stash.registry import Collection, Registry
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.errors import (
    LegacyRowsError,
    UpgradeNeededError,
)

_OPENING_BYTES = 128 * 1024
"""The cost of opening a file, as so many bytes read."""
_MERGE_COLUMNS = ("key", "value", "ts", "diff")


@dataclass(frozen=True, slots=True)
class TailKeys:
    """The keys that the tail touches, each with the ts at which it did so last."""

    keys: pa.Array
    ts: pa.Array

    @classmethod
    def of(cls, log: Log, files: Sequence[DataFile]) -> TailKeys:
        if not files:
            return cls(pa.array([], pa.binary()), pa.array([], pa.int64()))
        rows = pa.concat_tables([log.read(file, ["key", "ts"]) for file in files])
        last = rows.group_by("key").aggregate([("ts", "max")]).combine_chunks()
        return cls(last["key"].combine_chunks(), last["ts_max"].combine_chunks())

    def live(self, rows: pa.Table, kind: FileKind) -> pa.Table:
        """Return the rows of a file that are live in the end. At one ts, additions come after removals."""
        if not len(self.keys):
            return rows
        touched = pc.index_in(rows["key"], value_set=self.keys)
        if kind is FileKind.BASE:
            return rows.filter(touched.is_null())
        last = pc.equal(rows["ts"], self.ts.take(touched.combine_chunks()))
        return rows.filter(pc.and_(last, pc.greater(rows["diff"], 0)))


@dataclass(frozen=True, slots=True)
class CollectionScan:
    """A collection at a ts, whatever is committed meanwhile."""

    request: ReadOptions
    """With the store's full address, and the ts that was found."""
    version: int
    """Of the types that its rows have."""
    files: tuple[DataFile, ...]
    tail: TailKeys | None = field(default=None, repr=False)
    """None until it is planned."""

    @property
    def ts(self) -> int:
        return self.request.as_of or 0

    @property
    def schema(self) -> pa.Schema:
        """Return the columns exactly as Spark declares them."""
        return row_schema(collection_of(self.request, self.version))

    def plan(self) -> CollectionScan:
        """Return the scan with what each part must know of the tail."""
        tails = [file for file in self.files if file.kind is FileKind.TAIL]
        return replace(self, tail=TailKeys.of(place_of(self.request).log(), tails))

    def parts(self) -> list[tuple[DataFile, ...]]:
        """Return the files in groups of about the same work, as many as their bytes call for."""
        return pack(self.files, self.request.partition_bytes)

    def read(self, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
        """Yield the live rows of some of the files."""
        collection, log = collection_of(self.request, self.version), place_of(self.request).log()
        tail = self.tail or self.plan().tail
        for file in files:
            rows = read_file(log, file, self.ts)
            yield from spark_rows(collection, tail.live(rows, file.kind) if tail else rows, self.schema)


def spark_rows(collection: Collection, rows: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows with their key and value decoded, and the other columns of the schema as they are."""
    key, value = codec_for(collection.key_type.DESCRIPTOR), codec_for(collection.value_type.DESCRIPTOR)
    for batch in bounded_batches(rows):
        decoded = [to_spark(key.decode(batch["key"])), to_spark(value.decode(batch["value"]))]
        yield pa.record_batch([*decoded, *(batch[name] for name in schema.names[2:])], schema=schema)


def find(request: ReadOptions) -> CollectionScan:
    """Return the files of a read; raise if the store, the version or the collection is not there."""
    request, state, version = locate(request)
    collection_of(request, version)
    files = tuple(state.files_of(request.collection))
    return CollectionScan(request, version, files)


def locate(request: ReadOptions) -> tuple[ReadOptions, LogState, int]:
    """Return the options with the ts that was found, its state, and the version of its rows."""
    place = place_of(request)
    place.identity()
    project, log = place.project, place.log()
    state = newest = newest_state(log)
    if request.as_of is not None:
        require_retained(log, newest, request.as_of)
        state = log.state(request.as_of)
    version = state.stash_version or stash_version(newest, place.uri)
    project.check_version(version)
    require_recorded(project, load_view(BaseFileCache(log), state), version)
    if version < project.first_proto:
        if version != newest.stash_version:
            raise LegacyRowsError(place.uri, state.version, version, project.first_proto)
        raise UpgradeNeededError(place.uri, version, project.current)
    return replace(request, store=place.uri, as_of=state.version), state, version


def registry_of(request: ReadOptions, version: int) -> Registry:
    """Return the collections of a version of the project's types."""
    project = request.load_project()
    return Registry.of(project.current_types if version == project.current else project.types(version))


def collection_of(request: ReadOptions, version: int) -> Collection:
    return registry_of(request, version).named(request.collection)


def cost(file: DataFile) -> int:
    """Return the cost of reading a file, in bytes."""
    return file.size + _OPENING_BYTES


def pack(files: Sequence[DataFile], part_bytes: int) -> list[tuple[DataFile, ...]]:
    """Divide files evenly, the largest first, into as few parts as have this many bytes."""
    count = min(len(files), math.ceil(sum(map(cost, files)) / part_bytes))
    parts: list[tuple[int, int, list[DataFile]]] = [(0, number, []) for number in range(count)]
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        load, number, held = parts[0]
        held.append(file)
        heapq.heapreplace(parts, (load + cost(file), number, held))
    return [tuple(held) for _, _, held in sorted(parts, key=lambda part: part[1])]


def read_file(log: Log, file: DataFile, ts: int) -> pa.Table:
    """Read a file for a ts; raise RetiredError if the query has outlived the retention of the ts."""
    with retired_if_missing(log, ts):
        return log.read(file, _MERGE_COLUMNS)


def row_schema(collection: Collection) -> pa.Schema:
    types = {"key": collection.key_type, "value": collection.value_type}
    return pa.schema(
        [pa.field(name, spark_type(codec_for(of.DESCRIPTOR).type), nullable=False) for name, of in types.items()]
    )


def place_of(request: ReadOptions) -> StorePlace:
    return StorePlace.at(request.load_project(), request.store, request.storage)
