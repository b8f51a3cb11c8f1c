"""The declarations of a build: its builtins, the schema of each, and the instructions that turn old data into new data.

Plain data, checked when it is made. Which builtins there are is a project's business.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from catalog.engine.base.lazy_arrow import pa
from catalog.engine.base.project import BuildVersion
from catalog.engine.shard.row_table import Row
from catalog.engine.shard.schema import Schema
from catalog.errors import UnfitBuiltinsError


@dataclass(frozen=True, slots=True, order=True)
class BuiltinName:
    """The name of a builtin in every build: the key of its row in `builtin_mapping`."""

    schema_name: str
    object_type: int
    """A value of the project's enum `ObjectType`."""
    object_name: str

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.object_name}"


@dataclass(frozen=True, slots=True)
class Builtin:
    name: BuiltinName
    schema: Schema

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.schema)


class Mechanism(StrEnum):
    EVOLUTION = "evolution"
    """Data stay, and are read with the new schema."""
    REPLACEMENT = "replacement"
    """A new shard replaces the old one; its data are dropped."""


@dataclass(frozen=True, slots=True)
class Instruction:
    build: BuildVersion
    """The first build that has the new schema."""
    name: BuiltinName
    mechanism: Mechanism


Derive = Callable[[Any, Any], Iterable[Row]]
"""Returns the rows of a builtin, by column, for a key and a value."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """The derivation of the rows of a builtin from the rows of collections, each by itself."""

    sources: Mapping[str, Derive]


@dataclass(frozen=True, slots=True)
class Declaration:
    """The builtins of one build, and how those of earlier builds are migrated."""

    build: BuildVersion
    builtins: tuple[Builtin, ...]
    instructions: tuple[Instruction, ...] = ()
    """The instructions of every build so far. A REPLACEMENT of a builtin that is no longer declared drops it."""
    derivations: Mapping[BuiltinName, Derivation] = field(default_factory=dict)
    """The derivations of the builtins whose rows follow from those of the stash."""
    measures: BuiltinName | None = None
    """The builtin that records the sizes of collections over time, with the schema of `store_metrics.py`."""

    def __post_init__(self) -> None:
        for builtin, count in Counter(builtin.name for builtin in self.builtins).items():
            if count > 1:
                raise UnfitBuiltinsError(str(builtin), "it is declared twice")
        for (build, name), count in Counter((one.build, one.name) for one in self.instructions).items():
            if count > 1:
                raise UnfitBuiltinsError(str(name), f"it has two instructions for build {build}")
            if build > self.build:
                raise UnfitBuiltinsError(str(name), f"it has an instruction for {build}, and this is {self.build}")
        present = {builtin.name for builtin in self.builtins}
        for name in {*self.derivations, *([self.measures] if self.measures else [])} - present:
            raise UnfitBuiltinsError(str(name), "it is to be written, and is not declared")
        last = {one.name: one.mechanism for one in sorted(self.instructions, key=lambda one: one.build)}
        for name, mechanism in last.items():
            if name not in present and mechanism is not Mechanism.REPLACEMENT:
                raise UnfitBuiltinsError(str(name), "it is no longer there, and its last instruction is no REPLACEMENT")

    def lacks(self, earlier: Declaration) -> tuple[Instruction, ...]:
        """Return the instructions of an earlier build that this one lacks: its stores cannot be migrated safely."""
        return tuple(one for one in earlier.instructions if one not in self.instructions)

    def fingerprints(self) -> Mapping[str, str]:
        """Return the fingerprint of every builtin, by its full name."""
        return {str(builtin.name): builtin.fingerprint for builtin in self.builtins}


def fingerprint(schema: Schema) -> str:
    """Hash the columns of a schema, independent of the version of Arrow: ids, names, types, nullability and order."""
    columns = [[column.id, column.name, _type(column.declared_type), column.nullable] for column in schema.columns]
    return hashlib.sha256(json.dumps(columns, separators=(",", ":")).encode()).hexdigest()[:32]


_Description = str | list["_Description | bool"]


def _type(type_: str | pa.DataType) -> _Description:
    if isinstance(type_, str):
        return type_
    types = pa.types
    if types.is_struct(type_):
        return ["struct", *(_field(field) for field in type_)]
    if types.is_list(type_):
        return ["list", _field(type_.value_field)]
    if types.is_map(type_):
        return ["map", _type(type_.key_type), _field(type_.item_field)]
    return str(type_)


def _field(field: pa.Field) -> _Description:
    return [field.name, _type(field.type), field.nullable]
