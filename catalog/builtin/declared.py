"""What a build declares: its builtins, the schema of each, and the instructions by which old data become new.

Plain data, checked when it is made. Which builtins there are is a project's business.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa
from pyarrow import types

from catalog.builtin.deriving import Derivation
from catalog.errors import UnfitBuiltinsError
from catalog.project import Build
from catalog.shard.schema import Schema


@dataclass(frozen=True, slots=True, order=True)
class BuiltinName:
    """What a builtin is known by in every build: the key of its row in `builtin_mapping`."""

    schema_name: str
    object_type: int
    """Of the project's enum `ObjectType`."""
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
    """A new shard takes the place of the old; data are given up."""


@dataclass(frozen=True, slots=True)
class Instruction:
    build: Build
    """The first that has the new schema."""
    name: BuiltinName
    mechanism: Mechanism


@dataclass(frozen=True, slots=True)
class Declared:
    """All that one build says of its builtins."""

    build: Build
    builtins: tuple[Builtin, ...]
    instructions: tuple[Instruction, ...] = ()
    """Of every build so far. A REPLACEMENT of what is no longer declared gives it up."""
    derivations: Mapping[BuiltinName, Derivation] = field(default_factory=dict)
    """Of the builtins whose rows follow from those of the stash."""
    measures: BuiltinName | None = None
    """The builtin that keeps how large collections are over time, of the schema in `measures.py`."""

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

    def lacks(self, earlier: Declared) -> tuple[Instruction, ...]:
        """Instructions of an earlier build that this one does not have: nobody can come here from there in safety."""
        return tuple(one for one in earlier.instructions if one not in self.instructions)

    def fingerprints(self) -> Mapping[str, str]:
        """Of every builtin, by its name as people know it."""
        return {str(builtin.name): builtin.fingerprint for builtin in self.builtins}


def fingerprint(schema: Schema) -> str:
    """The same for the same columns, whatever the version of Arrow: ids, names, types, nullability and order."""
    columns = [[column.id, column.name, _type(column.type), column.nullable] for column in schema.columns]
    return hashlib.sha256(json.dumps(columns, separators=(",", ":")).encode()).hexdigest()[:32]


_Description = str | list["_Description | bool"]


def _type(type_: pa.DataType) -> _Description:
    if types.is_struct(type_):
        return ["struct", *(_field(field) for field in type_)]
    if types.is_list(type_):
        return ["list", _field(type_.value_field)]
    if types.is_map(type_):
        return ["map", _type(type_.key_type), _field(type_.item_field)]
    return str(type_)


def _field(field: pa.Field) -> _Description:
    return [field.name, _type(field.type), field.nullable]
