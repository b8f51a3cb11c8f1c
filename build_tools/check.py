"""The gate: reads a project once, asks every rule, reports everything at once."""

from __future__ import annotations

from collections.abc import Callable

from .findings import Report
from .rules import builtins, dispatch, frozen, migrations, types, usage
from .tree import Tree
from .workspace import Workspace, read_workspace

RULES: tuple[Callable[[Workspace], None], ...] = (
    types.check,
    frozen.check,
    dispatch.check,
    migrations.check,
    usage.check,
    builtins.check,
)

_CAUSES_FIRST = "VSHTDMIB"
_MERGES = {"V403", "V404"}
_SEEN_IN_MERGES = {"S201", "T110"}
"""What a merge under way looks like; to mend it apart would undo the other branch."""


def check(tree: Tree, *, require_history: bool = False, base: str | None = None) -> Report:
    workspace = read_workspace(tree, base)
    for rule in RULES:
        rule(workspace)
    notes = tuple(frozen.check_history(workspace, require=require_history))
    findings = set(workspace.findings)
    if any(finding.code in _MERGES for finding in findings):
        findings = {finding for finding in findings if finding.code not in _SEEN_IN_MERGES}
    return Report(tuple(sorted(findings, key=lambda finding: (_CAUSES_FIRST.index(finding.code[0]), finding))), notes)
