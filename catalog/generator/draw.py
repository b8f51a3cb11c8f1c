"""Rows of a collection as columns, each field by the project's sample, by a constraint or by its descriptor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyarrow import types

from catalog.codec import codec_for
from catalog.codec.columns import fit
from catalog.generator.fields import descriptor_of, inner, is_optional
from catalog.generator.plan import Extent, Making, Plan
from catalog.generator.texts import USUAL, WORDS, Lengths, large_pool, pool
from catalog.generator.vectors import (
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

_PRESENT = 0.6
_ELEMENTS_MAX = 3
_LARGE_SHARE, _LARGE_ROW = 1 / 1024, 3
"""Of the rows that have a large text, where a sample says so; and one that always has."""
_LOOKED_UP_MAX = 1 << 16
_WORDS = pa.array(WORDS, pa.string())


@dataclass(frozen=True, slots=True)
class Draw:
    """Rows of a collection by their numbers; whatever is asked of it is a function of number, revision and seed."""

    plan: Plan
    making: Making
    numbers: pa.Array
    revision: int = 0
    """How often these rows were changed."""
    lengths: Lengths = USUAL
    """Of the texts that make up the length of a row."""
    _columns: dict[str, pa.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def version(self) -> int:
        return self.plan.version

    @property
    def steady(self) -> Draw:
        """The same rows as they were first: for what never changes."""
        return self if not self.revision else replace(self, revision=0, _columns={})

    def extent(self, collection: str) -> Extent:
        return self.plan.extents[collection]

    def key(self) -> pa.StructArray:
        return self.steady.side("key")

    def value(self) -> pa.StructArray:
        return self.side("value")

    def __getitem__(self, path: str) -> pa.Array:
        """A field of key or value, by its path."""
        if path.startswith("key.") and self.revision:
            return self.steady[path]
        if path not in self._columns:
            side, name = path.split(".")
            message = self._message(side)
            target = codec_for(message).type.field(name).type
            make = self.making.sample.columns.get(path)
            found = self._fill(message.fields_by_name[name], target, path) if make is None else make(self)
            self._columns[path] = fit(found, target, path)
        return self._columns[path]

    def hashes(self, label: str) -> pa.Array:
        """A random number of 64 bits for each row, another one for each label."""
        return mixed(self.numbers, salt(self.plan.seed, self.making.collection.name, label, self.revision))

    def below(self, label: str, bound: int) -> pa.Array:
        return below(self.hashes(label), bound)

    def chance(self, label: str, share: float) -> pa.Array:
        """Whether, for each row, something happens that happens in a share of all."""
        return pc.less(self.below(f"{label}?", SHARE_UNITS), unsigned(round(share * SHARE_UNITS)))

    def pick(self, label: str, choices: pa.Array) -> pa.Array:
        return choices.take(self.below(label, len(choices)))

    def words(self, label: str) -> pa.Array:
        return self.pick(label, _WORDS)

    def names(self, label: str) -> pa.Array:
        """Texts that differ in every row and never change."""
        return joined(self.steady.words(label), "_", self.numbers)

    def text(self, label: str) -> pa.Array:
        """What makes up the length of a row."""
        texts = pool(self.plan.seed, self.lengths)
        choice = self.below(label, len(texts))
        if self.making.sample.large and self.plan.like is None and self.lengths.mean:
            large = large_pool(self.plan.seed)
            rare = pc.or_(self.chance(f"{label} large", _LARGE_SHARE), pc.equal(self.numbers, unsigned(_LARGE_ROW)))
            choice = pc.if_else(rare, plus(below(self.hashes(f"{label} large"), len(large)), len(texts)), choice)
            texts = pa.concat_arrays([texts, large])
        return texts.take(choice)

    def optional(self, path: str, column: pa.Array) -> pa.Array:
        """The column, absent in as many rows as the statistics say, or else in some."""
        return only(self.chance(path, self._present(path)), column)

    def rows_of(self, collection: str, label: str, first: int = 0) -> pa.Array:
        """The number, for each row, of some row of a collection that lasts."""
        lasting = self.extent(collection).lasting
        return plus(self.below(label, lasting - first), first)

    def look_up(self, collection: str, path: str, rows: pa.Array) -> pa.Array:
        """A field of rows of another collection as they were first, by their numbers."""
        making, total = self.plan.makings[collection], self.extent(collection).total
        if total > _LOOKED_UP_MAX:
            return Draw(self.plan, making, rows)[path]
        known = self.plan.looked_up.get((collection, path))
        if known is None:
            known = self.plan.looked_up[collection, path] = Draw(self.plan, making, numbers(0, total))[path]
        return known.take(rows)

    def ids(self, collection: str, rows: pa.Array) -> pa.Array:
        return self.look_up(collection, "key.id", rows)

    def refer(self, collection: str, label: str, first: int = 0) -> pa.Array:
        """The id, for each row, of some row of a collection that lasts."""
        return self.ids(collection, self.rows_of(collection, label, first))

    def _message(self, side: str) -> Descriptor:
        collection = self.making.collection
        return descriptor_of(collection.key_type if side == "key" else collection.value_type)

    def side(self, side: str) -> pa.StructArray:
        message = self._message(side)
        made = {path for path in self.making.sample.columns if path.startswith(f"{side}.")}
        return self._struct(message, codec_for(message).type, side, lambda name: self[f"{side}.{name}"], made)

    def _struct(
        self,
        message: Descriptor,
        target: pa.StructType,
        path: str,
        column: Callable[[str], pa.Array],
        made: set[str],
    ) -> pa.StructArray:
        """A message, with one member of every oneof and some of the optional fields, unless they are made elsewhere."""
        if not message.fields:
            return pa.StructArray.from_arrays([], fields=[], mask=pa.repeat(pa.scalar(value=False), len(self)))
        columns = []
        for member in message.fields:
            found, at, oneof = column(member.name), f"{path}.{member.name}", member.containing_oneof
            if oneof is None or at in made:
                pass
            elif is_optional(member):
                found = self.optional(at, found)
            else:
                chosen = self.below(f"{path}.{oneof.name}", len(oneof.fields))
                found = only(pc.equal(chosen, unsigned(oneof.fields.index(member))), found)
            columns.append(found)
        return pa.StructArray.from_arrays(columns, fields=list(target))

    def _fill(self, member: FieldDescriptor, target: pa.DataType, path: str) -> pa.Array:
        if types.is_map(target):
            return self._map(member, target, path)
        if not types.is_list(target):
            return self.fill_one(member, target, path)
        columns, masks = [], []
        for position in range(_ELEMENTS_MAX):
            label = f"{path}[{position}]"
            element = replace(self, numbers=self.hashes(label), _columns={})
            columns.append(element.fill_one(member, target.value_type, path))
            masks.append(self.chance(label, 1 / 2))
        return lists(columns, masks)

    def fill_one(self, member: FieldDescriptor, target: pa.DataType, path: str) -> pa.Array:
        if path in self.making.references:
            return self.refer(self.making.references[path], path)
        if path in self.making.distinct:
            return self.names(path) if types.is_string(target) else plus(self.numbers, 1)
        if path == self.making.filler:
            return self.text(path)
        if member.message_type is not None:
            children = {}
            for inside in member.message_type.fields:
                kind, at = target.field(inside.name).type, f"{path}.{inside.name}"
                children[inside.name] = fit(self._fill(inside, kind, at), kind, at)
            return self._struct(member.message_type, target, path, children.__getitem__, set())
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
        """Entries whose keys differ by their position."""
        entry: Mapping[str, FieldDescriptor] = inner(member).fields_by_name
        entries, masks = [], []
        for position in range(2 if types.is_boolean(target.key_type) else _ELEMENTS_MAX):
            label = f"{path}[{position}]"
            element = replace(self, numbers=self.hashes(label), _columns={})
            key = (
                joined(f"{position}_", element.words(path))
                if types.is_string(target.key_type)
                else pa.repeat(pa.scalar(position).cast(target.key_type), len(self))
            )
            item = element.fill_one(entry["value"], target.item_type, f"{path}.value")
            entries.append(pa.StructArray.from_arrays([key, item], names=["key", "value"]))
            masks.append(self.chance(label, 1 / 2))
        found = lists(entries, masks)
        keys, items = found.values.flatten()
        return pa.MapArray.from_arrays(found.offsets, keys, items)

    def _present(self, path: str) -> float:
        like = self.plan.like
        known = like.collections.get(self.making.collection.name) if like is not None else None
        return known.present.get(path, _PRESENT) if known is not None else _PRESENT
