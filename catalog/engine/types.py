"""The types that rows have at a version, on the driver and on every executor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import pyarrow as pa

from catalog.codec import codec_for, fit
from catalog.project import Project, load_project
from catalog.stash.collections import Collection, Registry

ENGINE_COLLECTIONS = frozenset({"config", "fence_token", "migration_event"})


class RowType(Protocol):
    """How the rows of one collection are read at one version."""

    @property
    def name(self) -> str: ...

    def decode(self, key: bytes, value: bytes) -> tuple[Any, Any]:
        """A row as two objects; raises if the bytes are none."""


@dataclass(frozen=True, slots=True)
class LegacyRows:
    """Rows of before protobuf. Their own module reads them, and refuses bytes that it would not have written."""

    name: str
    key_type: type
    value_type: type
    module: Any

    def decode(self, key: bytes, value: bytes) -> tuple[Any, Any]:
        return self.module.decode(self.key_type, key), self.module.decode(self.value_type, value)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a collection's rows, encoded and decoded."""

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
        """Columns of exactly the types of this collection, saying the same; refuses what does not fit."""
        key, value = self._codecs
        return fit(keys, key.type, "key"), fit(values, value.type, "value")

    @property
    def _codecs(self) -> tuple[Any, Any]:
        return codec_for(self.collection.key_type.DESCRIPTOR), codec_for(self.collection.value_type.DESCRIPTOR)


def row_types(project: Project, version: int) -> Mapping[str, RowType]:
    """The collections of a version, whatever its rows are."""
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
