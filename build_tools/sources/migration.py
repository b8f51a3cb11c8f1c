"""The declarations of a migration module, read from its syntax tree.

To the gate a migration is data: its actions, the functions they name, and its imports. It is never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from .hashes import source_hash
from .outside_uses import outside_uses
from .syntax_tree import SyntaxProblemError, parse_module, read_module


class Form(StrEnum):
    """The actions that `catalog.actions` offers."""

    WIRE_COMPATIBLE = "wire_compatible"
    COLUMNAR = "columnar"
    PER_ROW = "per_row"
    FRAME = "frame"
    INSERT = "insert"
    DELETE = "delete"
    CREATE = "create"
    RETIRE = "retire"
    NO_CHANGE = "no_change"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class ActionCall:
    form: Form
    reads: tuple[str, ...]
    """Collections of the old version whose rows the action reads."""
    makes: tuple[str, ...]
    """Collections of the new version that the action makes rows for."""
    rewrites: tuple[str, ...]
    """Collections whose rows the action all replaces or drops."""
    function: str | None
    line: int

    @property
    def covers(self) -> tuple[str, ...]:
        """Return the collections for whose existing rows the action decides what happens."""
        return self.reads if self.form in {Form.WIRE_COMPATIBLE, Form.UNDECIDED} else self.rewrites


@dataclass(frozen=True, slots=True)
class Import:
    module: str
    name: str
    line: int
    inside: str | None
    """The function that contains the import; None at module level."""
    typing_only: bool

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


@dataclass(frozen=True, slots=True)
class Stub:
    function: str
    line: int


@dataclass(frozen=True, slots=True)
class MigrationSource:
    hash: str
    docstring: str
    has_upgrade: bool
    actions: tuple[ActionCall, ...]
    problems: tuple[SyntaxProblemError, ...]
    """The reasons why the list of actions is not a literal list."""
    unknown_actions: tuple[tuple[str, int], ...]
    imports: tuple[Import, ...]
    functions: frozenset[str]
    stubs: tuple[Stub, ...]
    outside_uses: tuple[tuple[str, int], ...]

    @property
    def summary(self) -> str:
        return self.docstring.strip().partition("\n")[0]

    def rewrites(self, collection: str) -> bool:
        return any(collection in action.rewrites for action in self.actions)

    def covers(self, collection: str) -> bool:
        return any(collection in action.covers for action in self.actions)


@lru_cache(maxsize=256)
def read_migration(source: bytes) -> MigrationSource:
    module = read_module(source)
    nodes = list(ast.walk(module))
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    upgrade = functions.get("upgrade")
    actions: list[ActionCall] = []
    problems = list(_disguises(module))
    unknown: list[tuple[str, int]] = []
    for element in _declared(upgrade, problems) if upgrade else ():
        try:
            actions.append(_action(element))
        except _UnknownActionError as error:
            unknown.append((error.name, element.lineno))
        except SyntaxProblemError as problem:
            problems.append(problem)
    return MigrationSource(
        hash=source_hash(source),
        docstring=ast.get_docstring(module) or "",
        has_upgrade=upgrade is not None,
        actions=tuple(actions),
        problems=tuple(problems),
        unknown_actions=tuple(unknown),
        imports=tuple(imports(module)),
        functions=frozenset(functions),
        stubs=find_stubs(nodes),
        outside_uses=tuple(
            outside_uses(
                module,
                _own_names(nodes) | functions.keys(),
                has_frames=any(action.form is Form.FRAME for action in actions),
            )
        ),
    )


def _own_names(nodes: list[ast.AST]) -> set[str]:
    """Return the names that a module binds anywhere."""
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}


def same_syntax(one: bytes, other: bytes) -> bool:
    """Tell if two sources differ at most in comments, docstrings and layout."""
    return ast.dump(_without_docstrings(parse_module(one))) == ast.dump(_without_docstrings(parse_module(other)))


def find_stubs(nodes: Iterable[ast.AST]) -> tuple[Stub, ...]:
    """Return the functions that only raise NotImplementedError."""
    return tuple(Stub(node.name, node.lineno) for node in nodes if isinstance(node, ast.FunctionDef) and _is_stub(node))


def imports(module: ast.Module) -> Iterator[Import]:
    """Yield every import of a module, at any depth."""
    yield from _imports(module.body, inside=None, typing_only=False)


def _imports(body: list[ast.stmt], *, inside: str | None, typing_only: bool) -> Iterator[Import]:
    for node in body:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, "", node.lineno, inside, typing_only)
            case ast.ImportFrom(names=names, level=level):
                for alias in names:
                    yield Import("." * level + (node.module or ""), alias.name, node.lineno, inside, typing_only)
            case ast.FunctionDef(name=name):
                yield from _imports(node.body, inside=inside or name, typing_only=typing_only)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from _imports(node.body, inside=inside, typing_only=True)
                yield from _imports(node.orelse, inside=inside, typing_only=typing_only)
            case _:
                for block in ("body", "orelse", "finalbody", "handlers", "cases"):
                    inner = getattr(node, block, [])
                    statements = [
                        s
                        for part in inner
                        for s in (part.body if hasattr(part, "body") and not isinstance(part, ast.stmt) else [part])
                    ]
                    yield from _imports(statements, inside=inside, typing_only=typing_only)


def _disguises(module: ast.Module) -> Iterator[SyntaxProblemError]:
    """Yield the places that replace upgrade() or an action, so that the code that runs is not the code that is read."""
    upgrades = 0
    for node in module.body:
        for name in _bound(node):
            if name == "upgrade":
                upgrades += 1
                if upgrades > 1:
                    yield SyntaxProblemError(node.lineno, "`upgrade` is set a second time")
                elif isinstance(node, ast.FunctionDef) and node.decorator_list:
                    yield SyntaxProblemError(node.lineno, "upgrade() has a decorator")
            elif name in set(Form):
                yield SyntaxProblemError(node.lineno, f"`{name}` is not the action of catalog.actions")


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at module level binds; actions imported by their own name do not count."""
    match node:
        case ast.ImportFrom(module="catalog.actions", names=names):
            yield from (alias.asname for alias in names if alias.asname not in {None, alias.name})
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case _:
            yield from (
                part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            )


class _UnknownActionError(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _declared(upgrade: ast.FunctionDef, problems: list[SyntaxProblemError]) -> list[ast.Call]:
    body = upgrade.body[1:] if ast.get_docstring(upgrade) is not None else upgrade.body
    match body:
        case [ast.Return(value=ast.List(elts=elements))]:
            calls = [element for element in elements if isinstance(element, ast.Call)]
            problems += [
                SyntaxProblemError(element.lineno, f"`{ast.unparse(element)}` is not a call of an action")
                for element in elements
                if not isinstance(element, ast.Call)
            ]
            if not elements:
                problems.append(
                    SyntaxProblemError(
                        upgrade.lineno, 'the list is empty: a step that does nothing declares no_change("because …")'
                    )
                )
            return calls
        case _:
            problems.append(SyntaxProblemError(upgrade.lineno, "upgrade() is not one `return [...]` of a literal list"))
            return []


def _action(call: ast.Call) -> ActionCall:
    if not isinstance(call.func, ast.Name):
        raise SyntaxProblemError(call.lineno, f"`{ast.unparse(call.func)}` is not the plain name of an action")
    if call.func.id not in set(Form):
        raise _UnknownActionError(call.func.id)
    form = Form(call.func.id)
    arguments = _Arguments(form, call)
    if form is Form.NO_CHANGE:
        if not re.match(r"because\s+\S", _text(arguments.take(0, "reason"))):
            raise SyntaxProblemError(call.lineno, 'no_change needs a reason: no_change("because …")')
        return ActionCall(form, (), (), (), None, call.lineno)
    if form is Form.FRAME:
        reads, writes = _names(arguments.take(1, "reads")), _names(arguments.take(2, "writes"))
        function = _function(arguments.take(0, "change"))
        return ActionCall(form, reads, (*writes, *arguments.into), writes, function, call.lineno)
    collection = (_text(arguments.take(0, "collection")),)
    effect = _EFFECTS[form]
    return ActionCall(
        form,
        reads=collection if effect.reads else (),
        makes=(*collection, *arguments.into) if effect.makes else (),
        rewrites=collection if effect.rewrites else (),
        function=_function(arguments.take(1, effect.function)) if effect.function else None,
        line=call.lineno,
    )


@dataclass(frozen=True, slots=True)
class _Effect:
    """The effect of an action on its collection, and the name of its parameter for a function."""

    reads: bool = False
    makes: bool = False
    rewrites: bool = False
    function: str = ""


_EFFECTS = {
    Form.WIRE_COMPATIBLE: _Effect(reads=True),
    Form.COLUMNAR: _Effect(reads=True, makes=True, rewrites=True, function="change"),
    Form.PER_ROW: _Effect(reads=True, makes=True, rewrites=True, function="change"),
    Form.INSERT: _Effect(makes=True, function="rows"),
    Form.DELETE: _Effect(reads=True, function="where"),
    Form.CREATE: _Effect(makes=True),
    Form.RETIRE: _Effect(reads=True, rewrites=True),
    Form.UNDECIDED: _Effect(reads=True),
}


class _Arguments:
    """The arguments of an action's call, each a literal."""

    def __init__(self, form: Form, call: ast.Call) -> None:
        self._form, self._call = form, call
        self._keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        if None in self._keywords or any(isinstance(argument, ast.Starred) for argument in call.args):
            raise SyntaxProblemError(call.lineno, f"{form} takes its arguments one by one, not by * or **")

    def take(self, index: int, name: str) -> ast.expr:
        found = self._call.args[index] if index < len(self._call.args) else self._keywords.get(name)
        if found is None:
            raise SyntaxProblemError(self._call.lineno, f"{self._form} lacks its {name}")
        return found

    @property
    def into(self) -> tuple[str, ...]:
        return _names(self._keywords["into"]) if "into" in self._keywords else ()


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise SyntaxProblemError(node.lineno, f"`{ast.unparse(node)}` is not a literal string")


def _names(node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_text(element) for element in node.elts)
    raise SyntaxProblemError(node.lineno, f"`{ast.unparse(node)}` is not a literal tuple of collections")


def _function(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    raise SyntaxProblemError(node.lineno, f"`{ast.unparse(node)}` is not the name of a function of this module")


def _is_stub(function: ast.FunctionDef) -> bool:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    match body:
        case [ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError")))]:
            return True
        case _:
            return False


def _without_docstrings(module: ast.Module) -> ast.Module:
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return module
