"""The upgrade check: the whole upgrade, tried on a scratch copy with every row verified.

The store itself is only read: no fence is taken, and not a byte is written there. Rows that break a rule are reported
and set aside in the copy, and the rest goes on, so that one check reports everything.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from catalog.engine.base.disk import free_bytes
from catalog.engine.base.project import Project
from catalog.engine.base.raised_text import error_text
from catalog.engine.base.scratch_folder import scratch_folder
from catalog.engine.builtins.plan import BuiltinPlan
from catalog.engine.log.place import StorePlace
from catalog.engine.migrate.executor import is_undone, mismatches
from catalog.engine.migrate.plan import LiveRows, StepPlan, StepPosition, describe, migration_of
from catalog.engine.migrate.preflight import require_spark, room_needed
from catalog.engine.migrate.recorder import read_events
from catalog.engine.migrate.row_types import registry_of
from catalog.engine.migrate.step_runner import StepRunner
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.spark.session_start import SessionStart
from catalog.engine.store.leader_upgrade import UpgradeOptions, migrate_builtins, open_stash, step_runner
from catalog.engine.store.scratch_copy import scratch_copy
from catalog.engine.store.snapshot import StoreSnapshot
from catalog.errors import CatalogError, PreflightError, RetiredError, SparkStartError, StoreUnreachableError
from catalog.events import Observer, ignore, safe_observer
from catalog.tools.fsck.findings import FsckCode, Severity
from catalog.tools.fsck.stash import fsck
from catalog.tools.upgrade_check.prescreen import prescreen
from catalog.tools.upgrade_check.report import (
    BuiltinsReport,
    ErrorSummary,
    FsckSummary,
    StepOutcome,
    StepReport,
    UpgradeReport,
)
from catalog.tools.upgrade_check.trial import Trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX = "catalog-check-"
_COPIES_MAX = 5
"""Attempts at a copy whose source files are vacuumed meanwhile."""


def check_upgrade(
    place: StorePlace,
    *,
    spark: SparkSession | str | None = None,
    class_archive: str | Path | None = None,
    scratch: Path | None = None,
    observer: Observer = ignore,
) -> UpgradeReport:
    """Try the upgrade of a store on a copy, made in `scratch` or in the folder for temporary files.

    Executors on other machines must see `scratch` too. Raises only where nothing can be said about the upgrade: there
    is no store, it is too old or too new, damaged or out of reach, or there is no room or no Spark for the check.
    """
    began, copies = time.perf_counter(), 0
    place.identity()
    parent = scratch or Path(tempfile.gettempdir())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PreflightError(
            place.uri,
            f"no scratch copy can be made in {parent}",
            "make that folder, or name another that can be written to",
        )
    options = UpgradeOptions(spark, reapply=True, observer=safe_observer(observer), class_archive=class_archive)
    while True:
        copies += 1
        with scratch_folder(parent, _PREFIX) as folder:
            try:
                check, report = _Check.begin(place, options, folder)
            except RetiredError:
                if copies == _COPIES_MAX:
                    raise
                continue
            try:
                return replace(check.run(report), seconds=time.perf_counter() - began)
            finally:
                check.start.cancel()  # if nobody needed it


@dataclass(frozen=True, slots=True)
class _Check:
    """An upgrade tried on a scratch copy."""

    copy: StorePlace
    runner: StepRunner
    start: SessionStart

    @classmethod
    def begin(cls, place: StorePlace, options: UpgradeOptions, folder: Path) -> tuple[Self, UpgradeReport]:
        """Copy the newest state of a store; return the check of the copy, and what is known before any step ran."""
        store, project = StoreSnapshot.of(place), place.project
        store.require_types()
        report = UpgradeReport(
            store=place.uri,
            id=store.identity.id,
            version=store.version,
            target=project.current,
            ts=store.state.version,
            ok=False,
            steps=(),
            before=None,
            after=None,
            builtins=None,
            mismatches=tuple(event.value.name for event in mismatches(project, read_events(store.system_rows))),
            needs_reapply=is_undone(store.system_rows, project),
            startup_s=0.0,
            extra_bytes=0,
            seconds=0.0,
        )
        start = options.session_start()
        if _preflight(store, folder, has_session=options.spark is not None):
            start.begin()
        try:
            copy = scratch_copy(place, store.log, store.state, folder, with_shards=True)
            return cls(copy, step_runner(copy, copy.log(), store.state.fence, options, start), start), report
        except BaseException:
            start.cancel()
            raise

    def run(self, report: UpgradeReport) -> UpgradeReport:
        """Check the rows, try every step and the builtins; return the complete report."""
        journal, project = self.runner.journal, self.runner.project
        trial, before, after = Trial(self.runner), None, None
        if journal.version >= project.first_proto:
            before = self._fsck()
            if not before.ok:
                screened = prescreen(journal, project)
                trial.excluded = screened.excluded
                counts = screened.set_aside.total(), screened.left_out.total()
                before = replace(before, set_aside=counts[0], left_out=counts[1])
        spark_s = self._start_spark()
        steps = tuple(self._steps(trial))
        if steps and all(step.outcome is not StepOutcome.NOT_RUN and step.error is None for step in steps):
            after = self._fsck()
        builtins = self._builtins()
        checked = [own for own in (before, after) if own is not None]
        sound = all(step.outcome is StepOutcome.OK for step in steps) and all(own.ok for own in checked)
        sound = sound and (builtins is None or builtins.outcome is StepOutcome.OK)
        return replace(
            report,
            ok=sound and not (steps and report.mismatches),
            steps=steps,
            before=before,
            after=after,
            builtins=builtins,
            startup_s=spark_s + sum(step.own_s for step in steps),
            extra_bytes=sum(step.bytes_written for step in steps),
            deleted=_deleted(steps),
        )

    def _builtins(self) -> BuiltinsReport | None:
        """Migrate the builtins of the copy, as a leader does after the steps."""
        journal, project = self.runner.journal, self.runner.project
        if project.builtins is None:
            return None
        if journal.version != project.current:
            return BuiltinsReport(StepOutcome.NOT_RUN)
        stash = open_stash(self.copy, journal.log)
        stash.resume(journal.fence)
        try:
            tables = migrate_builtins(self.copy, stash)
        except CatalogError as error:
            return BuiltinsReport(StepOutcome.FAILED, _error_summary(error))
        return None if tables is None else _builtins_report(tables.outcome.plan)

    def _fsck(self) -> FsckSummary:
        """Check the rows of the copy; files that earlier attempts left in it are no finding.

        Enum values that were stored before are noted: they do not keep a start from upgrading the store.
        """
        journal, project = self.runner.journal, self.runner.project
        version = journal.version
        report = fsck(journal.log, registry_of(project, version), project.constraints.at(version))
        findings = tuple(
            replace(finding, severity=Severity.NOTE) if finding.code is FsckCode.UNDECLARED else finding
            for finding in report.findings
            if finding.code is not FsckCode.ORPHAN
        )
        counts = dict(report.counts)
        counts.pop(FsckCode.ORPHAN, None)
        return FsckSummary(version, findings, counts)

    def _start_spark(self) -> float:
        """Wait for Spark if a step needs it; return how long its start took."""
        if not any(step.needs_spark for step in _plans(self.runner.project, self.runner.journal)):
            return 0.0
        _ = self.runner.jobs.session
        return self.start.elapsed_s

    def _steps(self, trial: Trial) -> Iterator[StepReport]:
        project, journal = self.runner.project, self.runner.journal
        versions = range(journal.version, project.current)
        rows = {step.previous: step.rows_to_rewrite for step in _plans(project, journal)}
        for number, version in enumerate(versions, 1):
            began = time.perf_counter()
            to_come = sum(rows.get(later, 0) for later in versions[number:])
            try:
                yield trial.run(migration_of(project, version), StepPosition(number, len(versions), to_come))
            except (StoreUnreachableError, SparkStartError):
                raise  # a failure of the scratch copy or of this machine says nothing about the step
            except Exception as error:  # noqa: BLE001 - a migration may raise anything
                failed = self._unrun(version)
                seconds = time.perf_counter() - began
                yield replace(failed, outcome=StepOutcome.FAILED, error=_error_summary(error), seconds=seconds)
                yield from (self._unrun(later) for later in versions[number:])
                return

    def _unrun(self, version: int) -> StepReport:
        project, journal = self.runner.project, self.runner.journal
        try:
            plan = describe(migration_of(project, version), journal.state, version)
        except Exception:  # noqa: BLE001 - reported for the step that failed
            return StepReport(f"v{version}_to_v{version + 1}", version, version + 1, "", StepOutcome.NOT_RUN)
        return StepReport(plan.name, version, version + 1, plan.summary, StepOutcome.NOT_RUN)


def _deleted(steps: Iterable[StepReport]) -> dict[str, int]:
    total = Counter[str]()
    for step in steps:
        total.update({own.collection: own.deleted for own in step.collections if own.deleted})
    return dict(total)


def _preflight(store: StoreSnapshot, folder: Path, *, has_session: bool) -> bool:
    """Refuse a check without Spark or without room for the copy and the files of the steps; tell if Spark is needed."""
    steps = list(_plans(store.place.project, store.system_rows))
    needs_spark = any(step.needs_spark for step in steps)
    if needs_spark and not has_session:
        require_spark(store.place.uri)
    needed = sum(file.size for file in store.state.files.values()) + room_needed(steps)
    free = free_bytes(folder)
    if free < needed:
        raise PreflightError(
            store.place.uri,
            f"a scratch copy needs about {needed >> 20} MiB in {folder.parent}, and {free >> 20} MiB are free",
            "make room there, or name another folder for scratch copies",
        )
    return needs_spark


def _plans(project: Project, journal: SystemRows) -> Iterator[StepPlan]:
    """Yield the plans of the steps that can be described; the others fail when they are run."""
    for version in range(journal.version, project.current):
        with suppress(Exception):
            yield describe(migration_of(project, version), journal.state, version, LiveRows(journal.log))


def _builtins_report(plan: BuiltinPlan) -> BuiltinsReport:
    return BuiltinsReport(
        StepOutcome.OK,
        evolved=tuple(str(change.builtin.name) for change in plan.evolved),
        replaced=tuple(str(change.builtin.name) for change in plan.replaced),
        created=tuple(str(creation.builtin.name) for creation in plan.created),
        given_up=tuple(str(name) for name in plan.given_up),
    )


def _error_summary(error: Exception) -> ErrorSummary:
    if isinstance(error, CatalogError):
        return ErrorSummary(error.what, error.why, error.next)
    return ErrorSummary(
        error_text(error),
        "the step raised it outside of any row",
        "correct the migration, and check again",
    )
