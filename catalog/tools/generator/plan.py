"""The plan of a synthetic store: the rows of each collection, and those that are inserted, changed or deleted later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from catalog.engine.base.descriptors import descriptor_of
from catalog.engine.base.project import Project
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.registry import Collection, Registry
from catalog.tools.generator.allocators import ALLOCATORS, allocator_sample
from catalog.tools.generator.sample import Sample
from catalog.tools.generator.shape import StoreShape

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
class RowExtent:
    """The rows of a collection by number: first those that stay, then the deleted, then the inserted ones."""

    lasting: int
    deleted: int
    inserted: int

    @property
    def base(self) -> int:
        return self.lasting + self.deleted

    @property
    def total(self) -> int:
        """The number of rows that ever exist."""
        return self.base + self.inserted


@dataclass(frozen=True, slots=True)
class CollectionRecipe:
    """A collection, and the rules by which its rows are generated."""

    collection: Collection
    sample: Sample
    distinct: Mapping[str, bool]
    """Paths whose values differ in every row, as a unique constraint or the key needs. True: in the key."""
    references: Mapping[str, str]
    filler: str | None
    """The path whose text gives a value its length."""
    keys_differ: bool
    """Every row has its own key. If not, rows of one key become one row, and rows never change."""


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """Everything that decides about the rows of a synthetic store."""

    version: int
    seed: int
    registry: Registry
    """The types of the version, or of the first that has descriptors."""
    recipes: Mapping[str, CollectionRecipe]
    extents: Mapping[str, RowExtent]
    like: StoreShape | None
    looked_up: dict[tuple[str, str], pa.Array] = field(default_factory=dict)
    """A cache: columns of small collections that others refer to, by collection and path."""


def make_plan(project: Project, version: int, rows: int, seed: int, like: StoreShape | None) -> GenerationPlan:
    """Return the plan of a store with about so many rows."""
    described = max(version, project.first_proto)
    registry = Registry.of(project.types(described))
    collections = {name: found for name, found in sorted(registry.by_name.items()) if name not in ENGINE}
    counted = [name for name, collection in collections.items() if _has_ids(collection)]
    samples = {ALLOCATORS: allocator_sample(counted), **(project.samples(version) if project.samples else {})}
    constraints = project.constraints.at(described)
    recipes = {
        name: _recipe(collection, samples.get(name, Sample()), constraints) for name, collection in collections.items()
    }
    return GenerationPlan(version, seed, registry, recipes, _extents(recipes, rows, like), like)


def updated(recipe: CollectionRecipe, extent: RowExtent, commit: int) -> list[int]:
    """Return the numbers of the rows that a later commit changes; some of them change in several commits."""
    if not recipe.sample.updates or not recipe.keys_differ or not extent.lasting:
        return []
    count = min(max(extent.lasting // _TAIL_PART, 1), _UPDATES_MAX)
    stride = max(extent.lasting // count, 1)
    again = [position * stride for position in range(0, count, 4)]
    return sorted({(position * stride + commit) % extent.lasting for position in range(count)} | set(again))


def _recipe(collection: Collection, sample: Sample, constraints: Constraints) -> CollectionRecipe:
    key, value = descriptor_of(collection.key_type), descriptor_of(collection.value_type)
    references = {reference.path: reference.target for reference in constraints.references_of(collection.name)}
    key_is_sampled = any(path.startswith("key.") for path in sample.columns)
    distinct = {}
    countable = [f"key.{member.name}" for member in key.fields if _is_countable(member)]
    if not key_is_sampled and (free := [path for path in countable if path not in references]):
        distinct[free[0]] = True
    for unique in constraints.uniques_of(collection.name):
        paths = [path for path in unique.paths if path not in references and _is_countable_at(path, key, value)]
        if paths and not any(path in distinct for path in unique.paths):
            distinct[paths[-1]] = False
    texts = [f"value.{f.name}" for f in value.fields if f.type == f.TYPE_STRING and not f.is_repeated]
    fillers = [path for path in texts if path not in distinct and path not in references]
    keys_differ = key_is_sampled or True in distinct.values()
    return CollectionRecipe(collection, sample, distinct, references, fillers[-1] if fillers else None, keys_differ)


def _has_ids(collection: Collection) -> bool:
    member = descriptor_of(collection.key_type).fields_by_name.get("id")
    return member is not None and member.cpp_type in _INTEGERS


def _is_countable(member: FieldDescriptor) -> bool:
    """Tell if a field can have another value in every row: a number or a text that is always present, once."""
    number = member.cpp_type in _INTEGERS and member.enum_type is None
    return (number or member.type == member.TYPE_STRING) and not member.is_repeated and member.containing_oneof is None


def _is_countable_at(path: str, key: Descriptor, value: Descriptor) -> bool:
    side, name, *deeper = path.split(".")
    return not deeper and _is_countable((key if side == "key" else value).fields_by_name[name])


def _extents(recipes: Mapping[str, CollectionRecipe], rows: int, like: StoreShape | None) -> dict[str, RowExtent]:
    shares = {name: recipe.sample.share for name, recipe in recipes.items()}
    if like is not None:
        shares = {name: float(like.collections[name].rows) if name in like.collections else 0.0 for name in recipes}
    whole = sum(shares.values()) or 1.0
    counts = {}
    for name, recipe in recipes.items():
        count = max(round(rows * shares[name] / whole), recipe.sample.rows_min)
        counts[name] = count if like is not None else min(count, recipe.sample.rows_max)
    if counts:
        largest = max(shares, key=lambda name: (shares[name], name))
        least = recipes[largest].sample.rows_min
        counts[largest] = max(rows - sum(count for name, count in counts.items() if name != largest), least)
    extents = {name: _extent(recipe, counts[name]) for name, recipe in recipes.items()}
    for name, recipe in recipes.items():
        if recipe.sample.room is not None:
            room = recipe.sample.room(lambda other: extents[other].lasting)
            extents[name] = _extent(recipe, min(counts[name], room))
    return extents


def _extent(recipe: CollectionRecipe, count: int) -> RowExtent:
    sample = recipe.sample
    inserted = min(count // _TAIL_PART, _INSERTS_MAX) if sample.inserts and recipe.keys_differ else 0
    deleted = min(count // _DELETED_PART, _DELETES_MAX) if sample.deletes and recipe.keys_differ else 0
    return RowExtent(count - inserted - deleted, deleted, inserted)
