"""The rules by which a schema may follow another, and what they make of old rows.

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

from catalog.shard.migration import KEPT, Fill, InList, InMap, InStruct, Migration, Node, Take

_DELETED = {b"deleted": b"yes"}


class Rule(StrEnum):
    REORDERED = "fields keep their order"
    RECREATED = "a deleted field is never used again"
    RETYPED = "a field keeps its type"
    ADDED_NOT_NULLABLE = "a new field is nullable"
    MADE_NOT_NULLABLE = "a nullable field stays nullable"


@dataclass(frozen=True, slots=True)
class Incompatible:
    """Why a schema cannot follow."""

    path: tuple[str, ...]
    rule: Rule
    found: str

    @property
    def field(self) -> str:
        return ".".join(self.path)

    @property
    def why(self) -> str:
        return f"{self.field}: {self.rule}, {self.found}"


@dataclass(frozen=True, slots=True, eq=False)
class MigrationType:
    """A schema that remembers the fields which were deleted on the way to it; they stand last in their struct."""

    schema: pa.Schema
    """As Arrow's, with a mark on each deleted field."""

    @classmethod
    def of(cls, current: pa.Schema) -> MigrationType:
        return cls(current)

    @property
    def current(self) -> pa.Schema:
        return pa.schema(_live(list(self.schema)))

    def evolved(self, new: pa.Schema) -> MigrationType | Incompatible:
        """The same after `new` has followed."""
        walk = _Walk()
        try:
            _, fields = walk.struct(list(self.schema), list(new), ())
        except _RefusedError as refused:
            return refused.reason
        return MigrationType(pa.schema(fields))

    def to_bytes(self) -> bytes:
        return bytes(self.schema.serialize())

    @classmethod
    def from_bytes(cls, content: bytes) -> MigrationType:
        return cls(pa.ipc.read_schema(pa.py_buffer(content)))


def backward_compatible(old: MigrationType | pa.Schema, new: pa.Schema) -> Migration | Incompatible:
    """How to bring rows of an old schema to a new one, or why that must not be.

    Deleted fields are known only if `old` is the type that tracks them.
    """
    known = old if isinstance(old, MigrationType) else MigrationType.of(old)
    walk = _Walk()
    try:
        node, _ = walk.struct(list(known.schema), list(new), ())
    except _RefusedError as refused:
        return refused.reason
    return Migration(node, new, preserves_order=walk.preserves_order)


class _RefusedError(Exception):
    def __init__(self, path: tuple[str, ...], rule: Rule, found: str) -> None:
        super().__init__(rule)
        self.reason = Incompatible(path, rule, found)


class _Walk:
    """Goes through two schemas at once, in the order in which rows are compared.

    Rows stay in order as long as nothing is kept after something was deleted: then they are compared by fewer fields,
    and by the same ones first. An item of a list is followed by the next, so nothing may be deleted inside one.
    """

    def __init__(self) -> None:
        self.preserves_order = True
        self._deleted = False

    def struct(
        self, old: Sequence[pa.Field], new: Sequence[pa.Field], path: tuple[str, ...]
    ) -> tuple[Node, list[pa.Field]]:
        """The way from one to the other, and the fields of both, those that are deleted by then marked so."""
        live = {field.name: field for field in old if not _is_deleted(field)}
        _check_fields(old, new, path)
        wanted = {field.name: field for field in new}
        nodes: dict[str, Node] = {}
        merged: dict[str, pa.Field] = {}
        for name, field in live.items():
            if name not in wanted:
                self._deleted = True
                continue
            if self._deleted:
                self.preserves_order = False
            nodes[name], type_ = self.type(field.type, wanted[name].type, (*path, name))
            merged[name] = wanted[name].with_type(type_)
        fields = [merged.get(field.name, field) for field in new]
        fields += [_marked(field) for field in old if field.name not in wanted]
        positions = {name: position for position, name in enumerate(live)}
        steps = tuple(
            Take(positions[field.name], nodes[field.name]) if field.name in live else Fill(field.type) for field in new
        )
        same = [field.name for field in new] == list(live) and all(
            nodes[name] is KEPT and live[name].nullable == wanted[name].nullable for name in live
        )
        return (KEPT if same else InStruct(steps, pa.struct(list(new)))), fields

    def type(self, old: pa.DataType, new: pa.DataType, path: tuple[str, ...]) -> tuple[Node, pa.DataType]:
        if types.is_struct(old) and types.is_struct(new):
            node, fields = self.struct(list(old), list(new), path)
            return node, pa.struct(fields)
        if types.is_list(old) and types.is_list(new):
            node, item = self._child(old.value_field, new.value_field, (*path, "item"))
            same = node is KEPT and item.nullable == old.value_field.nullable
            return (KEPT if same else InList(node, new)), pa.list_(item)
        if types.is_map(old) and types.is_map(new):
            if old.key_type != new.key_type:
                raise _RefusedError((*path, "key"), Rule.RETYPED, f"from {old.key_type} to {new.key_type}")
            node, item = self._child(old.item_field, new.item_field, (*path, "value"))
            same = node is KEPT and item.nullable == old.item_field.nullable
            return (KEPT if same else InMap(node, new)), pa.map_(old.key_type, item)
        if old != new:
            raise _RefusedError(path, Rule.RETYPED, f"from {old} to {new}")
        return KEPT, old

    def _child(self, old: pa.Field, new: pa.Field, path: tuple[str, ...]) -> tuple[Node, pa.Field]:
        _check_nullable(old, new, path)
        before, self._deleted = self._deleted, False
        node, type_ = self.type(old.type, new.type, path)
        if self._deleted:
            self.preserves_order = False
        self._deleted = self._deleted or before
        return node, new.with_type(type_)


def _check_fields(old: Sequence[pa.Field], new: Sequence[pa.Field], path: tuple[str, ...]) -> None:
    before = {field.name: field for field in old}
    for field in new:
        own = (*path, field.name)
        found = before.get(field.name)
        if found is None:
            if not field.nullable:
                raise _RefusedError(own, Rule.ADDED_NOT_NULLABLE, "and old rows have no value for it")
        elif _is_deleted(found):
            raise _RefusedError(own, Rule.RECREATED, "and an earlier schema of the shard had it")
        else:
            _check_nullable(found, field, own)
    names = {field.name for field in new}
    expected = [field.name for field in old if field.name in names]
    kept = [field.name for field in new if field.name in before]
    for wanted, found_name in zip(expected, kept, strict=True):
        if wanted != found_name:
            raise _RefusedError((*path, found_name), Rule.REORDERED, "and it was further back")


def _check_nullable(old: pa.Field, new: pa.Field, path: tuple[str, ...]) -> None:
    if old.nullable and not new.nullable:
        raise _RefusedError(path, Rule.MADE_NOT_NULLABLE, "and there may be nulls in it")


def renamed(reason: Incompatible, name: str | None) -> Incompatible:
    """The same about a column that people know by another name."""
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
