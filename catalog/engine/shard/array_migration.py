"""Migration of Arrow arrays from one schema to a later one: buffers are shared, and only nulls are new.

A migration is plain data, made by `schema_rules` alone, and is pickled as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types

from catalog.engine.shard.row_order import bits


@dataclass(frozen=True, slots=True)
class ArrayMigration:
    """The way to bring rows to a schema that the rules allow to follow theirs."""

    source: pa.Schema
    target: pa.Schema
    preserves_order: bool
    """True if rows that were in order still are; rows that differed may have become equal all the same."""

    @property
    def is_noop(self) -> bool:
        return bool(self.source.equals(self.target))

    def apply(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of the old schema as rows of the new one."""
        columns = self.columns(rows.columns, rows.num_rows)
        return pa.RecordBatch.from_arrays(columns, schema=self.target) if columns else rows.select([])

    def columns(self, old: list[pa.Array], count: int) -> list[pa.Array]:
        """Return the columns of the new schema for those of the old one."""
        return old if self.is_noop else _members(self.source.names, old, list(self.target), count)


def _members(names: list[str], old: list[pa.Array], target: list[pa.Field], count: int) -> list[pa.Array]:
    """Return the members of a struct in its new fields: found by name, or null if they are new."""
    found = dict(zip(names, old, strict=True))
    return [
        _migrated(found[field.name], field.type) if field.name in found else pa.nulls(count, field.type)
        for field in target
    ]


def _migrated(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target:
        return array
    if types.is_struct(target):
        names = [field.name for field in array.type]
        old = [array.field(number) for number in range(len(names))]
        children = _members(names, old, list(target), len(array))
        return pa.Array.from_buffers(target, len(array), [_validity(array)], array.null_count, 0, children)
    if types.is_list(target):
        return _with_child(array, target, _migrated(array.values, target.value_type))
    fields = [target.key_field, target.item_field]
    entries = pa.StructArray.from_arrays([array.keys, _migrated(array.items, target.item_type)], fields=fields)
    return _with_child(array, target, entries)


def _with_child(array: pa.ListArray, type_: pa.DataType, child: pa.Array) -> pa.ListArray:
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], array.null_count, array.offset, [child])


def _validity(array: pa.Array) -> pa.Buffer | None:
    """Return the validity bits of a struct from its first row on."""
    if not array.null_count:
        return None
    if array.offset == 0:
        return array.buffers()[0]
    return pa.py_buffer(np.packbits(bits(array.is_valid()), bitorder="little"))
