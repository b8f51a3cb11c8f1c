"""Collections as relations of SQL: flat columns with the names of fields, at one ts. Importing this loads no pyspark.

A relation has a column for every field of a key and, after them, for every field of a value. A name that both have
stands for neither: those two are `key_NAME` and `value_NAME`. Enums are texts, their names, wherever they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from catalog.engine.base.descriptors import descriptor_of, map_entry
from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.engine.spark.datasource.scan import locate, registry_of
from catalog.engine.stash.registry import Collection

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

_TYPES: Final[Mapping[int, str]] = {
    FieldDescriptor.CPPTYPE_INT32: "int",
    FieldDescriptor.CPPTYPE_INT64: "bigint",
    FieldDescriptor.CPPTYPE_UINT32: "bigint",
    FieldDescriptor.CPPTYPE_UINT64: "decimal(20,0)",
    FieldDescriptor.CPPTYPE_DOUBLE: "double",
    FieldDescriptor.CPPTYPE_FLOAT: "float",
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
    FieldDescriptor.CPPTYPE_ENUM: "string",
    FieldDescriptor.CPPTYPE_STRING: "string",
}


class Relation(Protocol):
    """A relation that a statement can name after FROM."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> Mapping[str, str]:
        """Return the type of each column as Spark writes it; found without Spark."""

    def frame(self, session: SparkSession) -> DataFrame:
        """Return its rows as a DataFrame; few rows are read now, many when they are asked for."""


@dataclass(frozen=True, slots=True)
class Relations:
    """All relations of a store at one ts."""

    store: str
    version: int
    ts: int
    by_name: Mapping[str, Relation]


@dataclass(frozen=True, slots=True)
class CollectionRelation:
    request: ReadOptions
    collection: Collection

    @property
    def name(self) -> str:
        return self.collection.name

    @property
    def columns(self) -> Mapping[str, str]:
        return {name: _type(field) for name, _, field in self._fields()}

    def frame(self, session: SparkSession) -> DataFrame:
        from catalog.engine.spark.collection_frame import collection_frame  # noqa: PLC0415 - relations are listed without

        own = self.request
        stored = collection_frame(session, own.store, own.storage, self.name, own.as_of, project=own.project)
        return stored.select(
            *(_named(stored[side][field.name], field).alias(name) for name, side, field in self._fields())
        )

    def _fields(self) -> Iterator[tuple[str, str, FieldDescriptor]]:
        """Name, side and field of each column."""
        sides = {"key": self.collection.key_type, "value": self.collection.value_type}
        fields = {side: dict(descriptor_of(kind).fields_by_name) for side, kind in sides.items()}
        both = fields["key"].keys() & fields["value"].keys()
        for side, own in fields.items():
            for name, field in own.items():
                yield f"{side}_{name}" if name in both else name, side, field


def collection_relations(store: str, options: Mapping[str, str], as_of: int | None, project: str) -> Relations:
    """Return the collections of the version that a store has, or had at a ts: all of one state."""
    request, state, version = locate(ReadOptions(store, "", as_of, options, project))
    collections = registry_of(request, version).by_name
    found = {name: CollectionRelation(replace(request, collection=name), collections[name]) for name in collections}
    return Relations(request.store, version, state.version, dict(sorted(found.items())))


def _type(field: FieldDescriptor) -> str:
    if (entry := map_entry(field)) is not None:
        return f"map<{','.join(_type(own) for own in entry.fields)}>"
    return f"array<{_single_type(field)}>" if field.is_repeated else _single_type(field)


def _single_type(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        members = [f"{own.name}:{_type(own)}" for own in field.message_type.fields]
        return f"struct<{','.join(members)}>" if members else "boolean"
    return "binary" if field.type == FieldDescriptor.TYPE_BYTES else _TYPES[field.cpp_type]


def _named(column: SparkColumn, field: FieldDescriptor) -> SparkColumn:
    """Return a column with names in place of the numbers of enums."""
    from pyspark.sql import functions as spark  # noqa: PLC0415 - relations are listed without

    if not _has_enum(field):
        return column
    if (entry := map_entry(field)) is not None:
        held = entry.fields_by_name["value"]
        return spark.transform_values(column, lambda _, value: _named(value, held))
    if field.is_repeated:
        return spark.transform(column, lambda element: _single_named(element, field))
    return _single_named(column, field)


def _single_named(column: SparkColumn, field: FieldDescriptor) -> SparkColumn:
    from pyspark.sql import functions as spark  # noqa: PLC0415 - relations are listed without

    if field.enum_type is not None:
        return _enum_named(column, field.enum_type)
    inner = field.message_type.fields if field.message_type is not None else ()
    members = [_named(column[own.name], own).alias(own.name) for own in inner]
    return spark.when(column.isNotNull(), spark.struct(*members))


def _enum_named(column: SparkColumn, enum: EnumDescriptor) -> SparkColumn:
    """Return an enum column as names; a number without a name stays a number, as text."""
    from pyspark.sql import functions as spark  # noqa: PLC0415 - relations are listed without

    names = [spark.when(column == number, known.name) for number, known in enum.values_by_number.items()]
    return spark.coalesce(*names, column.cast("string"))


def _has_enum(field: FieldDescriptor) -> bool:
    if field.message_type is not None:
        return any(map(_has_enum, field.message_type.fields))
    return field.enum_type is not None
