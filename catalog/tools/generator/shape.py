"""The shape of a store: rows, sizes and shares by collection, without any content of rows."""

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

from catalog.engine.base.descriptors import descriptor_of, is_optional
from catalog.engine.base.project import Project
from catalog.engine.codec import bounded_batches, codec_for
from catalog.engine.log.place import StorePlace, stash_version
from catalog.engine.log.protocol import Log
from catalog.engine.log.replica import newest_state
from catalog.engine.stash.recorded_types import require_types
from catalog.engine.stash.registry import Collection, Registry
from catalog.engine.stash.view import BaseFileCache, load_view

_FINE_BITS = 6
"""Lengths of up to so many bits are counted exactly, longer ones are rounded to so many bits."""
_P95 = 0.95


@dataclass(frozen=True, slots=True)
class CollectionShape:
    rows: int
    key_bytes_mean: float
    key_bytes_p95: int
    value_bytes_mean: float
    value_bytes_p95: int
    present: Mapping[str, float] = field(default_factory=dict)
    """The share of rows that have an optional field, by path, such as `value.comment`."""


@dataclass(frozen=True, slots=True)
class StoreShape:
    version: int
    collections: Mapping[str, CollectionShape]

    @classmethod
    def from_json(cls, text: str) -> StoreShape:
        found = json.loads(text)
        collections = {name: CollectionShape(**own) for name, own in found["collections"].items()}
        return cls(found["version"], collections)

    def to_json(self) -> str:
        collections = {name: asdict(own) for name, own in sorted(self.collections.items())}
        return json.dumps({"version": self.version, "collections": collections}, indent=2)


def measure(
    project: Project, store: str | os.PathLike[str], *, options: Mapping[str, str] = MappingProxyType({})
) -> StoreShape:
    """Measure a store of any version, one file at a time; of rows without descriptors only the sizes."""
    place = StorePlace.at(project, store, options)
    place.identity()
    return measure_log(project, place.log())


def measure_log(project: Project, log: Log) -> StoreShape:
    state = newest_state(log)
    version = stash_version(state, log.uri)
    require_types(project, load_view(BaseFileCache(log), state))
    registry = Registry.of(project.types(version)) if version >= project.first_proto else Registry({}, {})
    sums: dict[str, _ShapeSums] = {}
    for _, file in sorted(state.files.items()):
        collection = registry.by_name.get(file.collection)
        total = sums.setdefault(file.collection, _ShapeSums())
        for batch in bounded_batches(log.read(file, ["key", "value", "diff"])):
            total.add(batch, collection)
    return StoreShape(version, {name: total.result() for name, total in sorted(sums.items()) if total.rows})


@dataclass(slots=True)
class _ShapeSums:
    """Sums over the rows of base and tail; a deleted row subtracts what it had added."""

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

    def result(self) -> CollectionShape:
        return CollectionShape(
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
