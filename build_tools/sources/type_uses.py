"""The uses of a project's current types in one of its modules, read from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .syntax_tree import read_module

Literal = int | str


@dataclass(frozen=True, slots=True)
class Construction:
    """A call of a message's type."""

    type: str
    keywords: tuple[tuple[str, Literal | None], ...]
    """The fields that are given, each with its literal if it is one."""
    line: int


@dataclass(frozen=True, slots=True)
class TypeUses:
    imported: tuple[tuple[str, int], ...] = ()
    made: tuple[Construction, ...] = ()
    type_members: tuple[tuple[str, str, int], ...] = ()
    """Members of types, such as `ItemKind.ITEM_KIND_TABLE`: type, member, line."""
    message_members: tuple[tuple[str, str, int], ...] = ()
    """Members of messages that are held by a variable: type, member, line."""
    rows: tuple[tuple[str, str, int], ...] = ()
    """Rows that are written with a new key and a new value: their types, and the line."""


def read_type_uses(source: bytes, project: str) -> TypeUses:
    """Return how a module uses `<project>.objects`."""
    module = read_module(source)
    nodes = list(ast.walk(module))
    names = _Names(project)
    for node in nodes:
        names.add_import(node)
    names.add_variables(nodes)
    return TypeUses(
        tuple(names.imported),
        tuple(_made(names, nodes)),
        tuple(_members(names.type_of, nodes)),
        tuple(_members(names.variable_of, nodes)),
        tuple(_rows(names, nodes)),
    )


_WRITES = {"insert", "update", "upsert"}


@dataclass(slots=True)
class _Names:
    """The names of a module that stand for types, and for messages of a type."""

    project: str
    imported: list[tuple[str, int]] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    variables: dict[str, set[str | None]] = field(default_factory=dict)
    """By name: the type of each message that it is ever bound to; None for anything else."""

    def add_import(self, node: ast.AST) -> None:
        objects = f"{self.project}.objects"
        match node:
            case ast.ImportFrom(module=origin, level=level, names=names):
                for alias in names:
                    local = alias.asname or alias.name
                    if (origin == objects and level == 0) or (origin == "objects" and level == 1):
                        if alias.name != "*":
                            self.imported.append((alias.name, node.lineno))
                            self.types[local] = alias.name
                    elif alias.name == "objects" and (origin, level) in {(self.project, 0), (None, 1)}:
                        self.modules.add(local)
            case ast.Import(names=names):
                self.modules |= {alias.asname for alias in names if alias.name == objects and alias.asname is not None}
            case _:
                pass

    def add_variables(self, nodes: list[ast.AST]) -> None:
        plain: set[int] = set()
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                    plain.add(id(target))
                    made = self.type_of(value.func) if isinstance(value, ast.Call) else None
                    self.variables.setdefault(name, set()).add(made)
                case _:
                    pass
        for node in nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Store()) if id(node) not in plain:
                    self.variables.setdefault(name, set()).add(None)
                case ast.arg(arg=name):
                    self.variables.setdefault(name, set()).add(None)
                case _:
                    pass

    def type_of(self, node: ast.expr) -> str | None:
        """Return the name of the type that an expression stands for, with those of the types around it."""
        match node:
            case ast.Name(id=name):
                return self.types.get(name)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in self.modules:
                return name
            case ast.Attribute(value=outer, attr=name):
                holder = self.type_of(outer)
                return None if holder is None else f"{holder}.{name}"
            case _:
                return None

    def variable_of(self, node: ast.expr) -> str | None:
        """Return the type of the messages that a variable holds, if it never holds anything else."""
        if isinstance(node, ast.Name) and len(found := self.variables.get(node.id, set())) == 1:
            return next(iter(found))
        return None


def _made(names: _Names, nodes: list[ast.AST]) -> Iterator[Construction]:
    for node in nodes:
        if isinstance(node, ast.Call) and (found := names.type_of(node.func)) is not None:
            given = ((keyword.arg, _literal(keyword.value)) for keyword in node.keywords)
            keywords = tuple((name, literal) for name, literal in given if name is not None)
            yield Construction(found, keywords, node.lineno)


def _members(type_of: Callable[[ast.expr], str | None], nodes: list[ast.AST]) -> Iterator[tuple[str, str, int]]:
    for node in nodes:
        if isinstance(node, ast.Attribute) and (found := type_of(node.value)) is not None:
            yield found, node.attr, node.lineno


def _rows(names: _Names, nodes: list[ast.AST]) -> Iterator[tuple[str, str, int]]:
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=verb), args=[key, value]) if verb in _WRITES:
                found = tuple(
                    names.type_of(part.func) if isinstance(part, ast.Call) else names.variable_of(part)
                    for part in (key, value)
                )
                if found[0] is not None and found[1] is not None:
                    yield found[0], found[1], node.lineno


def _literal(node: ast.expr) -> Literal | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | str) and not isinstance(node.value, bool):
        return node.value
    return None
