"""The instructions of a project's `builtins.py`, read from its syntax tree.

To the gate an instruction is data: a build, the name of a builtin, and a mechanism. The module is never run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from .syntax_tree import SyntaxProblemError, assignments, is_docstring, read_module

INSTRUCTIONS, DECLARED = "MIGRATIONS", "DECLARED"
EXAMPLE = "Instruction(BuildVersion(0, 3), AUDIT_EVENTS.name, Mechanism.EVOLUTION)"
MECHANISMS = ("EVOLUTION", "REPLACEMENT")
_NUMBERS = 3
"""The numbers of a build: major, minor, patch."""
_HOME = "catalog.authoring"
_WORDS = frozenset({"BuildVersion", "Builtin", "BuiltinName", "Declaration", "Instruction", "Mechanism"})
"""The names that instructions are written in; each is imported from `catalog.authoring`."""


@dataclass(frozen=True, slots=True, order=True)
class DeclaredInstruction:
    build: str
    name: str
    """The name of the builtin, such as `catalog.audit_events`."""
    mechanism: str

    def __str__(self) -> str:
        return f"({self.build}, {self.name}, {self.mechanism})"


@dataclass(frozen=True, slots=True)
class DeclaredInstructions:
    """The instructions of a project's `builtins.py`; none if there is no such file."""

    written: tuple[tuple[DeclaredInstruction, int], ...] = ()
    """Each instruction with its line."""
    problems: tuple[SyntaxProblemError, ...] = ()
    """The reasons why some of them cannot be read."""
    line: int = 0
    """The line where they begin."""

    @property
    def all(self) -> frozenset[DeclaredInstruction]:
        return frozenset(instruction for instruction, _ in self.written)


@lru_cache(maxsize=256)
def read_instructions(source: bytes) -> DeclaredInstructions:
    module = _Module(read_module(source))
    problems = list(module.disguises())
    written: list[tuple[DeclaredInstruction, int]] = []
    listed, line = module.assigned.get(INSTRUCTIONS, (None, 0))
    for element in listed.elts if isinstance(listed, ast.Tuple) else ():
        try:
            written.append((module.instruction(element), element.lineno))
        except SyntaxProblemError as problem:
            problems.append(problem)
    if listed is not None and not isinstance(listed, ast.Tuple):
        problems.append(SyntaxProblemError(line, f"{INSTRUCTIONS} is not a literal tuple"))
    return DeclaredInstructions(tuple(written), tuple(problems), line)


def readable_instructions(source: bytes | None) -> frozenset[DeclaredInstruction]:
    """Return the instructions of a source; none if it cannot be read."""
    try:
        return frozenset() if source is None else read_instructions(source).all
    except SyntaxProblemError:
        return frozenset()


@dataclass(frozen=True)
class _Module:
    tree: ast.Module

    @cached_property
    def assigned(self) -> Mapping[str, tuple[ast.expr, int]]:
        return assignments(self.tree)

    @cached_property
    def functions(self) -> Mapping[str, ast.FunctionDef]:
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    @cached_property
    def bound(self) -> Mapping[str, list[int]]:
        """Return every name that is bound, except parameters, with the lines that bind it."""
        lines: dict[str, list[int]] = {}
        for node in ast.walk(self.tree):
            for name in _bound(node):
                lines.setdefault(name, []).append(getattr(node, "lineno", 0))
        return lines

    def definition(self, name: str) -> ast.expr | None:
        """Return the value of a name, if it is set only once and at module level."""
        value, _ = self.assigned.get(name, (None, 0))
        return value if len(self.bound.get(name, ())) == 1 else None

    def disguises(self) -> Iterator[SyntaxProblemError]:
        """Yield the places where the code that runs may differ from the code that is read."""
        for name in {INSTRUCTIONS, DECLARED} & self.bound.keys():
            if self.definition(name) is None:
                yield SyntaxProblemError(self.bound[name][-1], f"{name} is not set once, at module level")
        if not {INSTRUCTIONS, DECLARED} & self.bound.keys():
            return
        homes = {
            alias.name: node.module
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom) and node.level == 0
            for alias in node.names
            if alias.asname is None
        }
        for name in _WORDS & self.bound.keys():
            if len(self.bound[name]) > 1 or homes.get(name) != _HOME:
                yield SyntaxProblemError(self.bound[name][-1], f"`{name}` is not the one of {_HOME}")
        if not self.declares_them():
            _, line = self.assigned.get(DECLARED, (None, 0))
            yield SyntaxProblemError(
                line,
                f"{DECLARED} is not `Declaration(build, builtins, {INSTRUCTIONS})`: it may have other instructions",
            )

    def declares_them(self) -> bool:
        """Tell if the declaration has exactly the listed instructions."""
        match self.definition(DECLARED):
            case (
                ast.Call(func=ast.Name(id="Declaration"), args=[_, _, ast.Name(id=name), *_])
                | ast.Call(
                    func=ast.Name(id="Declaration"),
                    args=[_, _],
                    keywords=[ast.keyword(arg="instructions", value=ast.Name(id=name))],
                )
            ):
                return name == INSTRUCTIONS
            case ast.Call(func=ast.Name(id="Declaration"), args=[_, _], keywords=[]):
                return INSTRUCTIONS not in self.bound
            case _:
                return False

    def instruction(self, node: ast.expr) -> DeclaredInstruction:
        match node:
            case ast.Call(
                func=ast.Name(id="Instruction"),
                args=[
                    ast.Call(func=ast.Name(id="BuildVersion"), args=numbers, keywords=[]),
                    named,
                    ast.Attribute(value=ast.Name(id="Mechanism"), attr=mechanism),
                ],
                keywords=[],
            ):
                pass
            case _:
                raise SyntaxProblemError(node.lineno, f"`{_excerpt(node)}` is not a plain instruction")
        name = self.name(named)
        if name is None:
            raise SyntaxProblemError(node.lineno, f"the name of `{_excerpt(named)}` is not a literal string")
        if mechanism not in MECHANISMS:
            raise SyntaxProblemError(node.lineno, f"there is no Mechanism.{mechanism}")
        return DeclaredInstruction(_build(numbers, node.lineno), name, mechanism)

    def name(self, node: ast.expr) -> str | None:
        """Return the name that is given by `CONSTANT.name`, by a `BuiltinName(…)` or by a constant of that type."""
        match node:
            case ast.Attribute(value=ast.Name(id=constant), attr="name"):
                definition = self.definition(constant)
                return None if definition is None else self._of_builtin(definition)
            case ast.Name(id=constant):
                definition = self.definition(constant)
                return None if definition is None else self._text_of(definition, {})
            case _:
                return self._text_of(node, {})

    def _of_builtin(self, node: ast.expr) -> str | None:
        """Return the name of a `Builtin(…)`, or of a call to a function that only returns one."""
        match node:
            case ast.Call(func=ast.Name(id="Builtin"), args=[name, *_]):
                return self._text_of(name, {})
            case ast.Call(func=ast.Name(id=called), args=arguments) if len(self.bound.get(called, ())) == 1:
                function = self.functions.get(called)
            case _:
                return None
        match [] if function is None else [part for part in function.body if not is_docstring(part)]:
            case [ast.Return(value=ast.Call(func=ast.Name(id="Builtin"), args=[name, *_]))] if function is not None:
                parameters = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
                return self._text_of(name, dict(zip(parameters, arguments, strict=False)))
            case _:
                return None

    def _text_of(self, name: ast.expr, given: Mapping[str, ast.expr]) -> str | None:
        """Return the text of a `BuiltinName(…)`, with these arguments for its parameters."""
        match name:
            case ast.Call(func=ast.Name(id="BuiltinName"), args=[schema, _, named], keywords=[]):
                parts = [self._string(part, given) for part in (schema, named)]
                return ".".join(part for part in parts if part is not None) if None not in parts else None
            case _:
                return None

    def _string(self, node: ast.expr, given: Mapping[str, ast.expr]) -> str | None:
        value = (given.get(node.id) or self.definition(node.id)) if isinstance(node, ast.Name) else node
        return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case _:
            pass


def _build(numbers: list[ast.expr], line: int) -> str:
    values = [number.value for number in numbers if isinstance(number, ast.Constant) and type(number.value) is int]
    if not values or len(values) != len(numbers) or len(values) > _NUMBERS:
        raise SyntaxProblemError(line, "a build is not one to three plain numbers")
    return ".".join(str(value) for value in [*values, 0, 0][:_NUMBERS])


def _excerpt(node: ast.expr, most: int = 60) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= most else f"{text[:most]}…"
