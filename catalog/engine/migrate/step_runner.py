"""The run of one step: recorded, executed, and committed in one commit; if it fails, only its event changes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from catalog.actions import Frame
from catalog.engine.base.project import Project
from catalog.engine.log.data_files import file_collection
from catalog.engine.log.protocol import AppTxn, Commit, DataFile, FileKind, Operation
from catalog.engine.migrate import recorder
from catalog.engine.migrate.plan import StepPlan
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS, registry_of
from catalog.engine.migrate.step_execution import execute
from catalog.engine.migrate.step_progress import StepProgress
from catalog.engine.migrate.step_result import StepContext, StepResult
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.spark.java_errors import java_errors
from catalog.engine.spark.jobs import SparkJobs
from catalog.engine.stash.engine_rows import ALLOCATORS
from catalog.engine.stash.recorded_types import record_rows
from catalog.engine.stash.registry import encode
from catalog.engine.stash.transaction import RowChange
from catalog.errors import (
    CatalogError,
    ConflictError,
    FencedError,
    IndeterminateError,
    MigrationFailedError,
    SparkJobError,
    StepDisturbedError,
    StepRefusedError,
)
from catalog.events import Observer, ignore

_ATTEMPTS = 3
_POLL_S = 0.5
_OF_EXPRESSIONS = re.compile(r"SQLSTATE: (?:0A|21|22|42|P0)")
"""The classes of SQLSTATE for which an expression is to blame."""
"""The longest time for which a running step does not notice another leader."""


class StepPoint(StrEnum):
    """A place in a step where a process may stop."""

    BEFORE_BEGIN = "step:before-begin"
    AFTER_BEGIN = "step:after-begin"
    AFTER_TASKS = "step:after-tasks"
    BEFORE_COMMIT = "step:before-commit"
    AFTER_COMMIT = "step:after-commit"


def no_step_fault(_point: StepPoint) -> None:
    """Do nothing; tests do something at each point."""


def permit(_plan: StepPlan) -> None:
    """Permit every step, for as long as it takes."""


@dataclass(slots=True)
class StepRunner:
    """Runs steps of a store that this process leads."""

    journal: SystemRows
    project: Project
    place: tuple[str, Mapping[str, str]]
    jobs: SparkJobs
    observer: Observer = ignore
    reached: Callable[[StepPoint], None] = no_step_fault
    permit: Callable[[StepPlan], None] = permit
    """Asked before a step, and while rows are left to be rewritten; raises to stop it, and nothing is committed."""

    def run(self, plan: StepPlan) -> StepResult:
        """Take the store one version on; raise with the store as it was."""
        self.reached(StepPoint.BEFORE_BEGIN)
        self.permit(plan)
        progress = StepProgress(self.observer, plan)
        progress.begin()
        try:
            result = self._run_recorded(plan, progress)
        except BaseException as error:
            progress.fail(error, _reason(error))
            raise
        self.reached(StepPoint.AFTER_COMMIT)
        progress.commit(result.counts)
        return result

    def _run_recorded(self, plan: StepPlan, progress: StepProgress) -> StepResult:
        """Execute and commit a step; an event records how it ended."""
        number = recorder.begin(self.journal, plan, str(self.project.build))
        try:
            self.reached(StepPoint.AFTER_BEGIN)
            return self._execute_and_commit(plan, number, progress)
        except (FencedError, IndeterminateError):
            raise  # this process must not write any more, or the commit may have landed
        except (Exception, KeyboardInterrupt) as error:
            recorder.fail(self.journal, number, _reason(error))
            raise

    def _execute_and_commit(self, plan: StepPlan, number: int, progress: StepProgress) -> StepResult:
        disturbed: frozenset[str] = frozenset()
        for _ in range(_ATTEMPTS):
            self.journal.refresh()
            with java_errors(), _frame_errors(plan):
                result = execute(self.step_context(plan, progress))
            self.reached(StepPoint.AFTER_TASKS)
            _require_no_violations(plan, result)
            self.reached(StepPoint.BEFORE_COMMIT)
            disturbed = self.commit(plan, number, result)
            if not disturbed:
                return result
        raise StepDisturbedError(plan.name, ", ".join(sorted(disturbed)), _ATTEMPTS)

    def commit(self, plan: StepPlan, number: int, result: StepResult) -> frozenset[str]:
        """Commit a result; return the collections that others changed meanwhile, in which case nothing is committed."""
        marks = {AppTxn.STASH_VERSION: plan.version, AppTxn.RUNNING_STEP: 0}
        while True:
            try:
                self.journal.append(
                    Operation.MIGRATE,
                    self._rows(plan, number, result),
                    marks,
                    adds=[self._with_commit_ts(file) for file in result.adds],
                    removes=result.removes,
                    details={"step": plan.name, "event": str(number)},
                )
            except ConflictError:
                disturbed = _touched(self.journal.refresh()) & result.depends
                if disturbed:
                    return frozenset(disturbed)
            else:
                return frozenset()

    def _rows(self, plan: StepPlan, number: int, result: StepResult) -> Sequence[RowChange]:
        """Return the engine's own rows of the commit, and the allocators that the step moved on."""
        config = self.journal.registry.named("config")
        event = next(event for event in recorder.read_events(self.journal) if event.id == number)
        counts = {
            name: sum(getattr(counts, name) for counts in result.counts.values())
            for name in ("rows_before", "rows_after", "bytes_before", "bytes_after")
        }
        rows = [
            self.journal.change(config.key_type(name="stash_version"), config.value_type(number=plan.version)),
            recorder.finished(self.journal, event, recorder.RunState.MIGRATED, counts=counts),
            *(self.journal.change(*row) for row in record_rows(self.project, plan.version)),
        ]
        ids = registry_of(self.project, plan.version).by_name.get(ALLOCATORS)
        for allocator, following in result.next_ids.items():
            if ids is not None:
                key, value = encode(ids.key_type(name=allocator)), encode(ids.value_type(next_id=following))
                rows.append(RowChange(ids, key, self.journal.view(ALLOCATORS).get(ALLOCATORS, key), value))
        return [row for row in rows if row.before != row.after]

    def _with_commit_ts(self, file: DataFile) -> DataFile:
        """Return a file with the ts of the commit; a tail file is written again if others committed meanwhile."""
        ts = self.journal.state.version + 1
        if file.kind is FileKind.BASE or file.ts_max == ts:
            return file
        rows = self.journal.log.read(file)
        dates = pa.repeat(pa.scalar(ts, pa.int64()), rows.num_rows)
        rows = rows.set_column(2, rows.schema.field("ts"), dates)
        return self.journal.log.write(file.collection, file.kind, self.journal.fence, rows)

    def step_context(
        self,
        plan: StepPlan,
        progress: StepProgress,
        *,
        is_thorough: bool = False,
        excluded: Mapping[str, AbstractSet[bytes]] | None = None,
    ) -> StepContext:
        """Return the context of a step at the newest known state; its watch polls the fence and reports progress."""
        polled = time.monotonic()

        def watch(done: int, count: int) -> None:
            nonlocal polled
            if time.monotonic() - polled > _POLL_S:
                self._poll()
                polled = time.monotonic()
            progress.advance(done, count)
            if progress.reached < 1:
                self.permit(plan)

        journal = self.journal
        return StepContext(
            plan,
            journal.state,
            journal.log,
            self.project,
            self.place,
            journal.fence,
            self.jobs,
            watch,
            is_thorough=is_thorough,
            excluded=excluded or {},
        )

    def _poll(self) -> None:
        """Raise if another leader took over; the state that the step reads stays the same."""
        newest = self.journal.log.head(self.journal.state.version)
        if newest != self.journal.state.version:
            fence = self.journal.log.state(newest).fence
            if fence != self.journal.fence:
                raise FencedError(self.journal.fence, fence)


def _require_no_violations(plan: StepPlan, result: StepResult) -> None:
    violations = result.violations
    if violations:
        first = violations.listed[0]
        raise StepRefusedError(plan.name, first.rule, str(first), violations.counts[first.rule], plan.previous)


@contextmanager
def _frame_errors(plan: StepPlan) -> Iterator[None]:
    """Tell an error of an expression in a frame, which Spark raises while it runs, from one of Spark itself."""
    try:
        yield
    except SparkJobError as error:
        found = _OF_EXPRESSIONS.search(error.reason)
        if found is None or not any(isinstance(action, Frame) for action in plan.actions):
            raise
        raise MigrationFailedError(plan.name, f"its frame raised {error.reason[: found.start()].rstrip()}") from error


def _reason(error: BaseException) -> str:
    """Return why a step was not applied, in one line where the error has one."""
    if isinstance(error, CatalogError):
        return error.what
    return f"{type(error).__name__}: {error}" if isinstance(error, Exception) else "it was interrupted"


def _touched(commits: Sequence[Commit]) -> set[str]:
    """Return the collections that commits changed, engine collections aside."""
    found = {file.collection for commit in commits for file in commit.adds}
    found |= {file_collection(path) for commit in commits for path in commit.removed_paths}
    return found - ENGINE_COLLECTIONS
