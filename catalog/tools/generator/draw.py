"""Rows of a collection as columns: each field from the project's sample, a constraint or its descriptor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyarrow import types

from catalog.engine.base.descriptors import descriptor_of, inner, is_optional
from catalog.engine.codec import codec_for
from catalog.engine.codec.columns import fit
from catalog.tools.generator.plan import CollectionRecipe, GenerationPlan, RowExtent
from catalog.tools.generator.random_columns import (
    SHARE_UNITS,
    below,
    joined,
    lists,
    mixed,
    numbers,
    only,
    plus,
    salt,
    unsigned,
)
from catalog.tools.generator.texts import USUAL, WORDS, Lengths, large_pool, pool

_PRESENT = 0.6
_ELEMENTS_MAX = 3
_LARGE_SHARE, _LARGE_ROW = 1 / 1024, 3
"""The share of rows with a large text, where a sample asks for them, and one row that always has one."""
_LOOKED_UP_MAX = 1 << 16
_WORDS = pa.array(WORDS, pa.string())


@dataclass(frozen=True, slots=True)
class Draw:
    """Rows of a collection by their numbers. Every column is a function of number, revision and seed."""

    plan: GenerationPlan
    recipe: CollectionRecipe
    numbers: pa.Array
    revision: int = 0
    """The number of earlier changes of these rows."""
    lengths: Lengths = USUAL
    """The lengths of the texts that fill a row."""
    _columns: dict[str, pa.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def version(self) -> int:
        return self.plan.version

    @property
    def steady(self) -> Draw:
        """The same rows before any change, for columns that never change."""
        return self if not self.revision else replace(self, revision=0, _columns={})

    def extent(self, collection: str) -> RowExtent:
        return self.plan.extents[collection]

    def __getitem__(self, path: str) -> pa.Array:
        """Return a field of key or value by its path, such as `value.name`."""
        if path.startswith("key.") and self.revision:
            return self.steady[path]
        if path not in self._columns:
            side, name = path.split(".")
            message = self._message(side)
            target = codec_for(message).type.field(name).type
            make = self.recipe.sample.columns.get(path)
            found = self._fill(message.fields_by_name[name], target, path) if make is None else make(self)
            self._columns[path] = fit(found, target, path)
        return self._columns[path]

    def hashes(self, label: str) -> pa.Array:
        """Return a random number of 64 bits for each row; another label gives other numbers."""
        return mixed(self.numbers, salt(self.plan.seed, self.recipe.collection.name, label, self.revision))

    def below(self, label: str, bound: int) -> pa.Array:
        return below(self.hashes(label), bound)

    def chance(self, label: str, share: float) -> pa.Array:
        """Return true for about this share of the rows."""
        return pc.less(self.below(f"{label}?", SHARE_UNITS), unsigned(round(share * SHARE_UNITS)))

    def pick(self, label: str, choices: pa.Array) -> pa.Array:
        return choices.take(self.below(label, len(choices)))

    def words(self, label: str) -> pa.Array:
        return self.pick(label, _WORDS)

    def names(self, label: str) -> pa.Array:
        """Return texts that differ in every row and never change."""
        return joined(self.steady.words(label), "_", self.numbers)

    def text(self, label: str) -> pa.Array:
        """Return the texts that fill rows to their length."""
        texts = pool(self.plan.seed, self.lengths)
        choice = self.below(label, len(texts))
        if self.recipe.sample.large and self.plan.like is None and self.lengths.mean:
            large = large_pool(self.plan.seed)
            rare = pc.or_(self.chance(f"{label} large", _LARGE_SHARE), pc.equal(self.numbers, unsigned(_LARGE_ROW)))
            choice = pc.if_else(rare, plus(below(self.hashes(f"{label} large"), len(large)), len(texts)), choice)
            texts = pa.concat_arrays([texts, large])
        return texts.take(choice)

    def optional(self, path: str, column: pa.Array) -> pa.Array:
        """Return the column with nulls: as many as in the measured store, or else in some rows."""
        return only(self.chance(path, self._present(path)), column)

    def rows_of(self, collection: str, label: str, first: int = 0) -> pa.Array:
        """Return for each row the number of a row of the collection that is never deleted."""
        lasting = self.extent(collection).lasting
        return plus(self.below(label, lasting - first), first)

    def look_up(self, collection: str, path: str, rows: pa.Array) -> pa.Array:
        """Return a field of rows of another collection, by their numbers, before any change."""
        recipe, total = self.plan.recipes[collection], self.extent(collection).total
        if total > _LOOKED_UP_MAX:
            return Draw(self.plan, recipe, rows)[path]
        known = self.plan.looked_up.get((collection, path))
        if known is None:
            known = self.plan.looked_up[collection, path] = Draw(self.plan, recipe, numbers(0, total))[path]
        return known.take(rows)

    def ids(self, collection: str, rows: pa.Array) -> pa.Array:
        return self.look_up(collection, "key.id", rows)

    def refer(self, collection: str, label: str) -> pa.Array:
        """Return for each row the id of a row of the collection that is never deleted."""
        return self.ids(collection, self.rows_of(collection, label))

    def _message(self, side: str) -> Descriptor:
        collection = self.recipe.collection
        return descriptor_of(collection.key_type if side == "key" else collection.value_type)

    def side(self, side: str) -> pa.StructArray:
        """Return the keys ("key") or the values ("value") of the rows."""
        message = self._message(side)
        columns = {member.name: self[f"{side}.{member.name}"] for member in message.fields}
        return self._struct(message, codec_for(message).type, side, columns)

    def _struct(
        self, message: Descriptor, target: pa.StructType, path: str, columns: dict[str, pa.Array]
    ) -> pa.StructArray:
        """Return messages with one member of each oneof and some of the optional fields; sampled fields stay whole."""
        if not message.fields:
            return pa.StructArray.from_arrays([], fields=[], mask=pa.repeat(pa.scalar(value=False), len(self)))
        for member in message.fields:
            at, oneof = f"{path}.{member.name}", member.containing_oneof
            if oneof is None or at in self.recipe.sample.columns:
                continue
            if is_optional(member):
                columns[member.name] = self.optional(at, columns[member.name])
            else:
                chosen = self.below(f"{path}.{oneof.name}", len(oneof.fields))
                is_chosen = pc.equal(chosen, unsigned(oneof.fields.index(member)))
                columns[member.name] = only(is_chosen, columns[member.name])
        return pa.StructArray.from_arrays([columns[member.name] for member in message.fields], fields=list(target))

    def _fill(self, member: FieldDescriptor, target: pa.DataType, path: str) -> pa.Array:
        if types.is_map(target):
            return self._map(member, target, path)
        if not types.is_list(target):
            return self.fill_one(member, target, path)
        return self._lists(path, _ELEMENTS_MAX, lambda _, element: element.fill_one(member, target.value_type, path))

    def _lists(self, path: str, count: int, make: Callable[[int, Draw], pa.Array]) -> pa.ListArray:
        """Return lists of up to `count` elements; `make` gets a position and the rows of the elements there."""
        columns, masks = [], []
        for position in range(count):
            label = f"{path}[{position}]"
            columns.append(make(position, replace(self, numbers=self.hashes(label), _columns={})))
            masks.append(self.chance(label, 1 / 2))
        return lists(columns, masks)

    def fill_one(self, member: FieldDescriptor, target: pa.DataType, path: str) -> pa.Array:
        if path in self.recipe.references:
            return self.refer(self.recipe.references[path], path)
        if path in self.recipe.distinct:
            return self.names(path) if types.is_string(target) else plus(self.numbers, 1)
        if path == self.recipe.filler:
            return self.text(path)
        if member.message_type is not None:
            children = {}
            for inside in member.message_type.fields:
                kind, at = target.field(inside.name).type, f"{path}.{inside.name}"
                children[inside.name] = fit(self._fill(inside, kind, at), kind, at)
            return self._struct(member.message_type, target, path, children)
        if member.enum_type is not None:
            known = [value.number for value in member.enum_type.values if value.number]
            return self.pick(path, pa.array(known or [0], target))
        return self._fill_scalar(target, path)

    def _fill_scalar(self, target: pa.DataType, path: str) -> pa.Array:
        if types.is_boolean(target):
            return self.chance(path, 1 / 2)
        if types.is_string(target):
            return joined(self.words(path), " ", self.words(f"{path} again"))
        if types.is_binary(target):
            return self.words(path).cast(pa.binary())
        small = plus(self.below(path, 10_000), 1)
        return pc.divide(small.cast(target), pa.scalar(8, target)) if types.is_floating(target) else small.cast(target)

    def _map(self, member: FieldDescriptor, target: pa.MapType, path: str) -> pa.MapArray:
        """Return maps; the key of an entry begins with its position or is it."""
        held = inner(member).fields_by_name["value"]

        def entry(position: int, element: Draw) -> pa.StructArray:
            key = (
                joined(f"{position}_", element.words(path))
                if types.is_string(target.key_type)
                else pa.repeat(pa.scalar(position).cast(target.key_type), len(self))
            )
            item = element.fill_one(held, target.item_type, f"{path}.value")
            return pa.StructArray.from_arrays([key, item], names=["key", "value"])

        found = self._lists(path, 2 if types.is_boolean(target.key_type) else _ELEMENTS_MAX, entry)
        keys, items = found.values.flatten()
        return pa.MapArray.from_arrays(found.offsets, keys, items)

    def _present(self, path: str) -> float:
        like = self.plan.like
        known = like.collections.get(self.recipe.collection.name) if like is not None else None
        return known.present.get(path, _PRESENT) if known is not None else _PRESENT
