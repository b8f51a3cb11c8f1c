"""The undo of steps, the newest first, each in one commit while its earlier files are retained; the abort of a step."""

from __future__ import annotations

from catalog.engine.base.fence import Fence
from catalog.engine.base.project import Project
from catalog.engine.log.protocol import AppTxn, Log, Operation
from catalog.engine.log.replica import newest_state
from catalog.engine.migrate.executor import applied
from catalog.engine.migrate.recorder import MigrationEvent, RunState, close_dead, finished, read_events
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.migrate.undo_step import StepUndo
from catalog.engine.stash.registry import Registry
from catalog.errors import CatalogError, ConflictError, NotUndoableError, UndoStoppedError


def undo_to(journal: SystemRows, project: Project, target: int) -> list[MigrationEvent]:
    """Undo every step above a version, after judging them all; if one fails then, the error says where it stopped."""
    journal.refresh()
    latest, undone = journal.version, list[MigrationEvent]()
    judge(journal, project, target)
    while journal.version > target:
        try:
            undone.append(undo(journal, project))
        except CatalogError as error:
            if not undone:
                raise
            steps = tuple(str(event.value.name) for event in undone)
            raise UndoStoppedError(target, journal.version, steps, error.what, latest) from error
    return undone


def judge(journal: SystemRows, project: Project, target: int) -> list[MigrationEvent]:
    """Return the steps above a version, the newest first; raise if one of them cannot be undone. Write nothing."""
    events, state, gone = steps_above(journal, target), journal.state, dict[str, frozenset[bytes]]()
    for event in events:
        step = StepUndo.of(journal, project, event, state)
        step.gone = gone
        step.require_undoable()
        state, gone = step.after()
    return events


def undo(journal: SystemRows, project: Project) -> MigrationEvent:
    """Undo the newest step: its rows and the version become those of before it."""
    while True:
        journal.refresh()
        close_dead(journal)
        event = steps_above(journal, journal.version - 1)[0]
        step = StepUndo.of(journal, project, event)
        step.require_undoable()
        try:
            step.commit()
        except ConflictError:
            continue
        return event


def steps_above(journal: SystemRows, target: int) -> list[MigrationEvent]:
    """Return the steps that led from a version to the present one, the newest first; raise if one is missing."""
    events = applied(read_events(journal))
    versions = range(journal.version, target, -1)
    for version in versions:
        if version not in events:
            reason = "no step led to this version: the store was initialised with it"
            raise NotUndoableError(f"v{version - 1}_to_v{version}", reason)
    return [events[version] for version in versions]


def abort(log: Log, registry: Registry, holder: str, generation: int) -> list[MigrationEvent]:
    """Abort every running step: fence its process and set its event to ERROR, in one commit."""
    while True:
        state = newest_state(log)
        before = state.fence
        fence = Fence(max(generation, before.generation), before.epoch + 1)
        journal = SystemRows(log, registry, fence, state)
        running = [event for event in read_events(journal) if event.state is RunState.RUNNING]
        if not running:
            return []
        token = registry.named("fence_token")
        value = token.value_type(deploy_generation=fence.generation, epoch=fence.epoch, holder=holder)
        rows = [finished(journal, event, RunState.ERROR, error=f"aborted by {holder}") for event in running]
        marks = {AppTxn.DEPLOY_GENERATION: fence.generation, AppTxn.EPOCH: fence.epoch, AppTxn.RUNNING_STEP: 0}
        try:
            journal.append(Operation.FENCE, [journal.change(token.key_type(scope="store"), value), *rows], marks)
        except ConflictError:
            continue
        return running
