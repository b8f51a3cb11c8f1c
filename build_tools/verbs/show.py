"""The command that lists the versions of a project."""

from __future__ import annotations

from ..project_tree import MIGRATION_NAME, ProjectTree
from ..sources.hashes import HashEntry
from ..workspace import Workspace, read_workspace


def overview(tree: ProjectTree) -> str:
    """Return a line per version: its release, the actions of the step to it, and the summary of that step."""
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
    entry: HashEntry | None = workspace.hashes.snapshots.get(version) if workspace.hashes else None
    return (entry.released if entry else None) or "-"


def _step(workspace: Workspace, version: int) -> tuple[str, str]:
    for name, migration in workspace.migrations.items():
        match = MIGRATION_NAME.fullmatch(name)
        if match is not None and int(match["new"]) == version:
            forms = sorted({str(action.form) for action in migration.actions})
            return ", ".join(forms), migration.summary
    return "-", "the oldest version that can be upgraded"
