"""Schemas as users know them: named columns, each with an id that is given out once.

Inside a shard a column is known by its id alone, so that the name of a deleted column can be used again although its id
never can. Types are brought to one form: no metadata, and the children of lists and maps named as Arrow does. A type
can be declared by its name, so that a declaration needs no Arrow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final, NewType

from catalog.engine.base.lazy_arrow import pa
from catalog.errors import UnfitSchemaError

SchemaId = NewType("SchemaId", int)
"""The place of a schema in the sequence of its shard, from 0."""

DIFF = "_diff"
"""The column of diffs beside those of a schema: how often a row was added or, if negative, removed."""
FINALIZED = "finalized"
"""The collection whose one row marks a shard as finalised."""

_NAMED: Final[dict[str, tuple[str, ...]]] = {
    **{name: (name,) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: (name,) for name in ("string", "large_string", "binary", "large_binary")},
    "bool": ("bool_",),
    "float": ("float32",),
    "double": ("float64",),
    "date32[day]": ("date32",),
    **{f"{name}[{unit}]": (name, unit) for name in ("timestamp", "duration") for unit in ("s", "ms", "us", "ns")},
}
"""The functions of Arrow, with their arguments, that return the types of these names."""
_ZONED: Final = re.compile(r"timestamp\[(s|ms|us|ns), tz=([^\]]+)\]")


class _DeclaredType:
    """The field of a column's type: declared in Arrow's terms or by its name, and read in Arrow's terms."""

    def __set__(self, column: Column, declared: str | pa.DataType) -> None:
        column.__dict__["type"] = declared

    def __get__(self, column: Column | None, owner: type[Column]) -> pa.DataType:
        if column is None:
            raise AttributeError("a column has no type by default")
        declared = column.__dict__["type"]
        return _named(declared) if isinstance(declared, str) else declared


@dataclass(frozen=True)
class Column:
    id: int
    """Chosen where the column is declared; never that of another column of the shard, deleted ones included."""
    name: str
    type: pa.DataType = _DeclaredType()
    """May be given by its name, such as `int64` or `timestamp[us, tz=UTC]`."""
    nullable: bool = True

    def __post_init__(self) -> None:
        if self.id < 0:
            raise UnfitSchemaError(self.name, f"its id is {self.id}, below zero")
        if self.name in {"", DIFF}:
            raise UnfitSchemaError(repr(self.name), "a column name must not be empty or reserved")
        declared = self.declared_type
        if not isinstance(declared, str):
            object.__setattr__(self, "type", canonical(declared, self.name))
        elif declared not in _NAMED and _ZONED.fullmatch(declared) is None:
            raise UnfitSchemaError(self.name, f"{declared!r} is no name of a type of a shard")

    @property
    def declared_type(self) -> str | pa.DataType:
        """Return the name of the type if it was declared by that; else the type in Arrow's terms."""
        return self.__dict__["type"]


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
        """Return the schema without the other columns, in its own order."""
        if unknown := set(names) - {column.name for column in self.columns}:
            raise UnfitSchemaError(min(unknown), "there is no such column to be read")
        return Schema(tuple(column for column in self.columns if column.name in names))

    @property
    def inner(self) -> pa.Schema:
        """Return its columns as a shard keeps them, by their ids."""
        return pa.schema([pa.field(str(column.id), column.type, column.nullable) for column in self.columns])

    @property
    def outer(self) -> pa.Schema:
        """Return its columns by their names, and the diff."""
        fields = [pa.field(column.name, column.type, column.nullable) for column in self.columns]
        return pa.schema([*fields, pa.field(DIFF, pa.int64(), nullable=False)])

    def name_of(self, inner: str) -> str | None:
        return next((column.name for column in self.columns if str(column.id) == inner), None)


@cache
def _named(name: str) -> pa.DataType:
    """Return the type of a name, which was checked when the column was declared."""
    zoned = _ZONED.fullmatch(name)
    function, *arguments = _NAMED[name] if zoned is None else ("timestamp", *zoned.groups())
    return getattr(pa, function)(*arguments)


def canonical(type_: pa.DataType, path: str) -> pa.DataType:
    """Return the one form of a type; refuse a type that a shard cannot hold, by the path of the field."""
    types = pa.types
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
    if not any(getattr(types, is_plain)(type_) for is_plain in _PLAIN):
        raise UnfitSchemaError(path, f"{type_} is no type of a shard")
    return type_


_PLAIN = (
    "is_boolean",
    "is_integer",
    "is_floating",
    "is_decimal128",
    "is_string",
    "is_large_string",
    "is_binary",
    "is_large_binary",
    "is_fixed_size_binary",
    "is_date",
    "is_time",
    "is_timestamp",
    "is_duration",
)


def _canonical(field: pa.Field, name: str, path: str) -> pa.Field:
    return pa.field(name, canonical(field.type, path), field.nullable)
