"""The rules by which a schema may follow another, and the migration of old rows that they lead to.

A struct may make a field nullable, delete one, or add one that is nullable and was never used before; so may every
struct inside it, in lists and in the values of maps. Items of lists and values of maps may become nullable too. All
else is refused, by the path of the field and the rule that it breaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import pyarrow as pa
from pyarrow import types

from catalog.engine.shard.array_migration import ArrayMigration

_DELETED = {b"deleted": b"yes"}


class EvolutionRule(StrEnum):
    REORDERED = "fields keep their order"
    RECREATED = "a deleted field is never used again"
    RETYPED = "a field keeps its type"
    ADDED_NOT_NULLABLE = "a new field is nullable"
    MADE_NOT_NULLABLE = "a nullable field stays nullable"


@dataclass(frozen=True, slots=True)
class Incompatible:
    """The reason why a schema cannot follow another."""

    path: tuple[str, ...]
    rule: EvolutionRule
    found: str

    @property
    def field(self) -> str:
        return ".".join(self.path)

    @property
    def why(self) -> str:
        return f"{self.field}: {self.rule}, {self.found}"


@dataclass(frozen=True, slots=True, eq=False)
class TrackedSchema:
    """A schema that remembers the fields which were deleted on the way to it; they stand last in their struct."""

    schema: pa.Schema
    """As Arrow's, with a mark on each deleted field."""

    @property
    def current(self) -> pa.Schema:
        return pa.schema(_live(list(self.schema)))

    def evolved(self, new: pa.Schema) -> TrackedSchema | Incompatible:
        """Return the tracked schema after `new` has followed."""
        try:
            return TrackedSchema(pa.schema(_Walk().struct(list(self.schema), list(new), ())))
        except _RefusedError as refused:
            return refused.reason


def backward_compatible(old: TrackedSchema | pa.Schema, new: pa.Schema) -> ArrayMigration | Incompatible:
    """Return how to bring rows of an old schema to a new one, or why that must not be.

    Deleted fields are known only if `old` is the type that tracks them.
    """
    known = old if isinstance(old, TrackedSchema) else TrackedSchema(old)
    walk = _Walk()
    try:
        walk.struct(list(known.schema), list(new), ())
    except _RefusedError as refused:
        return refused.reason
    return ArrayMigration(known.current, new, preserves_order=walk.preserves_order)


class _RefusedError(Exception):
    def __init__(self, path: tuple[str, ...], rule: EvolutionRule, found: str) -> None:
        super().__init__(rule)
        self.reason = Incompatible(path, rule, found)


class _Walk:
    """A walk through two schemas at once, in the order in which rows are compared.

    Rows stay in order as long as nothing is kept after something was deleted: then they are compared by fewer fields,
    and by the same ones first. An item of a list is followed by the next, so nothing may be deleted inside one.
    """

    def __init__(self) -> None:
        self.preserves_order = True
        self._deleted = False

    def struct(self, old: Sequence[pa.Field], new: Sequence[pa.Field], path: tuple[str, ...]) -> list[pa.Field]:
        """Return the fields of the new struct, and after them the deleted ones, marked as such."""
        live = {field.name: field for field in old if not _is_deleted(field)}
        _check_fields(old, new, path)
        wanted = {field.name: field for field in new}
        merged: dict[str, pa.Field] = {}
        for name, field in live.items():
            if name not in wanted:
                self._deleted = True
                continue
            if self._deleted:
                self.preserves_order = False
            merged[name] = wanted[name].with_type(self._type(field.type, wanted[name].type, (*path, name)))
        fields = [merged.get(field.name, field) for field in new]
        return fields + [_marked(field) for field in old if field.name not in wanted]

    def _type(self, old: pa.DataType, new: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
        if types.is_struct(old) and types.is_struct(new):
            return pa.struct(self.struct(list(old), list(new), path))
        if types.is_list(old) and types.is_list(new):
            return pa.list_(self._child(old.value_field, new.value_field, (*path, "item")))
        if types.is_map(old) and types.is_map(new):
            if old.key_type != new.key_type:
                raise _RefusedError((*path, "key"), EvolutionRule.RETYPED, f"from {old.key_type} to {new.key_type}")
            return pa.map_(old.key_type, self._child(old.item_field, new.item_field, (*path, "value")))
        if old != new:
            raise _RefusedError(path, EvolutionRule.RETYPED, f"from {old} to {new}")
        return old

    def _child(self, old: pa.Field, new: pa.Field, path: tuple[str, ...]) -> pa.Field:
        _check_nullable(old, new, path)
        before, self._deleted = self._deleted, False
        type_ = self._type(old.type, new.type, path)
        if self._deleted:
            self.preserves_order = False
        self._deleted = self._deleted or before
        return new.with_type(type_)


def _check_fields(old: Sequence[pa.Field], new: Sequence[pa.Field], path: tuple[str, ...]) -> None:
    before = {field.name: field for field in old}
    for field in new:
        own = (*path, field.name)
        found = before.get(field.name)
        if found is None:
            if not field.nullable:
                raise _RefusedError(own, EvolutionRule.ADDED_NOT_NULLABLE, "and old rows have no value for it")
        elif _is_deleted(found):
            raise _RefusedError(own, EvolutionRule.RECREATED, "and an earlier schema of the shard had it")
        else:
            _check_nullable(found, field, own)
    names = {field.name for field in new}
    expected = [field.name for field in old if field.name in names]
    kept = [field.name for field in new if field.name in before]
    for wanted, found_name in zip(expected, kept, strict=True):
        if wanted != found_name:
            raise _RefusedError((*path, found_name), EvolutionRule.REORDERED, "and it was further back")


def _check_nullable(old: pa.Field, new: pa.Field, path: tuple[str, ...]) -> None:
    if old.nullable and not new.nullable:
        raise _RefusedError(path, EvolutionRule.MADE_NOT_NULLABLE, "and there may be nulls in it")


def renamed(reason: Incompatible, name: str | None) -> Incompatible:
    """Return the same reason about a column by its name for users."""
    return reason if name is None else replace(reason, path=(name, *reason.path[1:]))


def _is_deleted(field: pa.Field) -> bool:
    return bool(field.metadata) and b"deleted" in field.metadata


def _marked(field: pa.Field) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), **_DELETED})


def _live(fields: Sequence[pa.Field]) -> list[pa.Field]:
    return [field.with_type(_live_type(field.type)) for field in fields if not _is_deleted(field)]


def _live_type(type_: pa.DataType) -> pa.DataType:
    if types.is_struct(type_):
        return pa.struct(_live(list(type_)))
    if types.is_list(type_):
        return pa.list_(_live([type_.value_field])[0])
    if types.is_map(type_):
        return pa.map_(type_.key_type, _live([type_.item_field])[0])
    return type_
