"""One step: said to run, executed, committed in one commit, or failed with nothing changed but its event."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from catalog.engine import events
from catalog.engine.execution import ALLOCATORS, Execution
from catalog.engine.journal import Journal
from catalog.engine.made import Made, Source
from catalog.engine.plan import StepPlan, describe
from catalog.engine.progress import Meter
from catalog.engine.types import ENGINE_COLLECTIONS, registry_of
from catalog.errors import (
    CatalogError,
    ConflictError,
    FencedError,
    IndeterminateError,
    StepDisturbedError,
    StepRefusedError,
)
from catalog.log.files import file_collection
from catalog.log.protocol import Commit, DataFile, FileKind, Mark, Operation
from catalog.notices import Observer, ignore
from catalog.project import MigrationModule, Project
from catalog.spark.jobs import SparkJobs
from catalog.stash.collections import encode
from catalog.stash.transaction import RowChange

_ATTEMPTS = 3
_POLL_S = 0.5
"""How long another leader may go unnoticed by a running step."""


class StepPoint(StrEnum):
    """A place in a step where a process may stop."""

    BEFORE_BEGIN = "step:before-begin"
    AFTER_BEGIN = "step:after-begin"
    AFTER_TASKS = "step:after-tasks"
    BEFORE_COMMIT = "step:before-commit"
    AFTER_COMMIT = "step:after-commit"


def pass_on(_point: StepPoint) -> None:
    """What is done at each point outside of tests: nothing."""


def permit(_plan: StepPlan) -> None:
    """For steps that may take as long as they take."""


@dataclass(slots=True)
class Runner:
    """Runs steps of a store that this process leads."""

    journal: Journal
    project: Project
    place: tuple[str, Mapping[str, str]]
    jobs: SparkJobs
    observer: Observer = ignore
    reached: Callable[[StepPoint], None] = pass_on
    permit: Callable[[StepPlan], None] = permit
    """Asked before a step, and while rows are left to be rewritten; raises to stop it, and nothing is committed."""

    def run(self, module: MigrationModule) -> Made:
        """Take the store one version on; raises with the store as it was."""
        plan = describe(module, self.journal.state, self.journal.version)
        self.reached(StepPoint.BEFORE_BEGIN)
        self.permit(plan)
        meter = Meter(self.observer, plan)
        meter.begin()
        try:
            made = self._recorded(module, plan, meter)
        except BaseException as error:
            meter.fail(error, _reason(error))
            raise
        self.reached(StepPoint.AFTER_COMMIT)
        meter.commit(made.counts)
        return made

    def _recorded(self, module: MigrationModule, plan: StepPlan, meter: Meter) -> Made:
        """Execute and commit under an event, which says how it ended."""
        number = events.begin(self.journal, plan, str(self.project.build))
        try:
            self.reached(StepPoint.AFTER_BEGIN)
            return self._committed(module, plan, number, meter)
        except (FencedError, IndeterminateError):
            raise  # not ours to write any more, or not known to be open still
        except (Exception, KeyboardInterrupt) as error:
            events.fail(self.journal, number, _reason(error))
            raise

    def _committed(self, module: MigrationModule, plan: StepPlan, number: int, meter: Meter) -> Made:
        disturbed: frozenset[str] = frozenset()
        for _ in range(_ATTEMPTS):
            self.journal.refresh()
            plan = describe(module, self.journal.state, plan.previous)
            made = Execution(self.source(meter), plan, self.journal.state).run()
            self.reached(StepPoint.AFTER_TASKS)
            if made.violations:
                first = made.violations.listed[0]
                count = made.violations.counts[first.rule]
                raise StepRefusedError(plan.name, first.rule, str(first), count, plan.previous)
            self.reached(StepPoint.BEFORE_COMMIT)
            disturbed = self.commit(plan, number, made)
            if not disturbed:
                return made
        raise StepDisturbedError(plan.name, ", ".join(sorted(disturbed)), _ATTEMPTS)

    def commit(self, plan: StepPlan, number: int, made: Made) -> frozenset[str]:
        """Commit what was made; answers the collections that were changed meanwhile, and then nothing is committed."""
        marks = {Mark.STASH_VERSION: plan.version, Mark.RUNNING_STEP: 0}
        while True:
            rows = [*self._rows(plan, number, made)]
            adds = [self._dated(file) for file in made.adds]
            try:
                self.journal.append(
                    Operation.MIGRATE,
                    rows,
                    marks,
                    adds=adds,
                    removes=made.removes,
                    details={"step": plan.name, "event": str(number)},
                )
            except ConflictError:
                disturbed = _touched(self.journal.refresh()) & made.depends
                if disturbed:
                    return frozenset(disturbed)
            else:
                return frozenset()

    def _rows(self, plan: StepPlan, number: int, made: Made) -> Sequence[RowChange]:
        """The engine's own rows of the commit, and the allocators that the step moved on."""
        config = self.journal.registry.named("config")
        event = next(event for event in events.read_events(self.journal) if event.id == number)
        counts = {
            name: sum(getattr(counts, name) for counts in made.counts.values())
            for name in ("rows_before", "rows_after", "bytes_before", "bytes_after")
        }
        rows = [
            self.journal.change(config.key_type(name="stash_version"), config.value_type(number=plan.version)),
            events.closed(self.journal, event, events.State.MIGRATED, counts=counts),
        ]
        ids = registry_of(self.project, plan.version).by_name.get(ALLOCATORS)
        for allocator, following in made.next_ids.items():
            if ids is not None:
                key, value = encode(ids.key_type(name=allocator)), encode(ids.value_type(next_id=following))
                rows.append(RowChange(ids, key, self.journal.view(ALLOCATORS).get(ALLOCATORS, key), value))
        return [row for row in rows if row.before != row.after]

    def _dated(self, file: DataFile) -> DataFile:
        """A tail file carries the ts of its commit: written again if others committed meanwhile."""
        ts = self.journal.state.version + 1
        if file.kind is FileKind.BASE or file.ts_max == ts:
            return file
        rows = self.journal.log.read(file)
        dates = pa.repeat(pa.scalar(ts, pa.int64()), rows.num_rows)
        rows = rows.set_column(2, rows.schema.field("ts"), dates)
        return self.journal.log.write(file.collection, file.kind, self.journal.fence, rows)

    def source(self, meter: Meter) -> Source:
        """What a step runs on: polls the fence, and tells how far it is."""
        polled = time.monotonic()

        def watch(done: int, count: int) -> None:
            nonlocal polled
            if time.monotonic() - polled > _POLL_S:
                self._poll()
                polled = time.monotonic()
            meter.advance(done, count)
            if meter.reached < 1:
                self.permit(meter.plan)

        return Source(self.journal.log, self.project, self.place, self.journal.fence, self.jobs, watch)

    def _poll(self) -> None:
        """See whether another leader took over, without moving on from the state that the step reads."""
        newest = self.journal.log.head(self.journal.state.version)
        if newest != self.journal.state.version:
            fence = self.journal.log.state(newest).fence
            if fence != self.journal.fence:
                raise FencedError(self.journal.fence, fence)


def _reason(error: BaseException) -> str:
    """Why a step was not applied, in one line where the error has one."""
    if isinstance(error, CatalogError):
        return error.what
    return f"{type(error).__name__}: {error}" if isinstance(error, Exception) else "it was interrupted"


def _touched(commits: Sequence[Commit]) -> set[str]:
    """The collections that commits changed, engine collections aside."""
    found = {file.collection for commit in commits for file in commit.adds}
    found |= {file_collection(path) for commit in commits for path in commit.removed_paths}
    return found - ENGINE_COLLECTIONS
