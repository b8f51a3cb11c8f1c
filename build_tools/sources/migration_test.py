"""The test of a migration, read from its syntax tree: which of its functions are stubs, and which assert nothing.

An assertion counts if what it compares comes from the project: from an imported name, a fixture or a parameter, on
whatever way. `assert True` compares nothing with nothing, and `assert v22` says only that an import succeeded.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from functools import lru_cache

from .migration import Stub, find_stubs
from .syntax_tree import read_module

_ASSERTING = ("assert", "check", "expect", "verify", "require")
"""The beginnings of names of functions that assert by themselves."""


@dataclass(frozen=True, slots=True)
class MigrationTest:
    is_written: bool
    """True if it has a function that pytest runs."""
    stubs: tuple[Stub, ...]
    empty: tuple[Stub, ...]
    """Functions that pytest runs, and that assert nothing about the project."""


@lru_cache(maxsize=256)
def read_migration_test(source: bytes) -> MigrationTest:
    module = read_module(source)
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    tests = [function for function in functions if function.name.startswith("test")]
    given = _given_names(module)
    stubs, live = find_stubs(functions), _live_names(module, given)
    asserting: set[str] = set()
    while more := {
        own.name for own in functions if own.name not in asserting and _asserts(own, given, live, asserting)
    }:
        asserting |= more
    unwritten = {stub.line for stub in stubs}
    empty = (test for test in tests if test.name not in asserting and test.lineno not in unwritten)
    return MigrationTest(bool(tests), stubs, tuple(Stub(test.name, test.lineno) for test in empty))


def _asserts(function: ast.AST, given: set[str], live: set[str], asserting: set[str]) -> bool:
    """Tell if a function asserts something, by itself or by one that it calls."""
    for node in ast.walk(function):
        match node:
            case ast.Assert(test=test) if _names(test) & live and not _holds_anyway(test, given):
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name in asserting or name in {"raises", "fail"}:
                    return True
                if name.lstrip("_").startswith(_ASSERTING) and _names(node) & live:
                    return True
            case _:
                pass
    return False


def _holds_anyway(test: ast.expr, given: set[str]) -> bool:  # noqa: PLR0911 - one for each form
    """Tell if an assertion holds whatever a migration does: of what is only given, or of one thing and itself."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Name(id=name):
            return name in given
        case ast.Attribute(value=value):
            return _holds_anyway(value, given)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _holds_anyway(operand, given)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_holds_anyway(value, given) for value in values)
        case ast.BoolOp(values=values):
            return all(_holds_anyway(value, given) for value in values)
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return _holds_anyway(left, given)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            return ast.dump(left) == ast.dump(right)
        case ast.Call(func=ast.Name(id="isinstance" | "callable" | "hasattr" | "bool"), args=[first, *_]):
            return _holds_anyway(first, given)
        case _:
            return False


def _given_names(module: ast.Module) -> set[str]:
    """Return the names that imports of other code than Python's own, fixtures and parameters give."""
    given: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names):
                given |= {(alias.asname or alias.name).partition(".")[0] for alias in names if _is_own(alias.name)}
            case ast.ImportFrom(names=names) if node.level or _is_own(node.module or ""):
                given |= {alias.asname or alias.name for alias in names}
            case ast.arg(arg=name):
                given.add(name)
            case _:
                pass
    return given


def _live_names(module: ast.Module, given: set[str]) -> set[str]:
    """Return the names whose values come from given ones."""
    nodes = list(ast.walk(module))
    live = set(given)
    binding = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For | ast.withitem | ast.comprehension
    bindings = [(_names(node), _names(node, ast.Store)) for node in nodes if isinstance(node, binding)]
    bindings += [(_names(node), {node.name}) for node in nodes if isinstance(node, ast.FunctionDef)]
    while more := {name for used, bound in bindings if used & live for name in bound} - live:
        live |= more
    return live


def _names(node: ast.AST, use: type[ast.expr_context] = ast.Load) -> set[str]:
    """Return the names that are read, or set, somewhere in a node."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, use)}


def _is_own(module: str) -> bool:
    top = module.partition(".")[0]
    return top not in sys.stdlib_module_names and top != "pytest"
