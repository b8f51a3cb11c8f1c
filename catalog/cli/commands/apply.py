"""`catalog apply`: plan or run the pending migrations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.observers import watched
from catalog.cli.upgrade_recorder import StepDone, UpgradeRecorder
from catalog.engine.store.leader_upgrade import UpgradeOptions, apply_migrations
from catalog.errors import UndoneError, UsageError
from catalog.events import Observer, together

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.cli.context import StoreTarget
    from catalog.engine.migrate.plan import StepPlan
    from catalog.engine.store.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class Applied:
    store: str
    version_before: int
    version: int
    current: int
    steps: tuple[StepDone, ...]
    builtins: str | None = None
    """The build to which the builtins were migrated; None if there was nothing to migrate."""


@dataclass(frozen=True, slots=True)
class PlannedWork:
    form: str
    collections: tuple[str, ...]
    files: int
    rows: int
    size: int
    replaces: bool
    """True if files are replaced; False if files are only added, or none is read or written."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    name: str
    version: int
    summary: str
    reason: str
    works: tuple[PlannedWork, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    store: str
    version: int
    until: int
    steps: tuple[PlannedStep, ...]
    rows_to_rewrite: int
    bytes_to_rewrite: int


def apply(
    run: Invocation, *, everything: bool, only_next: bool, until: int | None, dry_run: bool, reapply: bool
) -> CommandResult:
    """Run the pending migrations, all of them or up to a version; with `dry_run`, only plan them."""
    if everything + only_next + (until is not None) > 1:
        raise UsageError(
            "--all, --next and --until exclude each other", "each says how far to go", "give one of them, or none"
        )
    target = run.target
    if dry_run:
        look = target.look()
        return _plan(look, _last_version(look, until, only_next=only_next), reapply=reapply)
    with watched(run, target) as watch:
        last = _last_version(target.look(), until, only_next=only_next)
        return watch.settle(_apply(target, last, watch, reapply=reapply))


def plan_of(steps: Sequence[StepPlan]) -> tuple[PlannedStep, ...]:
    return tuple(PlannedStep(step.name, step.version, step.summary, step.reason, tuple(_works(step))) for step in steps)


def _plan(look: StoreSnapshot, last: int, *, reapply: bool) -> CommandResult:
    """Plan the steps up to a version. Fences no leader."""
    from catalog.engine.migrate.executor import is_undone  # noqa: PLC0415
    from catalog.engine.migrate.plan import LiveRows, plan  # noqa: PLC0415 - only a dry run plans here

    project = look.place.project
    steps = plan(project, look.state, look.version, last, LiveRows(look.log))
    planned = Planned(
        look.place.uri,
        look.version,
        last,
        plan_of(steps),
        sum(step.rows_to_rewrite for step in steps),
        sum(step.bytes_to_rewrite for step in steps),
    )
    is_refused = not reapply and last > look.version and is_undone(look.system_rows, project)
    error = UndoneError(look.version, project.current) if is_refused else None
    return CommandResult(planned, error, renderer="render_plan")


def _apply(target: StoreTarget, last: int, observer: Observer, *, reapply: bool) -> CommandResult:
    recorder = UpgradeRecorder()
    options = UpgradeOptions(
        target.spark, reapply, together(recorder, observer), target.permit, target.class_archive, last
    )
    before, after = apply_migrations(target.place, target.leadership, options)
    steps, current = tuple(recorder.steps), target.project.current
    return CommandResult(Applied(target.place.uri, before, after, current, steps, recorder.builtins))


def _last_version(look: StoreSnapshot, until: int | None, *, only_next: bool) -> int:
    """Return the version that the options ask for."""
    project = look.place.project
    look.require_types()
    if only_next:
        return min(look.version + 1, project.current)
    if until is not None and not project.minimum <= until <= project.current:
        raise UsageError(
            f"there is no version {until} to apply migrations up to",
            f"this build knows versions {project.minimum} to {project.current}",
            "give --until one of these",
        )
    return project.current if until is None else until


def _works(step: StepPlan) -> Iterator[PlannedWork]:
    """Group the work of a step by the form of its actions."""
    for form in dict.fromkeys(work.form for work in step.works):
        works = [work for work in step.works if work.form == form]
        replaced = [work for work in works if work.replaces]
        yield PlannedWork(
            form,
            tuple(work.collection for work in works),
            sum(work.files for work in replaced),
            sum(work.rows for work in replaced),
            sum(work.size for work in replaced),
            replaces=bool(replaced),
        )
