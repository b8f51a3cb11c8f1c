"""The constraints that a project declares in `constraints.py`, read from its syntax tree.

Only declarations of literals are read; the module is never run. One that is computed is told.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .syntax_tree import called_name, read_module

_TARGETS = {"Unique": "paths", "Reference": "path"}


@dataclass(frozen=True, slots=True)
class DeclaredConstraint:
    collection: str
    paths: tuple[str, ...]
    target: str | None
    """The collection that a reference leads to; None for a unique constraint."""
    since: int
    line: int

    def __str__(self) -> str:
        kind = "Unique" if self.target is None else "Reference"
        return f'{kind}("{self.collection}", …)'


@dataclass(frozen=True, slots=True)
class DeclaredConstraints:
    all: tuple[DeclaredConstraint, ...] = ()
    texts: tuple[int, ...] = ()
    """The lines of unique constraints whose paths are one text, and no tuple of texts."""
    computed: tuple[tuple[str, int], ...] = ()
    """The kinds and lines of constraints that are not written as literals."""


def read_constraints(source: bytes) -> DeclaredConstraints:
    found, texts, computed = [], [], []
    nodes = list(ast.walk(read_module(source)))
    names_of = _local_names(nodes)
    for node in nodes:
        kind = names_of.get(called_name(node), "") if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Call) or not kind:
            continue
        names = ("collection", _TARGETS[kind], *(("target",) if kind == "Reference" else ()), "since")
        given = dict(zip(names, map(_literal, node.args), strict=False))
        given |= {keyword.arg: _literal(keyword.value) for keyword in node.keywords if keyword.arg is not None}
        match given.get("collection"), given.get(names[1]), given.get("target"), given.get("since", 0):
            case str(collection), tuple(paths), None, int(since) if kind == "Unique":
                if all(isinstance(path, str) for path in paths):
                    found.append(DeclaredConstraint(collection, paths, None, since, node.lineno))
                else:
                    computed.append((kind, node.lineno))
            case str(), str(), None, int() if kind == "Unique":
                texts.append(node.lineno)
            case str(collection), str(path), str(target), int(since):
                found.append(DeclaredConstraint(collection, (path,), target, since, node.lineno))
            case _:
                computed.append((kind, node.lineno))
    return DeclaredConstraints(tuple(found), tuple(texts), tuple(computed))


def _local_names(nodes: list[ast.AST]) -> dict[str, str]:
    """Return the kinds of constraints by the names that the module gives them."""
    aliases = (alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)
    own = {alias.asname or alias.name: alias.name for alias in aliases if alias.name in _TARGETS}
    return {kind: kind for kind in _TARGETS} | own


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
