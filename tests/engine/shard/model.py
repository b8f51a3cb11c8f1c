"""Schemas and rows as plain Python, written anew: what the rules say, without Arrow."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from catalog.engine.shard.schema import Column, Schema
from catalog.engine.shard.schema_rules import EvolutionRule

PLAIN = {"int": pa.int32(), "text": pa.string(), "flag": pa.bool_(), "real": pa.float64()}
VALUES: dict[str, list[Any]] = {
    "int": [0, 1, 2],
    "text": ["", "a", "b"],
    "flag": [False, True],
    "real": [0.0, 1.5, float("inf")],
}
"""So few that rows are often equal in part."""
Draw = st.DataObject


@dataclass
class Node:
    """A field, or the whole of a schema."""

    name: str
    kind: str
    nullable: bool
    fields: list[Node] = field(default_factory=list)
    """Of a struct; of a list or map, one."""
    deleted: list[str] = field(default_factory=list)
    title: str = ""
    """What people call a column."""

    @property
    def type(self) -> pa.DataType:
        match self.kind:
            case "struct":
                return pa.struct([pa.field(own.name, own.type, own.nullable) for own in self.fields])
            case "list":
                return pa.list_(pa.field("item", self.fields[0].type, self.fields[0].nullable))
            case "map":
                return pa.map_(pa.string(), pa.field("value", self.fields[0].type, self.fields[0].nullable))
            case plain:
                return PLAIN[plain]

    @property
    def schema(self) -> Schema:
        return Schema(tuple(Column(int(own.name), own.title, own.type, own.nullable) for own in self.fields))

    def structs(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
        """Every struct in it, by its path as people know it."""
        if self.kind == "struct":
            yield path, self
        for own in self.fields:
            yield from own.structs((*path, own.title or own.name))


class Author:
    """Draws schemas, changes of them, and rows; a name or id is given out once in all."""

    def __init__(self, data: Draw) -> None:
        self.data = data
        self.numbers = count()

    def first(self) -> Node:
        top = Node("", "struct", nullable=False)
        for _ in range(self._number(1, 3)):
            top.fields.append(self.new(top, depth=2))
        return top

    def new(self, parent: Node, *, depth: int, nullable: bool | None = None) -> Node:
        """A field that the parent never had; a column may take the name of one that was deleted."""
        own = self._node(str(next(self.numbers)), depth, nullable)
        if parent.name == "":
            taken = {other.title for other in parent.fields}
            own.title = self.data.draw(st.sampled_from([name for name in "abcdefghijkl" if name not in taken]))
        else:
            own.name = f"f{own.name}"
        return own

    def follow(self, old: Node) -> Node:
        """A schema that may come next."""
        new = copy.deepcopy(old)
        there = {own.name for _, struct in old.structs() for own in struct.fields}
        for _ in range(self._number(1, 3)):
            _, struct = self._any(list(new.structs()))
            match self._any(["relax", "delete", "add"]):
                case "relax" if struct.fields:
                    own = self._any(struct.fields)
                    while own.kind in {"list", "map"} and self._flag():
                        own = own.fields[0]
                    own.nullable = True
                case "delete" if own_there := [own for own in struct.fields if own.name in there]:
                    own = self._any(own_there)
                    struct.fields.remove(own)
                    struct.deleted.append(own.name)
                case _:
                    place = self._number(0, len(struct.fields))
                    struct.fields.insert(place, self.new(struct, depth=1, nullable=True))
        return new

    def break_rule(self, old: Node) -> tuple[Node, str, EvolutionRule] | None:
        """A schema that must not come next: which field breaks which rule; none if there is nothing to break there."""
        new = copy.deepcopy(old)
        path, struct = self._any(list(new.structs()))
        rule = self._any(list(EvolutionRule))
        own: Node | None = None
        match rule:
            case EvolutionRule.REORDERED if len(struct.fields) > 1:
                place = self._number(0, len(struct.fields) - 2)
                own = struct.fields.pop(place + 1)
                struct.fields.insert(place, own)
            case EvolutionRule.RECREATED if struct.deleted:
                own = self.new(struct, depth=1, nullable=True)
                own.name = self._any(struct.deleted)
                struct.fields.insert(self._number(0, len(struct.fields)), own)
            case EvolutionRule.RETYPED if struct.fields:
                own = self._any(struct.fields)
                own.kind = self._any([kind for kind in PLAIN if kind != own.kind])
                own.fields = []
            case EvolutionRule.ADDED_NOT_NULLABLE:
                own = self.new(struct, depth=1, nullable=False)
                struct.fields.insert(self._number(0, len(struct.fields)), own)
            case EvolutionRule.MADE_NOT_NULLABLE if any(one.nullable for one in struct.fields):
                own = self._any([one for one in struct.fields if one.nullable])
                own.nullable = False
            case _:
                pass
        return None if own is None else (new, ".".join((*path, own.title or own.name)), rule)

    def rows(self, schema: Node) -> list[dict[str, Any]]:
        return [self._struct(schema) for _ in range(self._number(1, 4))]

    def _value(self, own: Node) -> Any:  # noqa: ANN401 - whatever a field can hold
        if own.nullable and self._number(0, 3) == 0:
            return None
        match own.kind:
            case "struct":
                return self._struct(own)
            case "list":
                return [self._value(own.fields[0]) for _ in range(self._number(0, 2))]
            case "map":
                return [(key, self._value(own.fields[0])) for key in "xy"[: self._number(0, 2)]]
            case plain:
                return self._any(VALUES[plain])

    def _struct(self, struct: Node) -> dict[str, Any]:
        return {own.name: self._value(own) for own in struct.fields}

    def _node(self, name: str, depth: int, nullable: bool | None) -> Node:  # noqa: FBT001 - a fact, not a switch
        kind = self._any([*PLAIN, "struct", "list", "map"] if depth else list(PLAIN))
        own = Node(name, kind, self._flag() if nullable is None else nullable)
        if kind == "struct":
            own.fields = [self.new(own, depth=depth - 1) for _ in range(self._number(1, 3))]
        elif kind in {"list", "map"}:
            own.fields = [self._node("item" if kind == "list" else "value", depth - 1, None)]
        return own

    def _number(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def _flag(self) -> bool:
        return self.data.draw(st.booleans())

    def _any(self, choices: list[Any]) -> Any:  # noqa: ANN401 - one of them
        return self.data.draw(st.sampled_from(choices))


def converted(value: Any, own: Node) -> Any:  # noqa: ANN401 - a value of any earlier or later schema
    """The value in another schema: what that does not have is dropped, and what is missing is null."""
    if value is None:
        return None
    match own.kind:
        case "struct":
            return {one.name: converted(value.get(one.name), one) for one in own.fields}
        case "list":
            return [converted(item, own.fields[0]) for item in value]
        case "map":
            return [(key, converted(item, own.fields[0])) for key, item in value]
        case _:
            return value


def reachable(latest: Node, wanted: Node) -> bool:
    """Whether a reader of a schema of the sequence may read when that one is the latest."""
    if latest.nullable and not wanted.nullable:
        return False
    if wanted.kind != "struct":
        return all(reachable(one, other) for one, other in zip(latest.fields, wanted.fields, strict=True))
    there = {own.name: own for own in latest.fields}
    return all(own.name in there and reachable(there[own.name], own) for own in wanted.fields)


def frozen(value: Any) -> Any:  # noqa: ANN401 - of any kind
    """Something that can be counted."""
    match value:
        case dict():
            return tuple((name, frozen(own)) for name, own in value.items())
        case list() | tuple():
            return tuple(frozen(own) for own in value)
        case _:
            return repr(value)
