"""The gate: reads a project once, asks every rule, reports everything at once."""

from __future__ import annotations

from collections.abc import Callable

from .findings import Report
from .rules import dispatch, frozen, migrations, types, usage
from .tree import Tree
from .workspace import Workspace, read_workspace

RULES: tuple[Callable[[Workspace], None], ...] = (
    types.check,
    frozen.check,
    dispatch.check,
    migrations.check,
    usage.check,
)


def check(tree: Tree, *, require_history: bool = False, base: str | None = None) -> Report:
    workspace = read_workspace(tree, base)
    for rule in RULES:
        rule(workspace)
    notes = tuple(frozen.check_history(workspace, require=require_history))
    return Report(tuple(sorted(set(workspace.findings))), notes)
