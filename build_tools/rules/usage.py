"""Rule about who may use frozen types: migrations, and nothing else of the package."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from ..migration import imports
from ..tree import SNAPSHOT_MODULE
from ..workspace import Workspace

_LEGACY = "legacy_json_objects"


def check(workspace: Workspace) -> None:
    for path, module in workspace.modules.items():
        if path == workspace.tree.migrations / f"{_LEGACY}.py":
            continue
        for name, line in sorted(_frozen_names(module), key=lambda found: found[1]):
            _add(workspace, path, name, line)


@lru_cache(maxsize=1024)
def _frozen_names(module: ast.Module) -> set[tuple[str, int]]:
    found = {
        (part, imported.line)
        for imported in imports(module)
        for part in imported.path.split(".")
        if SNAPSHOT_MODULE.fullmatch(part) or part == _LEGACY
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            last = node.value.rpartition(".")[2]
            if SNAPSHOT_MODULE.fullmatch(last):
                found.add((last, node.lineno))
    return found


def _add(workspace: Workspace, path: Path, name: str, line: int) -> None:
    workspace.add(
        "I700",
        path,
        f"it uses {name}",
        f"use the current types ({workspace.tree.project}.objects), or move the code into the migration that needs it",
        line,
    )
