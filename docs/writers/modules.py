"""The page of modules: what each says of itself in the first line of its docstring, layer by layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from docs.links import ROOT
from docs.writers.layers import contract, projects_own


def modules() -> str:
    own = projects_own()
    lines = [
        "# Modules",
        "",
        "Generated from the docstrings, in the order of the [layers](../architecture.md#layers): each imports only",
        "what comes after it. Modules of this repository's own project have a star; the others are the engine's, which",
        "knows no project.",
        "",
        "## catalog",
        "",
        *_table(
            (f"`{name}`{' ★' if name in own else ''}", ROOT / "catalog" / name)
            for layer in contract()
            for name in layer
        ),
    ]
    for package in _packages():
        within = package.relative_to(ROOT)
        lines += [f"## {within}", "", f"{first_line(package)}", ""]
        lines += _table((f"`{path.stem if path.is_file() else path.name}`", path) for path in _parts(package))
    return "\n".join(lines)


def first_line(module: Path) -> str:
    """What a module or package says of itself first; names stay code."""
    source = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    return (ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def _table(rows: Iterator[tuple[str, Path]]) -> list[str]:
    told = [f"| {name} | {first_line(path).replace('|', chr(92) + '|')} |" for name, path in rows]
    return ["| module | what it owns |", "|---|---|", *told, ""]


def _packages() -> list[Path]:
    """Those of the catalog in the order of the layers, then the gate's; steps are a list that nobody reads here."""
    named = [ROOT / "catalog" / name for layer in contract() for name in layer if name != "migrations"]
    own = [folder for folder in named if folder.is_dir()]
    return [inner for outer in [*own, ROOT / "build_tools"] for inner in _with_packages(outer)]


def _with_packages(package: Path) -> list[Path]:
    return [package, *(inner for path in _parts(package) if path.is_dir() for inner in _with_packages(path))]


def _parts(package: Path) -> list[Path]:
    modules = [path for path in package.glob("*.py") if path.stem not in {"__init__", "__main__"}]
    packages = [path.parent for path in package.glob("*/__init__.py")]
    return sorted([*modules, *packages], key=lambda path: path.stem)
