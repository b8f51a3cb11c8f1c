"""Which files answer a request, how they are divided, and how their rows are read: everything but Spark.

A driver or planner makes a `Scan`, and executors read parts of it. Of the tail, each part is told only which keys it
touches and when it did so last. So every part decides by itself which of its rows are live, whatever its files are,
and none holds more than a file.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from catalog.codec import bounded_batches, codec_for, spark_type, to_spark
from catalog.datasource.request import Request
from catalog.errors import (
    LegacyRowsError,
    MissingFileError,
    NotInitializedError,
    UpgradeNeededError,
)
from catalog.log.delta import DeltaLog
from catalog.log.maintenance import require_retained
from catalog.log.protocol import DataFile, FileKind, Log, Mark, State
from catalog.log.storage import open_storage
from catalog.project import Project
from catalog.stash.collections import Collection, Registry
from catalog.stash.identity import require_identity

_OPENING_BYTES = 128 * 1024
"""What it costs to open a file, as so many bytes read."""
_MERGE_COLUMNS = ("key", "value", "ts", "diff")


@dataclass(frozen=True, slots=True)
class Tail:
    """The keys that the tail touches, each with the ts at which it did so last."""

    keys: pa.Array
    ts: pa.Array

    @classmethod
    def of(cls, log: Log, files: Sequence[DataFile]) -> Tail:
        if not files:
            return cls(pa.array([], pa.binary()), pa.array([], pa.int64()))
        rows = pa.concat_tables([log.read(file, ["key", "ts"]) for file in files])
        last = rows.group_by("key").aggregate([("ts", "max")]).combine_chunks()
        return cls(last["key"].combine_chunks(), last["ts_max"].combine_chunks())

    def live(self, rows: pa.Table, kind: FileKind) -> pa.Table:
        """The rows of a file that are there in the end. Of one ts, what it adds comes after what it takes away."""
        if not len(self.keys):
            return rows
        touched = pc.index_in(rows["key"], value_set=self.keys)
        if kind is FileKind.BASE:
            return rows.filter(touched.is_null())
        last = pc.equal(rows["ts"], self.ts.take(touched.combine_chunks()))
        return rows.filter(pc.and_(last, pc.greater(rows["diff"], 0)))


@dataclass(frozen=True, slots=True)
class Scan:
    """A collection at a ts, whatever is committed meanwhile."""

    request: Request
    """With the store's full address, and the ts that was found."""
    version: int
    """Of the types that its rows have."""
    files: tuple[DataFile, ...]
    tail: Tail | None = field(default=None, repr=False)
    """None until it is planned."""

    @property
    def ts(self) -> int:
        return self.request.as_of or 0

    @property
    def schema(self) -> pa.Schema:
        """Columns exactly as Spark declares them."""
        return row_schema(collection_of(self.request.load_project(), self.version, self.request.collection))

    def plan(self) -> Scan:
        """The same, with what each part must know of the tail."""
        tails = [file for file in self.files if file.kind is FileKind.TAIL]
        return replace(self, tail=Tail.of(log_of(self.request), tails))

    def parts(self) -> list[tuple[DataFile, ...]]:
        """The files in groups of about the same work, as many as their bytes call for."""
        return pack(self.files, self.request.partition_bytes)

    def read(self, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
        """The live rows of some of the files."""
        collection = collection_of(self.request.load_project(), self.version, self.request.collection)
        key, value = codec_for(collection.key_type.DESCRIPTOR), codec_for(collection.value_type.DESCRIPTOR)
        schema, log = row_schema(collection), log_of(self.request)
        tail = self.tail or self.plan().tail
        for file in files:
            rows = read_file(log, file, self.ts)
            for batch in bounded_batches(tail.live(rows, file.kind) if tail else rows):
                columns = [to_spark(key.decode(batch["key"])), to_spark(value.decode(batch["value"]))]
                yield pa.record_batch(columns, schema=schema)


def find(request: Request) -> Scan:
    """The files that hold what is asked for; clear errors if there are none that do."""
    request, state, version = locate(request)
    registry_of(request.load_project(), version).named(request.collection)
    files = tuple(file for file in state.files.values() if file.collection == request.collection)
    return Scan(request, version, files)


def locate(request: Request) -> tuple[Request, State, int]:
    """The state that is asked for, whatever the collection, and its version; the request names that state then."""
    project = request.load_project()
    storage = open_storage(request.store, request.storage)
    require_identity(storage, project.name)
    request = replace(request, store=storage.uri)
    log = log_of(request)
    newest = log.state(log.verify())
    state = newest if request.as_of is None else _state_as_of(log, newest, request.as_of)
    version = state.marks.get(Mark.STASH_VERSION) or newest.marks.get(Mark.STASH_VERSION)
    if version is None:
        raise NotInitializedError(storage.uri)
    project.check_version(version)
    if version < project.first_proto:
        if version != newest.marks.get(Mark.STASH_VERSION):
            raise LegacyRowsError(storage.uri, state.version, version, project.first_proto)
        raise UpgradeNeededError(storage.uri, version, project.current)
    return replace(request, as_of=state.version), state, version


def registry_of(project: Project, version: int) -> Registry:
    """The collections of a version."""
    return Registry.of(project.current_types if version == project.current else project.types(version))


def cost(file: DataFile) -> int:
    """What it costs to read a file, in bytes."""
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


def _state_as_of(log: Log, newest: State, as_of: int) -> State:
    require_retained(log, newest, as_of)
    return log.state(as_of)


def read_file(log: Log, file: DataFile, ts: int) -> pa.Table:
    try:
        return log.read(file, _MERGE_COLUMNS)
    except MissingFileError:
        # A query may outlive the retention of the ts that it reads.
        require_retained(log, log.state(log.verify()), ts)
        raise


def collection_of(project: Project, version: int, name: str) -> Collection:
    return registry_of(project, version).named(name)


def row_schema(collection: Collection) -> pa.Schema:
    types = {"key": collection.key_type, "value": collection.value_type}
    return pa.schema(
        [pa.field(name, spark_type(codec_for(of.DESCRIPTOR).type), nullable=False) for name, of in types.items()]
    )


def log_of(request: Request) -> DeltaLog:
    return DeltaLog(f"{request.store}/stash", request.storage)
