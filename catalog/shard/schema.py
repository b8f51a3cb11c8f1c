"""Schemas as users know them: named columns, each with an id that is given out once.

Inside a shard a column is known by its id alone, so that the name of a deleted column can be used again although its
id never can. Types are brought to one form: no metadata, and the children of lists and maps named as Arrow does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

import pyarrow as pa
from pyarrow import types

from catalog.errors import UnfitSchemaError

SchemaId = NewType("SchemaId", int)
"""The place of a schema in the sequence of its shard, from 0."""

DIFF = "_diff"
"""How often a row came, or if negative went; stands beside the columns of whatever is read."""


@dataclass(frozen=True, slots=True)
class Column:
    id: int
    """Chosen by whoever declares the column; never that of another column of the shard, deleted ones included."""
    name: str
    type: pa.DataType
    nullable: bool = True

    def __post_init__(self) -> None:
        if self.id < 0:
            raise UnfitSchemaError(self.name, f"its id is {self.id}, below zero")
        if self.name in {"", DIFF}:
            raise UnfitSchemaError(repr(self.name), "a column needs a name, and this one is not to be had")
        object.__setattr__(self, "type", canonical(self.type, self.name))


@dataclass(frozen=True, slots=True)
class Schema:
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        for what in ("id", "name"):
            seen = [getattr(column, what) for column in self.columns]
            for column, own in zip(self.columns, seen, strict=True):
                if seen.count(own) > 1:
                    raise UnfitSchemaError(column.name, f"another column has the same {what}, {own}")

    @classmethod
    def of(cls, *columns: Column) -> Schema:
        return cls(columns)

    def project(self, *names: str) -> Schema:
        """The same without the other columns, in its own order."""
        if unknown := set(names) - {column.name for column in self.columns}:
            raise UnfitSchemaError(min(unknown), "there is no such column to be read")
        return Schema(tuple(column for column in self.columns if column.name in names))

    @property
    def inner(self) -> pa.Schema:
        """Its columns as a shard keeps them, by their ids."""
        return pa.schema([pa.field(str(column.id), column.type, column.nullable) for column in self.columns])

    @property
    def outer(self) -> pa.Schema:
        """Its columns by their names, and the diff."""
        fields = [pa.field(column.name, column.type, column.nullable) for column in self.columns]
        return pa.schema([*fields, pa.field(DIFF, pa.int64(), nullable=False)])

    def name_of(self, inner: str) -> str | None:
        return next((column.name for column in self.columns if str(column.id) == inner), None)


def canonical(type_: pa.DataType, path: str) -> pa.DataType:
    """The one form of a type; refuses, by the path of the field, what a shard cannot hold."""
    if types.is_struct(type_):
        names = [field.name for field in type_]
        for name in names:
            if names.count(name) > 1:
                raise UnfitSchemaError(f"{path}.{name}", "the struct has two fields of that name")
        return pa.struct([_canonical(field, field.name, f"{path}.{field.name}") for field in type_])
    if types.is_list(type_):
        return pa.list_(_canonical(type_.value_field, "item", f"{path}.item"))
    if types.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(canonical(key.type, f"{path}.key"), _canonical(item, "value", f"{path}.value"))
    if not any(is_plain(type_) for is_plain in _PLAIN):
        raise UnfitSchemaError(path, f"{type_} is no type of a shard")
    return type_


_PLAIN = (
    types.is_boolean,
    types.is_integer,
    types.is_floating,
    types.is_decimal128,
    types.is_string,
    types.is_large_string,
    types.is_binary,
    types.is_large_binary,
    types.is_fixed_size_binary,
    types.is_date,
    types.is_time,
    types.is_timestamp,
    types.is_duration,
)


def _canonical(field: pa.Field, name: str, path: str) -> pa.Field:
    return pa.field(name, canonical(field.type, path), field.nullable)
