"""`catalog abort`: mark the running migration as failed and fence its process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.engine.migrate.recorder import RunState, read_events
from catalog.engine.migrate.undo import abort as abort_steps
from catalog.engine.store.leadership import holder

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class Aborted:
    store: str
    steps: tuple[str, ...]
    done: bool = True
    """False in a preview."""


def abort(run: Invocation, *, yes: bool) -> CommandResult:
    """Abort every step whose event is RUNNING: fence its process, and record the run as ERROR."""
    look = run.target.look()
    running = [str(event.value.name) for event in read_events(look.system_rows) if event.state is RunState.RUNNING]
    planned = Aborted(look.place.uri, tuple(running), done=False)
    if not running:
        return CommandResult(planned)
    run.screen.preview(planned)
    run.screen.confirm("Its process will be fenced, and the migration marked as failed.", yes=yes)
    look = run.target.look()
    generation = run.target.deploy_generation
    aborted = abort_steps(
        look.log, look.system_rows.registry, holder(), look.state.fence.generation if generation is None else generation
    )
    return CommandResult(Aborted(look.place.uri, tuple(str(event.value.name) for event in aborted)))
