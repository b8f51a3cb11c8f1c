"""What a store is like: rows, sizes and shares by collection, and nothing of what its rows say."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor

from catalog.codec import bounded_batches, codec_for
from catalog.errors import NotInitializedError
from catalog.generator.fields import descriptor_of, is_optional
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Log, Mark
from catalog.log.storage import open_storage
from catalog.project import Project
from catalog.stash.collections import Collection, Registry
from catalog.stash.identity import require_identity

_FINE_BITS = 6
"""Lengths are counted exactly up to so many bits, and longer ones rounded to them."""
_P95 = 0.95


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    rows: int
    key_bytes_mean: float
    key_bytes_p95: int
    value_bytes_mean: float
    value_bytes_p95: int
    present: Mapping[str, float] = field(default_factory=dict)
    """By path, such as `value.comment`: the share of rows that have this optional field."""


@dataclass(frozen=True, slots=True)
class Statistics:
    version: int
    collections: Mapping[str, CollectionStatistics]

    @classmethod
    def from_json(cls, text: str) -> Statistics:
        found = json.loads(text)
        collections = {name: CollectionStatistics(**own) for name, own in found["collections"].items()}
        return cls(found["version"], collections)

    def to_json(self) -> str:
        collections = {name: asdict(own) for name, own in sorted(self.collections.items())}
        return json.dumps({"version": self.version, "collections": collections}, indent=2)


def measure(
    project: Project, store: str | os.PathLike[str], *, options: Mapping[str, str] = MappingProxyType({})
) -> Statistics:
    """Read a store of any version, one file at a time. Of rows that have no descriptors only sizes are told."""
    storage = open_storage(os.fspath(store), options)
    require_identity(storage, project.name)
    return measure_log(project, DeltaLog(f"{storage.uri}/stash", options))


def measure_log(project: Project, log: Log) -> Statistics:
    state = log.state(log.verify())
    version = state.marks.get(Mark.STASH_VERSION)
    if version is None:
        raise NotInitializedError(log.uri)
    project.check_version(version)
    registry = Registry.of(project.types(version)) if version >= project.first_proto else Registry({}, {})
    tallies: dict[str, _Tally] = {}
    for _, file in sorted(state.files.items()):
        collection = registry.by_name.get(file.collection)
        tally = tallies.setdefault(file.collection, _Tally())
        for batch in bounded_batches(log.read(file, ["key", "value", "diff"])):
            tally.add(batch, collection)
    return Statistics(version, {name: tally.result() for name, tally in sorted(tallies.items()) if tally.rows})


@dataclass(slots=True)
class _Tally:
    """Sums over the rows of base and tail; a row that went takes away what it had added."""

    rows: int = 0
    bytes: Counter[str] = field(default_factory=Counter)
    lengths: dict[str, Counter[int]] = field(default_factory=lambda: {"key": Counter(), "value": Counter()})
    present: Counter[str] = field(default_factory=Counter)

    def add(self, batch: pa.RecordBatch, collection: Collection | None) -> None:
        diff = batch["diff"].cast(pa.int64())
        self.rows += pc.sum(diff).as_py()
        for side in ("key", "value"):
            length = pc.binary_length(batch[side]).cast(pa.int64())
            self.bytes[side] += pc.sum(pc.multiply(length, diff)).as_py()
            for sign in (1, -1):
                counted = pc.value_counts(length.filter(pc.equal(diff, sign)))
                for found, count in zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True):
                    self.lengths[side][_rounded(found)] += sign * count
        if collection is not None:
            self._add_present("key", descriptor_of(collection.key_type), batch["key"], diff)
            self._add_present("value", descriptor_of(collection.value_type), batch["value"], diff)

    def _add_present(self, side: str, message: Descriptor, column: pa.Array, diff: pa.Array) -> None:
        names = [member.name for member in message.fields if is_optional(member)]
        if names:
            decoded = codec_for(message).decode(column)
            for name in names:
                there = decoded.field(name).is_valid().cast(pa.int64())
                self.present[f"{side}.{name}"] += pc.sum(pc.multiply(there, diff)).as_py()

    def result(self) -> CollectionStatistics:
        return CollectionStatistics(
            self.rows,
            self.bytes["key"] / self.rows,
            _p95(self.lengths["key"], self.rows),
            self.bytes["value"] / self.rows,
            _p95(self.lengths["value"], self.rows),
            {path: count / self.rows for path, count in sorted(self.present.items())},
        )


def _rounded(length: int) -> int:
    bits = max(length.bit_length() - _FINE_BITS, 0)
    return length >> bits << bits


def _p95(lengths: Counter[int], rows: int) -> int:
    passed = 0
    for length, count in sorted(lengths.items()):
        passed += count
        if passed >= _P95 * rows:
            return length
    return 0
