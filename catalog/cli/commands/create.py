"""`catalog create`: freeze the edited types as a new version, with its migration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.engine.base.gate_loader import load_gate
from catalog.errors import UsageError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class Created:
    version: int
    summary: str
    written: tuple[str, ...]
    removed: tuple[str, ...]
    left: str
    """The report of the gate."""
    ready: bool
    """True if the gate has no findings."""
    then: str
    """The command that records the version again once the findings are fixed."""


def create(
    _run: Invocation,
    *,
    why: str | None,
    amend: bool,
    renumber: bool,
    same_types: bool,
    base: str | None,
    root: str | None,
) -> CommandResult:
    """Create a version, or record an unreleased one again."""
    if amend + renumber + same_types > 1:
        raise UsageError(
            "--amend, --renumber and --same-types exclude each other",
            "each creates a version in another way",
            "give one of them",
        )
    project_tree, recipe = load_gate("project_tree"), load_gate("verbs.new_version")
    try:
        made, report = recipe.make_version(
            root, why, amended=amend, renumbered=renumber, same_types=same_types, base=base
        )
    except project_tree.GateError as error:
        raise UsageError(error.what, error.why, error.fix) from error
    findings = load_gate("findings")
    left = findings.render(report, findings.Format.TEXT)
    return CommandResult(
        Created(made.version, made.summary, made.written, made.removed, left, report.ok, project_tree.AMEND)
    )
