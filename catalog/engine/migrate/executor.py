"""The upgrade of a store: every step that is due, one after the other, and the checks of what was applied before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from catalog.engine.base.project import Project
from catalog.engine.migrate.plan import LiveRows, StepPlan, known_checksums, plan, plan_step, positions
from catalog.engine.migrate.recorder import MigrationEvent, RunState, close_dead, read_events
from catalog.engine.migrate.step_result import StepResult
from catalog.engine.migrate.step_runner import StepRunner
from catalog.engine.migrate.system_rows import SystemRows
from catalog.errors import ChecksumError, UndoneError


def upgrade(
    runner: StepRunner, until: int | None = None, *, reapply: bool = False
) -> list[tuple[StepPlan, StepResult]]:
    """Take a store to a version, by default the current one; each step is a commit of its own."""
    journal, project = runner.journal, runner.project
    journal.refresh()
    close_dead(journal)
    validate(project, journal)
    if not reapply:
        require_not_undone(journal, project)
    last, rows = project.current if until is None else until, LiveRows(journal.log)
    done = []
    for position in positions(plan(project, journal.state, journal.version, last, rows)):
        step = replace(plan_step(project, journal.state, journal.version, rows), position=position)
        done.append((step, runner.run(step)))
    return done


def validate(project: Project, journal: SystemRows) -> None:
    """Raise if an applied migration is not the one of this build; the error names all that differ."""
    wrong = mismatches(project, read_events(journal))
    if wrong:
        raise ChecksumError(", ".join(event.value.name for event in wrong))


def mismatches(project: Project, events: Sequence[MigrationEvent]) -> list[MigrationEvent]:
    """Return the applied migrations with a checksum that this build's module never had; retired ones aside."""
    found = []
    for event in applied(events).values():
        previous = int(event.value.previous)
        if previous < project.minimum or previous >= project.current:
            continue
        module = project.migration_from(previous, project.build)
        if module is not None and event.value.checksum not in known_checksums(project, module):
            found.append(event)
    return found


def applied(events: Sequence[MigrationEvent]) -> dict[int, MigrationEvent]:
    """Return the step that led to each version that the store has passed."""
    found: dict[int, MigrationEvent] = {}
    for event in events:
        if event.state is RunState.MIGRATED:
            found[int(event.value.version)] = event
        elif event.state is RunState.UNDONE:
            found.pop(int(event.value.version), None)
    return found


def require_not_undone(journal: SystemRows, project: Project) -> None:
    """Raise if the step that is due was undone."""
    if is_undone(journal, project):
        raise UndoneError(journal.version, project.current)


def is_undone(journal: SystemRows, project: Project) -> bool:
    """Tell if the step that is due was undone, and not applied again since."""
    following = [
        event.state
        for event in read_events(journal)
        if int(event.value.version) == journal.version + 1 and event.state in {RunState.MIGRATED, RunState.UNDONE}
    ]
    return bool(following) and following[-1] is RunState.UNDONE and journal.version < project.current
