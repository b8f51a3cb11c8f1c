"""The types that rows have at a version, on the driver and on every executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol

import pyarrow as pa

from catalog.engine.base.descriptors import descriptor_of
from catalog.engine.base.project import Project, load_project
from catalog.engine.codec import codec_for, fit
from catalog.engine.codec.enum_values import UndeclaredValues
from catalog.engine.stash.engine_rows import ENGINE_COLLECTIONS
from catalog.engine.stash.registry import Collection, Registry

__all__ = ["ENGINE_COLLECTIONS", "LegacyRows", "RowColumns", "RowType", "registry_of", "row_types", "undeclared_in"]


class RowType(Protocol):
    """The type of the rows of one collection at one version."""

    @property
    def name(self) -> str: ...

    def decode(self, key: bytes, value: bytes) -> tuple[Any, Any]:
        """Return a row as two objects; raise if the bytes are not one."""

    @property
    def readers(self) -> tuple[Callable[[bytes], Any], Callable[[bytes], Any]]:
        """The functions that read a key and a value, for many rows."""


@dataclass(frozen=True, slots=True)
class LegacyRows:
    """The type of rows before protobuf. Their own module reads them, and refuses bytes that it would not write."""

    name: str
    key_type: type
    value_type: type
    module: Any

    def decode(self, key: bytes, value: bytes) -> tuple[Any, Any]:
        return self.module.decode(self.key_type, key), self.module.decode(self.value_type, value)

    @property
    def readers(self) -> tuple[Callable[[bytes], Any], Callable[[bytes], Any]]:
        return partial(self.module.decode, self.key_type), partial(self.module.decode, self.value_type)


@dataclass(frozen=True, slots=True)
class RowColumns:
    """The codec of a collection's rows, from bytes to columns and back."""

    collection: Collection

    def decode(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> tuple[pa.StructArray, pa.StructArray]:
        key, value = self._codecs
        return key.decode(keys), value.decode(values)

    def encode(self, keys: pa.Array, values: pa.Array) -> tuple[pa.BinaryArray, pa.BinaryArray]:
        key, value = self._codecs
        return key.encode(keys), value.encode(values)

    def encode_keys(self, keys: pa.Array) -> pa.BinaryArray:
        key, _ = self._codecs
        return key.encode(keys)

    def fitted(self, keys: pa.Array, values: pa.Array) -> tuple[pa.StructArray, pa.StructArray]:
        """Return the same columns with exactly the types of this collection; raise if they do not fit."""
        key, value = self._codecs
        return fit(keys, key.type, "key"), fit(values, value.type, "value")

    @property
    def _codecs(self) -> tuple[Any, Any]:
        return codec_for(self.collection.key_type.DESCRIPTOR), codec_for(self.collection.value_type.DESCRIPTOR)


def undeclared_in(
    collection: Collection, keys: pa.BinaryArray, columns: tuple[pa.StructArray, pa.StructArray]
) -> UndeclaredValues:
    """Return the enum values that the types of a collection do not declare, in the decoded columns of rows."""
    found = UndeclaredValues()
    for side, kind, column in zip(("key", "value"), (collection.key_type, collection.value_type), columns, strict=True):
        found.add(side, descriptor_of(kind), column, keys)
    return found


def row_types(project: Project, version: int) -> Mapping[str, RowType]:
    """Return the row types of a version, before protobuf too."""
    if version >= project.first_proto:
        return registry_of(project, version).by_name
    module = project.migration_from(version, project.build)
    legacy: Any = getattr(module, "legacy", None)
    if legacy is None:
        raise TypeError(f"the migration from version {version} names no module `legacy` for the rows it reads")
    return {
        name: LegacyRows(name, collection.key, collection.value, legacy)
        for name, collection in legacy.COLLECTIONS.items()
    }


def registry_of(project: Project, version: int) -> Registry:
    return _registry(project.name, version)


@cache
def _registry(project: str, version: int) -> Registry:
    return Registry.of(load_project(project).types(version))
