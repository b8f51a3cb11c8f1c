"""The gate: it reads a project once, runs every rule and reports all findings together."""

from __future__ import annotations

from collections.abc import Callable

from .findings import Report
from .project_tree import ProjectTree
from .rules import (
    builtins,
    constraints,
    dispatch,
    field_numbers,
    frozen,
    frozen_imports,
    initialize,
    migrations,
    privacy,
    types,
)
from .workspace import Workspace, read_workspace

RULES: tuple[Callable[[Workspace], None], ...] = (
    types.check,
    field_numbers.check,
    frozen.check,
    constraints.check,
    privacy.check,
    initialize.check,
    dispatch.check,
    migrations.check,
    frozen_imports.check,
    builtins.check,
)

_CAUSES_FIRST = "VSHTCDMIB"
_MERGES = {"V403", "V404"}
_SEEN_IN_MERGES = {"S201", "T110"}
"""Codes that a merge in progress causes too; resolving them separately would undo the other branch."""


def check(tree: ProjectTree, *, require_history: bool = False, base: str | None = None) -> Report:
    workspace = read_workspace(tree, base)
    for rule in RULES:
        rule(workspace)
    notes = tuple(frozen.check_history(workspace, require=require_history))
    findings = set(workspace.findings)
    if any(finding.code in _MERGES for finding in findings):
        findings = {finding for finding in findings if finding.code not in _SEEN_IN_MERGES}
    return Report(tuple(sorted(findings, key=lambda finding: (_CAUSES_FIRST.index(finding.code[0]), finding))), notes)
