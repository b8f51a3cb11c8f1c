"""The paths that a project declares in `privacy.py`, read from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .syntax_tree import assignments, called_name, read_module

_PATHS = {"private", "harmless", "ordered"}


@dataclass(frozen=True, slots=True)
class PrivacyPath:
    path: str
    """Such as `item.value.create_sql`."""
    line: int
    member: str | None = None
    """The member by which the elements of a list are in order; None for a text."""
    is_list: bool = False
    is_computed: bool = False
    """True of the name of an argument whose paths are not written as literals."""


def read_privacy(source: bytes) -> tuple[PrivacyPath, ...]:
    """Return the paths in every call of `Privacy`, and the arguments that are computed."""
    module = read_module(source)
    held = {name: value for name, (value, _) in assignments(module).items()}
    found: list[PrivacyPath] = []
    for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
        if called_name(call) == "Privacy":
            for keyword in call.keywords:
                value = held.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else keyword.value
                if keyword.arg in _PATHS:
                    if value is None or not all(map(_is_written, ast.walk(value))):
                        found.append(PrivacyPath(keyword.arg, keyword.value.lineno, is_computed=True))
                    else:
                        found += _paths(value)
    return tuple(found)


def _is_written(node: ast.AST) -> bool:
    """Tell if a node may be a part of a collection of literals, such as `frozenset({"item.value.name"})`."""
    if isinstance(node, ast.Name):
        return node.id in {"dict", "frozenset", "set", "tuple"}
    return isinstance(
        node, ast.Constant | ast.Set | ast.Tuple | ast.List | ast.Dict | ast.Starred | ast.Call | ast.Load
    )


def _paths(node: ast.expr) -> Iterator[PrivacyPath]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            match key, value:
                case ast.Constant(value=str(path)), ast.Constant(value=str(member)):
                    yield PrivacyPath(path, value.lineno, member, is_list=True)
                case _:
                    pass
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield PrivacyPath(part.value, part.lineno)
