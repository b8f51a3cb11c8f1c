"""The verbs that take a store to a version: start, init, apply, undo, abort. They print nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
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
from catalog.cli.environment import Environment, Look, Timed
from catalog.cli.results import Answer
from catalog.errors import NoStoreError, NotInitializedError, UndoneError, UpgradeNeededError, UsageError
from catalog.handle import Mode
from catalog.log.protocol import Mark
from catalog.open import Upgrading, open_store
from catalog.stash.identity import read_identity

if TYPE_CHECKING:
    from catalog.engine.plan import StepPlan
    from catalog.engine.progress import Counts, Progress
    from catalog.engine.step import Runner


@dataclass(slots=True)
class Recorder:
    """Tells another of progress, and keeps what each step did."""

    progress: Progress
    steps: list[StepDone] = field(default_factory=list)
    _began_s: float = 0.0

    def began(self, plan: StepPlan) -> None:
        self._began_s = time.monotonic()
        self.progress.began(plan)

    def advanced(self, plan: StepPlan, rows: int, size: int) -> None:
        self.progress.advanced(plan, rows, size)

    def ended(self, plan: StepPlan, counts: Mapping[str, Counts]) -> None:
        sums = {
            name: sum(getattr(own, name) for own in counts.values())
            for name in ("rows_before", "rows_after", "bytes_before", "bytes_after")
        }
        self.steps.append(StepDone(plan.name, plan.version, time.monotonic() - self._began_s, **sums))
        self.progress.ended(plan, counts)


def start(
    environment: Environment,
    *,
    read_only: bool = False,
    reapply: bool = False,
    backup: str | None = None,
    progress: Progress | None = None,
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
    recorder = Recorder(_told(environment, progress))
    upgrading = Upgrading(environment.spark, reapply, recorder)
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


def apply(
    environment: Environment,
    *,
    until: int | None = None,
    only_next: bool = False,
    dry_run: bool = False,
    reapply: bool = False,
    progress: Progress | None = None,
) -> Answer:
    """Run the migrations that are due, all of them or up to a version; with `dry_run`, answer what they would do."""
    from catalog.engine.run import preflight, require_not_undone, upgrade, validate  # noqa: PLC0415

    project, look = environment.project, environment.look()
    project.check_version(look.version)
    target = _target(environment, look, until, only_next=only_next)
    if dry_run:
        undone = None if reapply or target <= look.version else _undone(look)
        return Answer(_planned(look, target), undone)
    if target <= look.version:
        return Answer(Applied(look.storage.uri, look.version, look.version, project.current, ()))
    journal = look.journal
    validate(project, journal)
    if not reapply:
        require_not_undone(journal, project)
    has_session = environment.spark is not None
    preflight(project, look.storage.uri, look.state, look.version, until=target, has_session=has_session)
    recorder = Recorder(_told(environment, progress))
    with _runner(environment, recorder) as runner:
        before = runner.journal.version
        upgrade(runner, target, reapply=reapply)
        after = runner.journal.version
    return Answer(Applied(look.storage.uri, before, after, project.current, tuple(recorder.steps)))


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
def _runner(environment: Environment, progress: Progress) -> Iterator[Runner]:
    from catalog.engine.step import Runner  # noqa: PLC0415
    from catalog.leading import leading  # noqa: PLC0415
    from catalog.spark.jobs import SparkJobs  # noqa: PLC0415
    from catalog.spark.session import find_session  # noqa: PLC0415

    place = environment.place
    jobs = SparkJobs(lambda: find_session(environment.spark))
    with leading(place, environment.patience) as leader:
        yield Runner(leader.journal, environment.project, (place.uri, place.options), jobs, progress)


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


def _told(environment: Environment, progress: Progress | None) -> Progress:
    from catalog.engine.progress import Silent  # noqa: PLC0415

    return Timed(progress or Silent(), environment)
