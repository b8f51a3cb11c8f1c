"""The page of modules: the first line of each docstring, layer by layer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from docs.links import ROOT
from docs.writers.layers import contract, project_modules

PACKAGE = ROOT / "catalog"
CONTENTS = re.compile(r"(?m)^- `(?P<name>\w+)`: ")
"""A line of the table of contents in the docstring of a package."""


def modules() -> str:
    """Return the page."""
    own = project_modules()
    top = [name for layer in contract() for name in layer if "." not in name]
    lines = [
        "# Modules",
        "",
        "Generated from the docstrings, in the order of the [layers](../architecture.md#layers): each imports only",
        "what comes after it. Modules of this repository's own project have a star; the others serve any project.",
        "",
        "## catalog",
        "",
        *_table((f"`{name}`{' ★' if name in own else ''}", PACKAGE / name) for name in top),
    ]
    for package in _packages():
        lines += [f"## {package.relative_to(ROOT)}", "", f"{first_line(package)}", ""]
        lines += _table((f"`{path.stem}`", path) for path in _parts(package))
    return "\n".join(lines)


def first_line(module: Path) -> str:
    """Return the first line of the docstring of a module or package."""
    return _docstring(module).partition("\n")[0]


def missing_modules() -> list[str]:
    """Return a problem for each name in the table of contents of a package that is not in the package."""
    return [
        f"{package.relative_to(ROOT)}/__init__.py lists {line['name']}, which is not in the package"
        for package in _packages()
        for line in CONTENTS.finditer(_docstring(package))
        if line["name"] not in {path.stem for path in _parts(package)}
    ]


def _docstring(module: Path) -> str:
    source = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    return ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""


def _table(rows: Iterable[tuple[str, Path]]) -> list[str]:
    lines = [f"| {name} | {first_line(path).replace('|', chr(92) + '|')} |" for name, path in rows]
    return ["| module | what it owns |", "|---|---|", *lines, ""]


def _packages() -> list[Path]:
    """Return the packages of the catalog in the order of the layers, then the gate's; migrations are not listed."""
    top = [PACKAGE / name for layer in contract() for name in layer if "." not in name and name != "migrations"]
    folders = [*(folder for folder in top if folder.is_dir()), ROOT / "build_tools"]
    return [inner for outer in folders for inner in _with_packages(outer)]


def _with_packages(package: Path) -> list[Path]:
    return [package, *(inner for path in _parts(package) if path.is_dir() for inner in _with_packages(path))]


def _parts(package: Path) -> list[Path]:
    """Return the modules and packages in a package: by layer where a contract has them, else by name."""
    modules = [path for path in package.glob("*.py") if path.stem not in {"__init__", "__main__"}]
    packages = [path.parent for path in package.glob("*/__init__.py")]
    ranks = {PACKAGE.joinpath(*name.split(".")): rank for rank, layer in enumerate(contract()) for name in layer}
    return sorted([*modules, *packages], key=lambda path: (ranks.get(path, len(ranks)), path.stem))
