"""`catalog undo`: take the newest migrations back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.engine.migrate.undo import judge, undo_to
from catalog.engine.store.leadership import leading
from catalog.errors import UsageError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.cli.context import StoreTarget


@dataclass(frozen=True, slots=True)
class Undone:
    store: str
    version_before: int
    version: int
    steps: tuple[str, ...]
    done: bool = True
    """False in a preview."""


def undo(run: Invocation, *, to: int | None, yes: bool) -> CommandResult:
    """Undo one step, or all steps above a version, the newest first."""
    target = run.target
    planned = _plan(target, to)
    if not planned.steps:
        return CommandResult(planned)
    run.screen.preview(planned)
    run.screen.confirm("The leader will be fenced, and these migrations undone.", yes=yes)
    with leading(target.place, target.leadership) as leader:
        undone = undo_to(leader.system_rows, target.project, planned.version)
        after = leader.system_rows.version
    steps = tuple(str(event.value.name) for event in undone)
    return CommandResult(Undone(planned.store, planned.version_before, after, steps))


def _plan(target: StoreTarget, to: int | None) -> Undone:
    """Return the steps to undo, after judging them all. Fences no leader."""
    look, project = target.look(), target.project
    version = look.version
    look.require_types()
    last = version - 1 if to is None else to
    if not project.minimum <= last <= version:
        raise UsageError(
            f"cannot undo to version {last}: the store is at version {version}",
            "an undo takes the newest steps back, and this build knows versions "
            f"{project.minimum} to {project.current}",
            f"give --to a version below {version}",
        )
    steps = tuple(str(event.value.name) for event in judge(look.system_rows, project, last))
    return Undone(look.place.uri, version, last, steps, done=False)
