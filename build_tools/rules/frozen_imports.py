"""Rule about imports of frozen types: only migrations may use them."""

from __future__ import annotations

from ..sources.frozen_names import LEGACY
from ..workspace import Workspace


def check(workspace: Workspace) -> None:
    for path, names in workspace.frozen_names.items():
        if path == workspace.tree.migrations / f"{LEGACY}.py":
            continue
        for name, line in names:
            current = f"use the current types ({workspace.tree.project}.objects)"
            fix = f"{current}, or move the code into the migration that needs it"
            workspace.add("I700", path, f"it uses {name}", fix, line)
