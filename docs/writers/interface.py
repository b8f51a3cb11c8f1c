"""The page of the Python interface, from signatures and docstrings: the names that stay importable."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import get_args

import catalog as package
from catalog import actions, authoring, events
from catalog.engine.stash import transaction
from catalog.engine.store import catalog as handle

WIDTH = 100
AUTHORING = {
    "`upgrade.py`": ("Project", "BuildVersion", "MigrationModule"),
    "`objects.py` and generated code": ("load_generated", "require_fresh"),
    "`constraints.py`": ("Constraints", "Unique", "Reference"),
    "`initialize.py`": ("Transaction",),
    "`privacy.py`": ("Privacy",),
    "`builtins.py`: declarations": ("Declaration", "Builtin", "BuiltinName", "Schema", "Column", "store_metrics"),
    "`builtins.py`: changes between builds": ("Instruction", "Mechanism"),
    "`builtins.py`: rows that follow from the stash": ("Derivation", "Row"),
    "`samples/`": ("Sample", "SampleColumn", "Draw", "random_columns"),
    "tests": ("generate", "check_upgrade", "StorePlace"),
}
"""The names of `catalog.authoring` by the file of a project that needs them."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
IMPORTS = """\
from catalog import Catalog, Mode, open_catalog  # the classes, for annotations
from catalog.errors import CatalogError, RetryableError
from catalog.objects import RoleKey, RoleValue
"""


def interface() -> str:
    lines = [
        "# Python",
        "",
        "Generated from signatures and docstrings. These names are public; all others are internal and may change with",
        "every release.",
        "",
        f"```python\n{IMPORTS}```",
        "",
        "Importing `catalog` loads neither pyspark nor pyarrow. Every error of the package is a `CatalogError`:",
        "[errors](errors.md) lists them by what a caller can do about them. [The store](../store.md) has examples of",
        "everything on this page.",
        "",
    ]
    lines += ["## open_catalog", "", *_described(_named(package, "open_catalog"))]
    lines += _modes()
    lines += _class(handle, "Catalog", "The result of `open_catalog`; close it, or use it in a `with` statement.")
    lines += _class(transaction, "Transaction", "The value of `with Catalog.transaction() as tx`.", leave_out=_INSIDE)
    lines += [*_events(), *_OBSERVERS, *_authoring()]
    lines += [
        "## catalog.objects",
        "",
        "The messages of [proto/objects.proto](../../proto/objects.proto), by name. Collection `x_y` has the messages",
        "`XYKey` and `XYValue`; the type of a key names the collection.",
        "",
        "## catalog.actions",
        "",
        "The actions that the `upgrade()` of a migration may declare. Besides them a migration imports only the frozen",
        "types of its two versions and pyarrow. [Upgrades](../upgrades.md#writing-a-migration) explains how to choose,",
        "with an example of each form.",
        "",
    ]
    for found in _functions(actions):
        lines += [f"### {found.name}", "", *_described(found)]
    return "\n".join(lines)


_INSIDE = frozenset({"changes", "conflicts_with", "end", "require_open"})


_OBSERVERS = (
    "`together(*observers)` makes one observer of several. `catalog.engine.store.observers` has three:",
    "`log_lines.LogLines`, `prometheus.MetricsFile` and `ready_file.ReadyFile`; [watch a start](../howto/operate.md)",
    "shows them.",
    "",
)


def _events() -> list[str]:
    """Return the table of events with their fields."""
    lines = ["## catalog.events", "", "The values that the `observer` of `open_catalog` is called with.", ""]
    lines += ["| event | | fields |", "|---|---|---|"]
    for kind in get_args(events.Event):
        found = _class_of(events, kind.__name__)
        fields = [f"`{ast.unparse(part.target)}`" for part in found.body if isinstance(part, ast.AnnAssign)]
        properties = (part.name for part in found.body if isinstance(part, Function) and part.name != "of")
        fields += [f"`{name}`" for name in properties if not name.startswith("_")]
        lines.append(f"| `{found.name}` | {_cell(found)} | {', '.join(fields)} |")
    return [*lines, ""]


def _authoring() -> list[str]:
    """Return the table of the names that a project's files import."""
    if {name for names in AUTHORING.values() for name in names} != set(authoring.__all__):
        raise ValueError("docs/writers/interface.py does not list the names of catalog.authoring")
    lines = ["## catalog.authoring", "", "The engine as the files of a project import it.", "", "| for | names |"]
    lines += [
        "|---|---|",
        *(f"| {use} | {', '.join(f'`{name}`' for name in names)} |" for use, names in AUTHORING.items()),
    ]
    return [*lines, ""]


def _modes() -> list[str]:
    lines = ["## Mode", "", "The ways to open a store; `open_catalog` takes their values.", ""]
    lines += ["| value | member | |", "|---|---|---|"]
    body = _class_of(handle, "Mode").body
    for assigned, comment in pairwise(body):
        if isinstance(assigned, ast.Assign) and isinstance(comment, ast.Expr):
            member = ast.unparse(assigned.targets[0])
            lines.append(f"| `{handle.Mode[member]}` | `Mode.{member}` | {ast.literal_eval(comment.value)} |")
    return [*lines, ""]


def _class(module: ModuleType, name: str, intro: str, leave_out: frozenset[str] = frozenset()) -> list[str]:
    """Return the public properties of a class in a table, then its public methods."""
    public = [
        found
        for found in _class_of(module, name).body
        if isinstance(found, Function)
        and not found.name.startswith("_")
        and found.name not in leave_out
        and "overload" not in _decorators(found)
    ]
    lines = [f"## {name}", "", intro, ""]
    properties = [found for found in public if "property" in _decorators(found)]
    if properties:
        lines += ["| property | type | |", "|---|---|---|"]
        for found in properties:
            kind = ast.unparse(found.returns).replace("|", "\\|") if found.returns else ""
            lines.append(f"| `{found.name}` | `{kind}` | {_cell(found)} |")
        lines.append("")
    for found in public:
        if found not in properties:
            lines += [f"### {name}.{found.name}", "", *_described(found)]
    return lines


def _cell(found: ast.ClassDef | Function) -> str:
    """Return a docstring as the cell of a table: on one line."""
    return " ".join((ast.get_docstring(found) or "").split())


def _described(found: Function) -> list[str]:
    described = inspect.cleandoc(ast.get_docstring(found) or "")
    return ["```pyi", *_signature(found), "```", "", *([described, ""] if described else [])]


def _signature(found: Function) -> list[str]:
    """Return the signature as in a stub, on one line if it fits."""
    arguments = _arguments(found.args)
    returns = _source(found.returns) if found.returns else "None"
    if "contextmanager" in _decorators(found):
        returns = returns.replace("Iterator", "AbstractContextManager")
    whole = f"def {found.name}({', '.join(arguments)}) -> {returns}"
    if len(whole) <= WIDTH:
        return [whole]
    return [f"def {found.name}(", *(f"    {argument}," for argument in arguments), f") -> {returns}"]


def _arguments(found: ast.arguments) -> list[str]:
    if found.vararg or found.kwarg or found.posonlyargs:
        raise NotImplementedError("no public function takes such arguments")
    plain = [argument for argument in found.args if argument.arg not in {"self", "cls"}]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(found.defaults)), *found.defaults]
    by_position = [_argument(argument, default) for argument, default in zip(plain, defaults, strict=True)]
    by_name = [_argument(*each) for each in zip(found.kwonlyargs, found.kw_defaults, strict=True)]
    return [*by_position, *(["*", *by_name] if by_name else [])]


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {_source(argument.annotation)}" if argument.annotation else ""
    return f"{argument.arg}{kind}" + (f" = {_source(default)}" if default is not None else "")


def _source(part: ast.expr) -> str:
    """Return an expression as it is written; a type variable, by its bound."""
    return ast.unparse(part).replace("'", '"').replace("_Key", "Message")


def _decorators(found: Function) -> set[str]:
    return {ast.unparse(decorator) for decorator in found.decorator_list}


def _functions(module: ModuleType) -> Iterator[Function]:
    for found in _tree(module).body:
        if isinstance(found, Function) and not found.name.startswith("_"):
            yield found


def _named(module: ModuleType, name: str) -> Function:
    return next(found for found in _functions(module) if found.name == name)


def _class_of(module: ModuleType, name: str) -> ast.ClassDef:
    return next(found for found in _tree(module).body if isinstance(found, ast.ClassDef) and found.name == name)


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))
