"""The verbs that take a store to a version: start, init, apply, undo, abort. They print nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from catalog.cli.answers import (
    Aborted,
    Applied,
    Initialized,
    Planned,
    PlannedStep,
    PlannedWork,
    Started,
    StepDone,
    Undone,
)
from catalog.cli.environment import Environment, Look
from catalog.cli.results import Answer
from catalog.errors import NoStoreError, NotInitializedError, UndoneError, UpgradeNeededError, UsageError
from catalog.handle import Mode
from catalog.log.protocol import Mark
from catalog.notices import Closed, Notice, Observer, Opening, Ready, StepCommitted, ignore, opening, together
from catalog.open import Upgrading, open_store
from catalog.stash.identity import read_identity

if TYPE_CHECKING:
    from catalog.engine.plan import StepPlan
    from catalog.engine.step import Runner


@dataclass(slots=True)
class Recorder:
    """Keeps what each step did."""

    steps: list[StepDone] = field(default_factory=list)

    def __call__(self, notice: Notice) -> None:
        if isinstance(notice, StepCommitted):
            rows, sizes = (notice.rows_before, notice.rows_after), (notice.bytes_before, notice.bytes_after)
            self.steps.append(StepDone(notice.plan.name, notice.plan.version, notice.seconds, *rows, *sizes))


def start(
    environment: Environment,
    *,
    read_only: bool = False,
    reapply: bool = False,
    backup: str | None = None,
    observer: Observer = ignore,
) -> Answer:
    """Open a store as an environment does when it starts, and close it again."""
    began_s = time.monotonic()
    before = _version(environment)
    if before is None and read_only:
        raise NotInitializedError(environment.storage.uri)
    copied = None
    if backup is not None and before is not None:
        from catalog.cli.debugging import copy  # noqa: PLC0415 - few ask for one

        copied = copy(environment, backup).data.copied
    recorder = Recorder()
    upgrading = Upgrading(environment.spark, reapply, together(recorder, observer), environment.permit)
    patience = environment.patience
    if patience.deploy_generation is None:
        patience = replace(patience, deploy_generation=0)
    mode = Mode.READ_ONLY if read_only else Mode.LEADER
    with open_store(environment.project, environment.store, mode, environment.options, patience, upgrading) as cat:
        started = Started(
            environment.storage.uri,
            str(mode),
            before,
            cat.version,
            cat.deploy_generation,
            cat.epoch,
            cat.ts,
            tuple(recorder.steps),
            copied,
            time.monotonic() - began_s,
        )
    if read_only and before is not None and before < environment.project.current:
        return Answer(started, UpgradeNeededError(started.store, before, environment.project.current))
    return Answer(started)


def init(environment: Environment, *, dry_run: bool = False) -> Answer:
    """Make a store at the current version; one that is there already stays as it is."""
    project, uri = environment.project, environment.storage.uri
    before = _version(environment)
    if before is not None:
        return Answer(Initialized(uri, before, done=False, exists=True, rows={}))
    rows = _initial_rows(environment)
    if dry_run:
        return Answer(Initialized(uri, project.current, done=False, exists=False, rows=rows))
    patience = replace(environment.patience, deploy_generation=environment.deploy_generation or 0)
    with open_store(project, environment.store, Mode.LEADER, environment.options, patience) as cat:
        return Answer(Initialized(uri, cat.version, done=True, exists=True, rows=rows))


def plan_apply(
    environment: Environment, *, until: int | None = None, only_next: bool = False, reapply: bool = False
) -> Answer:
    """What the migrations that are due would do. Nobody is fenced."""
    look = environment.look()
    environment.project.check_version(look.version)
    target = _target(environment, look, until, only_next=only_next)
    undone = None if reapply or target <= look.version else _undone(look)
    return Answer(_planned(look, target), undone)


def apply(
    environment: Environment,
    *,
    until: int | None = None,
    only_next: bool = False,
    reapply: bool = False,
    observer: Observer = ignore,
) -> Answer:
    """Run the migrations that are due, all of them or up to a version."""
    project, look = environment.project, environment.look()
    project.check_version(look.version)
    target = _target(environment, look, until, only_next=only_next)
    recorder = Recorder()
    told, uri = together(recorder, observer), look.storage.uri
    with opening(told, Opening(uri, project.name, Mode.LEADER, str(project.build), project.current)) as elapsed_s:
        before, after, state = look.version, look.version, look.state
        if target > look.version:
            from catalog.engine.run import upgrade  # noqa: PLC0415 - an up-to-date store needs none

            _require_applicable(look, target, reapply=reapply)
            with _runner(environment, told) as runner:
                before = runner.journal.version
                upgrade(runner, target, reapply=reapply)
                after, state = runner.journal.version, runner.journal.state
        if after == project.current:
            fence = state.fence.generation, state.fence.epoch
            told(Ready(uri, Mode.LEADER, after, *fence, state.version, elapsed_s()))
        told(Closed(after))
    return Answer(Applied(uri, before, after, project.current, tuple(recorder.steps)))


def _require_applicable(look: Look, target: int, *, reapply: bool) -> None:
    """Refuse, before anyone is fenced, what would not be applied."""
    from catalog.engine.run import preflight, require_not_undone, validate  # noqa: PLC0415

    environment, journal = look.environment, look.journal
    validate(environment.project, journal)
    if not reapply:
        require_not_undone(journal, environment.project)
    has_session = environment.spark is not None
    preflight(environment.project, look.storage.uri, look.state, look.version, until=target, has_session=has_session)


def plan_undo(environment: Environment, *, to: int | None = None) -> Answer:
    """Which steps an undo would take back; refused if there are none. Nobody is fenced."""
    from catalog.engine.undo import steps_above  # noqa: PLC0415

    look = environment.look()
    version = look.version
    environment.project.check_version(version)
    target = version - 1 if to is None else to
    if not environment.project.minimum <= target <= version:
        raise UsageError(
            f"cannot undo to version {target}: the store is at version {version}",
            "an undo takes the newest steps back, and this build knows versions "
            f"{environment.project.minimum} to {environment.project.current}",
            f"give --to a version below {version}",
        )
    steps = tuple(str(event.value.name) for event in steps_above(look.journal, target))
    return Answer(Undone(look.storage.uri, version, target, steps, done=False))


def undo(environment: Environment, *, to: int | None = None) -> Answer:
    """Take steps back, the newest first: one, or all down to a version."""
    from catalog.engine.undo import undo as undo_step  # noqa: PLC0415
    from catalog.leading import leading  # noqa: PLC0415

    planned: Undone = plan_undo(environment, to=to).data
    if not planned.steps:
        return Answer(planned)
    steps = []
    with leading(environment.place, environment.patience) as leader:
        while leader.journal.version > planned.version:
            steps.append(str(undo_step(leader.journal, environment.project).value.name))
        after = leader.journal.version
    return Answer(Undone(planned.store, planned.version_before, after, tuple(steps)))


def running(environment: Environment) -> Answer:
    """The steps that are said to run. Nobody is fenced."""
    from catalog.engine.events import State, read_events  # noqa: PLC0415

    look = environment.look()
    found = [str(event.value.name) for event in read_events(look.journal) if event.state is State.RUNNING]
    return Answer(Aborted(look.storage.uri, tuple(found), done=False))


def abort(environment: Environment) -> Answer:
    """Give up every step that is said to run: whoever runs it is fenced, and it is an ERROR."""
    from catalog.engine.undo import abort as abort_steps  # noqa: PLC0415
    from catalog.leading import holder  # noqa: PLC0415

    look = environment.look()
    generation = environment.deploy_generation
    aborted = abort_steps(
        look.log, look.journal.registry, holder(), look.state.fence.generation if generation is None else generation
    )
    return Answer(Aborted(look.storage.uri, tuple(str(event.value.name) for event in aborted)))


def plan_of(steps: list[StepPlan]) -> tuple[PlannedStep, ...]:
    return tuple(PlannedStep(step.name, step.version, step.summary, step.reason, tuple(_works(step))) for step in steps)


def _works(step: StepPlan) -> Iterator[PlannedWork]:
    """What happens to its collections, by form."""
    for form in dict.fromkeys(work.form for work in step.works):
        works = [work for work in step.works if work.form == form]
        replaced = [work for work in works if work.collection in step.rewrites and form != "insert"]
        yield PlannedWork(
            form,
            tuple(work.collection for work in works),
            sum(work.files for work in replaced),
            sum(work.rows for work in replaced),
            sum(work.size for work in replaced),
            replaces=bool(replaced),
        )


def _planned(look: Look, target: int) -> Planned:
    from catalog.engine.plan import plan  # noqa: PLC0415

    steps = plan(look.environment.project, look.state, look.version, target)
    return Planned(
        look.storage.uri,
        look.version,
        target,
        plan_of(steps),
        sum(step.rows_to_rewrite for step in steps),
        sum(step.bytes_to_rewrite for step in steps),
    )


def _undone(look: Look) -> UndoneError | None:
    """What keeps the next step from being applied, if somebody took it back."""
    from catalog.engine.run import is_undone  # noqa: PLC0415

    project = look.environment.project
    return UndoneError(look.version, project.current) if is_undone(look.journal, project) else None


def _target(environment: Environment, look: Look, until: int | None, *, only_next: bool) -> int:
    project = environment.project
    if only_next:
        return min(look.version + 1, project.current)
    if until is not None and not project.minimum <= until <= project.current:
        raise UsageError(
            f"there is no version {until} to apply migrations until",
            f"this build knows versions {project.minimum} to {project.current}",
            "give --until one of these",
        )
    return project.current if until is None else until


@contextmanager
def _runner(environment: Environment, observer: Observer) -> Iterator[Runner]:
    from catalog.engine.step import Runner  # noqa: PLC0415
    from catalog.leading import leading  # noqa: PLC0415
    from catalog.spark.jobs import SparkJobs  # noqa: PLC0415
    from catalog.spark.session import find_session  # noqa: PLC0415

    place = environment.place
    jobs = SparkJobs(lambda: find_session(environment.spark))
    with leading(place, environment.patience, observer) as leader:
        own = (place.uri, place.options)
        yield Runner(leader.journal, environment.project, own, jobs, observer, permit=environment.permit)


def _version(environment: Environment) -> int | None:
    """The version of a store; none if it is not there or not initialised."""
    if read_identity(environment.storage, environment.project.name) is None:
        return None
    try:
        return environment.look().state.marks.get(Mark.STASH_VERSION)
    except NoStoreError:
        return None


def _initial_rows(environment: Environment) -> dict[str, int]:
    """What `initialize()` writes, tried in memory."""
    from catalog.log.memory import Memory, MemoryLog  # noqa: PLC0415
    from catalog.open import initialize_stash  # noqa: PLC0415
    from catalog.stash.collections import Registry  # noqa: PLC0415
    from catalog.stash.stash import Stash  # noqa: PLC0415

    project = environment.project
    log = MemoryLog(Memory())
    log.create("dry-run")
    stash = Stash.open(log, Registry.of(project.current_types), project.constraints)
    stash.head.serves = project.current
    stash.take_over(0, "dry-run")
    initialize_stash(project, stash)
    view = stash.view()
    return {name: view.table(name).num_rows for name in sorted(view.collections())}
