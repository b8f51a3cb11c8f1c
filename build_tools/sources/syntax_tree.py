"""The syntax tree of a file of the project, and the names in it that several readers ask for."""

from __future__ import annotations

import ast
from functools import lru_cache


class SyntaxProblemError(Exception):
    """Source code that the gate cannot read."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(line, message)
        self.line = line
        self.message = message


def parse_module(source: bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 0) or 0
        raise SyntaxProblemError(line, f"it is not Python: {getattr(error, 'msg', error)}") from error


@lru_cache(maxsize=1024)
def read_module(source: bytes) -> ast.Module:
    """Return the syntax tree from a cache; callers that modify a tree use `parse_module`."""
    return parse_module(source)


def assignments(module: ast.Module) -> dict[str, tuple[ast.expr, int]]:
    """Return the values that a module assigns to names, with their lines."""
    found: dict[str, tuple[ast.expr, int]] = {}
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = (value, node.lineno)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = (value, node.lineno)
            case _:
                pass
    return found


def called_name(call: ast.Call) -> str:
    """Return the name of what is called, without the module or the object before it; empty if it has none."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
