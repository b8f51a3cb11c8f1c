"""The versions of a project at a glance."""

from __future__ import annotations

from .hashes import Entry
from .tree import MIGRATION_NAME, Tree
from .workspace import Workspace, read_workspace


def overview(tree: Tree) -> str:
    """A line per version: its release, the forms of the step that leads to it, and what that step does."""
    workspace = read_workspace(tree)
    if workspace.versions is None:
        return f"{tree.relative(tree.version)} cannot be read"
    versions = range(workspace.versions.minimum, workspace.versions.current + 1)
    rows = [
        ("version", "released", "step", "what changes"),
        *((f"v{version}", _released(workspace, version), *_step(workspace, version)) for version in versions),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip()
        for row in rows
    )


def _released(workspace: Workspace, version: int) -> str:
    entry: Entry | None = workspace.hashes.snapshots.get(version) if workspace.hashes else None
    return (entry.released if entry else None) or "-"


def _step(workspace: Workspace, version: int) -> tuple[str, str]:
    for name, migration in workspace.migrations.items():
        match = MIGRATION_NAME.fullmatch(name)
        if match is not None and int(match["new"]) == version:
            forms = sorted({str(action.form) for action in migration.actions})
            return ", ".join(forms), migration.summary
    return "-", "the oldest version that can be upgraded"
