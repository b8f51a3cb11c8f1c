"""How many rows a store gets, and which of them come, change and go after it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from catalog.generator.allocators import ALLOCATORS, allocator_sample
from catalog.generator.fields import descriptor_of
from catalog.generator.samples import Sample
from catalog.generator.statistics import Statistics
from catalog.project import Project
from catalog.stash.collections import Collection, Registry
from catalog.stash.constraints import Constraints

ENGINE = frozenset({"config", "fence_token", "migration_event"})
TAIL_COMMITS = 3
_INSERTS_MAX, _UPDATES_MAX, _DELETES_MAX = 300, 300, 150
_TAIL_PART, _DELETED_PART = 20, 40
"""One row in so many is inserted or updated later, or deleted."""
_INTEGERS = frozenset(
    {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64}
    | {FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64}
)


@dataclass(frozen=True, slots=True)
class Extent:
    """The rows of a collection, by number: first those that last, then those that go, then those that come."""

    lasting: int
    deleted: int
    inserted: int

    @property
    def base(self) -> int:
        return self.lasting + self.deleted

    @property
    def total(self) -> int:
        """As many as ever are."""
        return self.base + self.inserted


@dataclass(frozen=True, slots=True)
class Making:
    """A collection that rows are made of."""

    collection: Collection
    sample: Sample
    distinct: Mapping[str, bool]
    """Paths whose values differ in every row: as a unique constraint or the key needs. True: of a key."""
    references: Mapping[str, str]
    filler: str | None
    """The path whose text makes up the length of a value."""
    keys_differ: bool
    """Whether every row has another key; if not, rows of the same key become one and never change."""


@dataclass(frozen=True, slots=True)
class Plan:
    version: int
    seed: int
    registry: Registry
    """Of the version, or of the first that has descriptors."""
    makings: Mapping[str, Making]
    extents: Mapping[str, Extent]
    like: Statistics | None
    looked_up: dict[tuple[str, str], pa.Array] = field(default_factory=dict)
    """Columns of small collections, by collection and path, that others keep asking for."""


def make_plan(project: Project, version: int, rows: int, seed: int, like: Statistics | None) -> Plan:
    described = max(version, project.first_proto)
    registry = Registry.of(project.types(described))
    told = {} if project.samples is None else project.samples(version)
    counted = [name for name, own in sorted(registry.by_name.items()) if name not in ENGINE and _has_ids(own)]
    samples = {ALLOCATORS: allocator_sample(counted), **told}
    constraints = project.constraints.at(described)
    makings = {
        name: _making(collection, samples.get(name, Sample()), constraints)
        for name, collection in sorted(registry.by_name.items())
        if name not in ENGINE
    }
    return Plan(version, seed, registry, makings, _extents(makings, rows, like), like)


def _making(collection: Collection, sample: Sample, constraints: Constraints) -> Making:
    key, value = descriptor_of(collection.key_type), descriptor_of(collection.value_type)
    references = {reference.path: reference.target for reference in constraints.references_of(collection.name)}
    made = {path for path in sample.columns if path.startswith("key.")}
    distinct = {}
    if not made and (counted := _countable(key, references)) is not None:
        distinct[f"key.{counted}"] = True
    for unique in constraints.uniques_of(collection.name):
        fields = [path for path in unique.paths if _at(path, key, value) and path not in references]
        if fields and not any(path in distinct for path in unique.paths):
            distinct[fields[-1]] = False
    texts = [f"value.{f.name}" for f in value.fields if f.type == f.TYPE_STRING and not f.is_repeated]
    fillers = [path for path in texts if path not in distinct and path not in references]
    return Making(
        collection,
        sample,
        distinct,
        references,
        fillers[-1] if fillers else None,
        bool(made or True in distinct.values()),
    )


def _has_ids(collection: Collection) -> bool:
    member = descriptor_of(collection.key_type).fields_by_name.get("id")
    return member is not None and member.cpp_type in _INTEGERS


def _countable(message: Descriptor, references: Mapping[str, str]) -> str | None:
    """A field of a key that can have another value in every row."""
    return next((f.name for f in message.fields if f"key.{f.name}" not in references and _counts(f)), None)


def _counts(member: FieldDescriptor) -> bool:
    numbers = member.cpp_type in _INTEGERS and member.enum_type is None
    return (numbers or member.type == member.TYPE_STRING) and not member.is_repeated and member.containing_oneof is None


def _at(path: str, key: Descriptor, value: Descriptor) -> bool:
    side, name, *deeper = path.split(".")
    return not deeper and _counts((key if side == "key" else value).fields_by_name[name])


def _extents(makings: Mapping[str, Making], rows: int, like: Statistics | None) -> dict[str, Extent]:
    shares = {name: making.sample.share for name, making in makings.items()}
    if like is not None:
        shares = {name: float(like.collections[name].rows) if name in like.collections else 0.0 for name in makings}
    whole = sum(shares.values()) or 1.0
    counts = {}
    for name, making in makings.items():
        count = max(round(rows * shares[name] / whole), making.sample.rows_min)
        counts[name] = count if like is not None else min(count, making.sample.rows_max)
    if counts:
        largest = max(shares, key=lambda name: (shares[name], name))
        least = makings[largest].sample.rows_min
        counts[largest] = max(rows - sum(count for name, count in counts.items() if name != largest), least)
    extents = {name: _extent(making, counts[name]) for name, making in makings.items()}
    for name, making in makings.items():
        if making.sample.room is not None:
            count = min(counts[name], making.sample.room(_lasting(extents)))
            extents[name] = _extent(making, count)
    return extents


def _lasting(extents: Mapping[str, Extent]) -> Callable[[str], int]:
    return lambda name: extents[name].lasting


def _extent(making: Making, count: int) -> Extent:
    sample = making.sample
    inserted = min(count // _TAIL_PART, _INSERTS_MAX) if sample.inserts and making.keys_differ else 0
    deleted = min(count // _DELETED_PART, _DELETES_MAX) if sample.deletes and making.keys_differ else 0
    return Extent(count - inserted - deleted, deleted, inserted)


def updated(making: Making, extent: Extent, commit: int) -> list[int]:
    """The numbers of the rows that a later commit changes; some of them change in several."""
    if not making.sample.updates or not making.keys_differ or not extent.lasting:
        return []
    count = min(max(extent.lasting // _TAIL_PART, 1), _UPDATES_MAX)
    stride = max(extent.lasting // count, 1)
    again = [position * stride for position in range(0, count, 4)]
    return sorted({(position * stride + commit) % extent.lasting for position in range(count)} | set(again))
