"""Bringing Arrow arrays from one schema to a later one: buffers are shared, and only nulls are new.

What is to be done is plain data, made by `evolution` alone; it goes to other processes as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from catalog.shard.order import bits


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing changes."""

    def apply(self, array: pa.Array) -> pa.Array:
        return array


@dataclass(frozen=True, slots=True)
class Fill:
    """A field that old rows do not have."""

    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Take:
    """A field that old rows have: its place among theirs, and what becomes of it."""

    position: int
    node: Node


@dataclass(frozen=True, slots=True)
class InStruct:
    fields: tuple[Take | Fill, ...]
    type: pa.StructType

    def apply(self, array: pa.StructArray) -> pa.StructArray:
        children = self.children([array.field(number) for number in range(array.type.num_fields)], len(array))
        return pa.Array.from_buffers(self.type, len(array), [_validity(array)], array.null_count, 0, children)

    def children(self, old: list[pa.Array], count: int) -> list[pa.Array]:
        return [
            pa.nulls(count, field.type) if isinstance(field, Fill) else field.node.apply(old[field.position])
            for field in self.fields
        ]


@dataclass(frozen=True, slots=True)
class InList:
    item: Node
    type: pa.ListType

    def apply(self, array: pa.ListArray) -> pa.ListArray:
        return _with_child(array, self.type, self.item.apply(array.values))


@dataclass(frozen=True, slots=True)
class InMap:
    value: Node
    type: pa.MapType

    def apply(self, array: pa.MapArray) -> pa.MapArray:
        fields = [self.type.key_field, self.type.item_field]
        entries = pa.StructArray.from_arrays([array.keys, self.value.apply(array.items)], fields=fields)
        return _with_child(array, self.type, entries)


Node = Keep | InStruct | InList | InMap

KEPT = Keep()


@dataclass(frozen=True, slots=True)
class Migration:
    """How to bring rows to a schema; the same to readers, compaction, and whoever only asks whether it can be done."""

    node: Node
    target: pa.Schema
    preserves_order: bool
    """Whether rows that were in order still are; equal rows may have come about all the same."""

    @property
    def is_noop(self) -> bool:
        return self.node == KEPT

    def apply(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the old schema as rows of the new one."""
        columns = self.columns(rows.columns, rows.num_rows)
        return pa.RecordBatch.from_arrays(columns, schema=self.target) if columns else rows.select([])

    def columns(self, old: list[pa.Array], count: int) -> list[pa.Array]:
        return self.node.children(old, count) if isinstance(self.node, InStruct) else old


def _with_child(array: pa.ListArray, type_: pa.DataType, child: pa.Array) -> pa.ListArray:
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], array.null_count, array.offset, [child])


def _validity(array: pa.Array) -> pa.Buffer | None:
    """Which are not null, from the first bit on, as the members of a struct are."""
    if not array.null_count:
        return None
    if array.offset == 0:
        return array.buffers()[0]
    return pa.py_buffer(np.packbits(bits(array.is_valid()), bitorder="little"))
