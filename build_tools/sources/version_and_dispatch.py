"""The content of `version.py` and `upgrade.py`, read from their syntax trees.

Never imports them: the gate must work when they are broken, and must not run a project's code.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..project_tree import MIGRATION_NAME
from .syntax_tree import SyntaxProblemError, assignments, is_docstring, read_module

DISPATCH = "migration_from"


@dataclass(frozen=True, slots=True)
class Versions:
    """The numbers in `version.py`, and their lines."""

    minimum: int
    first_proto: int
    current: int
    literal: tuple[int, ...]
    current_line: int
    literal_line: int

    @property
    def snapshots(self) -> range:
        return range(max(self.minimum, self.first_proto), self.current + 1)

    @property
    def steps(self) -> range:
        """Return the versions that a migration starts from."""
        return range(self.minimum, self.current)


@dataclass(frozen=True, slots=True)
class DispatchArm:
    version: int
    guarded: bool
    target: str | None
    """The migration that the arm returns; None in the arm of the current version."""
    package: str | None
    """The package that it is imported from."""
    line: int
    end_line: int
    readable: bool


@dataclass(frozen=True, slots=True)
class Dispatch:
    arms: tuple[DispatchArm, ...]
    ends_in_assert_never: bool
    line: int
    end_line: int
    early_imports: tuple[int, ...]
    """Lines at module level that import a migration."""


def read_versions(source: bytes) -> Versions:
    assigned = assignments(read_module(source))
    numbers = {}
    for name in ("MIN_STASH_VERSION", "FIRST_PROTO_VERSION", "STASH_VERSION"):
        if name not in assigned:
            raise SyntaxProblemError(0, f"{name} is not set")
        value, line = assigned[name]
        if not (isinstance(value, ast.Constant) and type(value.value) is int):
            raise SyntaxProblemError(line, f"{name} is not a plain number")
        numbers[name] = (value.value, line)
    if "StashVersion" not in assigned:
        raise SyntaxProblemError(0, "StashVersion is not set")
    literal, literal_line = assigned["StashVersion"]
    minimum, (current, current_line) = numbers["MIN_STASH_VERSION"][0], numbers["STASH_VERSION"]
    if minimum > current:
        raise SyntaxProblemError(current_line, f"MIN_STASH_VERSION {minimum} is above STASH_VERSION {current}")
    return Versions(
        minimum,
        numbers["FIRST_PROTO_VERSION"][0],
        current,
        _literal_numbers(literal, literal_line),
        current_line,
        literal_line,
    )


def read_build(source: bytes) -> str | None:
    """Return the version of the build; None if it is not a literal string."""
    value, _ = assignments(read_module(source)).get("BUILD", (None, 0))
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def read_dispatch(source: bytes) -> Dispatch:
    module = read_module(source)
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == DISPATCH]
    if len(functions) != 1:
        raise SyntaxProblemError(0, f"there is not exactly one function {DISPATCH}(version, build)")
    function = functions[0]
    body = [node for node in function.body if not is_docstring(node)]
    if len(body) != 1 or not isinstance(body[0], ast.Match):
        raise SyntaxProblemError(function.lineno, f"{DISPATCH} is not one `match` over the version")
    match = body[0]
    parameters = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
    if not (isinstance(match.subject, ast.Name) and [match.subject.id] == parameters[:1]):
        raise SyntaxProblemError(match.lineno, f"{DISPATCH} does not match over its first argument")
    *cases, last = match.cases
    ends = _asserts_never(last)
    arms = tuple(_arm(case) for case in (cases if ends else match.cases))
    imports = (node for top in module.body if top is not function for node in ast.walk(top))
    early = tuple(n.lineno for n in imports if isinstance(n, ast.Import | ast.ImportFrom) and _names_migration(n))
    return Dispatch(arms, ends, match.lineno, match.end_lineno or match.lineno, early)


def _literal_numbers(node: ast.expr, line: int) -> tuple[int, ...]:
    match node:
        case ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Tuple(elts=elements)):
            pass
        case ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Constant() as element):
            elements = [element]
        case _:
            raise SyntaxProblemError(line, "StashVersion is not a Literal of numbers")
    numbers = [e.value for e in elements if isinstance(e, ast.Constant) and type(e.value) is int]
    if len(numbers) != len(elements):
        raise SyntaxProblemError(line, "StashVersion is not a Literal of numbers")
    return tuple(numbers)


def _arm(case: ast.match_case) -> DispatchArm:
    end = case.body[-1].end_lineno or case.body[-1].lineno
    match case.pattern:
        case ast.MatchValue(value=ast.Constant(value=int(version))):
            pass
        case _:
            raise SyntaxProblemError(case.pattern.lineno, "a case is not one literal version")
    target, package, readable = _target(case.body)
    return DispatchArm(version, case.guard is not None, target, package, case.pattern.lineno, end, readable)


def _target(body: list[ast.stmt]) -> tuple[str | None, str | None, bool]:
    """Return the migration that an arm imports and returns, its package, and whether the arm does nothing else."""
    match [node for node in body if not is_docstring(node)]:
        case [ast.Return(value=ast.Constant(value=None))]:
            return None, None, True
        case [
            ast.ImportFrom(module=package, names=[ast.alias(name=imported, asname=None)], level=0),
            ast.Return(value=ast.Name(id=returned)),
        ]:
            return returned, package, imported == returned
        case _:
            return None, None, False


def _asserts_never(case: ast.match_case) -> bool:
    match case:
        case ast.match_case(
            pattern=ast.MatchAs(pattern=None),
            guard=None,
            body=[ast.Expr(value=ast.Call(func=ast.Name(id="assert_never")))],
        ):
            return True
        case _:
            return False


def _names_migration(node: ast.Import | ast.ImportFrom) -> bool:
    package = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    paths = [f"{package}{alias.name}" for alias in node.names]
    return any(MIGRATION_NAME.fullmatch(part) for path in paths for part in path.split("."))
