"""The page of what a program imports, from its signatures and docstrings; what is listed here is what is promised."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import get_args

import catalog
from catalog import actions, errors, handle, notices
from catalog.stash import transaction

WIDTH = 100
Function = ast.FunctionDef | ast.AsyncFunctionDef
IMPORTS = """\
from catalog import open_catalog
from catalog.errors import CatalogError, RetryableError
from catalog.handle import Catalog, Mode  # for annotations
from catalog.objects import RoleKey, RoleValue
"""


def interface() -> str:
    lines = [
        "# Python",
        "",
        "Generated from signatures and docstrings. This is what a program imports; whatever else there is belongs to",
        "the package itself, and may change with every release.",
        "",
        f"```python\n{IMPORTS}```",
        "",
        "Importing `catalog` loads neither pyspark nor pyarrow. Every error of the package is a `CatalogError`:",
        "[errors](errors.md) has them all, by what a caller can do about them. [The store](../store.md) has examples",
        "of everything that is here.",
        "",
    ]
    for name in catalog.__all__:
        lines += _exported(name)
    lines += _modes()
    lines += _class(handle, "Catalog", "What `open_catalog` answers; close it, or use it in a `with` statement.")
    lines += _class(transaction, "Transaction", "What `Catalog.transaction` gives.", leave_out=_INSIDE)
    lines += [*_notices(), *_OBSERVERS]
    lines += [
        "## catalog.objects",
        "",
        "The messages of [proto/objects.proto](../../proto/objects.proto), by name. Collection `x_y` has the messages",
        "`XYKey` and `XYValue`; the type of a key names the collection.",
        "",
        "## catalog.actions",
        "",
        "What the `upgrade()` of a migration may declare, and all that one imports besides the frozen types of its two",
        "versions and pyarrow. [Upgrades](../upgrades.md#writing-a-migration) says how to choose, and has an example",
        "of each form.",
        "",
    ]
    for found in _functions(actions):
        lines += [f"### {found.name}", "", *_described(found)]
    return "\n".join(lines)


_INSIDE = frozenset({"changes", "conflicts_with"})


_OBSERVERS = (
    "`together(*observers)` makes one observer of several. `catalog.observing` has some: `logs.LogLines`,",
    "`metrics.MetricsFile` and `readiness.ReadyFile`, as [watch a start](../howto/operate.md) shows.",
    "",
)


def _notices() -> list[str]:
    """Each kind, with its fields; what else there is of a step is in its plan."""
    lines = ["## catalog.notices", "", "What the `observer` of `open_catalog` is called with.", ""]
    lines += ["| notice | | fields |", "|---|---|---|"]
    for kind in get_args(notices.Notice):
        found = _class_of(notices, kind.__name__)
        fields = [f"`{ast.unparse(part.target)}`" for part in found.body if isinstance(part, ast.AnnAssign)]
        fields += [f"`{part.name}`" for part in found.body if isinstance(part, Function) and part.name != "of"]
        lines.append(f"| `{found.name}` | {ast.get_docstring(found) or ''} | {', '.join(fields)} |")
    return [*lines, ""]


def _exported(name: str) -> list[str]:
    value = getattr(catalog, name)
    if inspect.isfunction(value):
        return [f"## {name}", "", *_described(_named(sys.modules[value.__module__], name))]
    if inspect.isclass(value) and issubclass(value, errors.CatalogError):
        return []
    return [] if isinstance(value, (int, str)) else _class(sys.modules[value.__module__], name, "")


def _modes() -> list[str]:
    lines = ["## Mode", "", "The ways to open a store; `open_catalog` takes their values.", ""]
    lines += ["| value | member | |", "|---|---|---|"]
    body = _class_of(handle, "Mode").body
    for assigned, said in pairwise(body):
        if isinstance(assigned, ast.Assign) and isinstance(said, ast.Expr):
            member = ast.unparse(assigned.targets[0])
            lines.append(f"| `{handle.Mode[member]}` | `Mode.{member}` | {ast.literal_eval(said.value)} |")
    return [*lines, ""]


def _class(module: ModuleType, name: str, said: str, leave_out: frozenset[str] = frozenset()) -> list[str]:
    """Its properties in a table, then its methods; what begins with an underscore is nobody's business."""
    public = [
        found
        for found in _class_of(module, name).body
        if isinstance(found, Function)
        and not found.name.startswith("_")
        and found.name not in leave_out
        and "overload" not in _decorators(found)
    ]
    lines = [f"## {name}", "", said, ""]
    properties = [found for found in public if "property" in _decorators(found)]
    if properties:
        lines += ["| property | type | |", "|---|---|---|"]
        for found in properties:
            kind = ast.unparse(found.returns).replace("|", "\\|") if found.returns else ""
            lines.append(f"| `{found.name}` | `{kind}` | {ast.get_docstring(found) or ''} |")
        lines.append("")
    for found in public:
        if found not in properties:
            lines += [f"### {name}.{found.name}", "", *_described(found)]
    return lines


def _described(found: Function) -> list[str]:
    said = inspect.cleandoc(ast.get_docstring(found) or "")
    return ["```pyi", *_signature(found), "```", "", *([said, ""] if said else [])]


def _signature(found: Function) -> list[str]:
    """As in a stub, on one line if it fits."""
    arguments = _arguments(found.args)
    returns = _shown(found.returns) if found.returns else "None"
    if "contextmanager" in _decorators(found):
        returns = returns.replace("Iterator", "AbstractContextManager")
    whole = f"def {found.name}({', '.join(arguments)}) -> {returns}"
    if len(whole) <= WIDTH:
        return [whole]
    return [f"def {found.name}(", *(f"    {argument}," for argument in arguments), f") -> {returns}"]


def _arguments(found: ast.arguments) -> list[str]:
    if found.vararg or found.kwarg or found.posonlyargs:
        raise NotImplementedError("nothing public takes such arguments")
    plain = [argument for argument in found.args if argument.arg not in {"self", "cls"}]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(found.defaults)), *found.defaults]
    told = [_argument(argument, default) for argument, default in zip(plain, defaults, strict=True)]
    by_name = [_argument(*each) for each in zip(found.kwonlyargs, found.kw_defaults, strict=True)]
    return [*told, *(["*", *by_name] if by_name else [])]


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {_shown(argument.annotation)}" if argument.annotation else ""
    return f"{argument.arg}{kind}" + (f" = {_shown(default)}" if default is not None else "")


def _shown(part: ast.expr) -> str:
    """As it is written; a variable of types, by what it is bound to."""
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
