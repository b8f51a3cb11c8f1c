"""Whether a store can be upgraded: the whole upgrade, tried on a scratch copy with every row verified.

The store itself is only read: nobody is fenced, and not a byte is written there. What breaks a rule is set aside in the
copy and told, and the rest goes on, so that one check tells of everything.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.builtin.keeping import keep
from catalog.builtin.plan import Plan
from catalog.builtin.run import run_leader
from catalog.copying import scratch_copy
from catalog.engine.events import read_events
from catalog.engine.journal import Journal
from catalog.engine.plan import StepPlan, describe, migration_of
from catalog.engine.run import is_undone, mismatches, require_spark, room_needed
from catalog.engine.scratch import scratch_folder
from catalog.engine.sifting import sift
from catalog.engine.step import Runner
from catalog.engine.trial import Trial
from catalog.engine.types import registry_of
from catalog.engine.verdict import BuiltinsVerdict, Look, Outcome, StepVerdict, Trouble, Verdict
from catalog.errors import (
    CatalogError,
    NotInitializedError,
    PreflightError,
    RetiredError,
    SparkStartError,
    StoreUnreachableError,
)
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Mark
from catalog.log.storage import open_storage
from catalog.notices import Observer, guarded, ignore
from catalog.project import Place, Project
from catalog.spark.jobs import SparkJobs
from catalog.spark.session import find_session
from catalog.stash.collections import Registry
from catalog.stash.findings import Code
from catalog.stash.fsck import fsck
from catalog.stash.identity import Identity, require_identity
from catalog.stash.stash import Stash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX = "catalog-check-"
_COPIES_MAX = 5
"""So often a copy is begun again whose files were vacuumed meanwhile."""


def check_upgrade(
    project: Project,
    store_uri: str,
    options: Mapping[str, str],
    *,
    spark: SparkSession | str | None = None,
    scratch: Path | None = None,
    observer: Observer = ignore,
) -> Verdict:
    """Try the upgrade of a store on a copy, made in `scratch` or where this machine keeps such folders.

    Executors on other machines must see `scratch` too. Raises only where nothing can be said of the upgrade: the store
    is none, too old or too new, damaged or out of reach, or there is no room or no Spark for the check.
    """
    began = time.perf_counter()
    storage = open_storage(store_uri, options)
    identity = require_identity(storage, project.name)
    subject = _Subject(project, storage.uri, options, identity, spark)
    place = scratch or Path(tempfile.gettempdir())
    if not os.access(place, os.W_OK | os.X_OK):
        raise PreflightError(
            storage.uri,
            f"no scratch copy can be made in {place}",
            "make that folder, or name another that can be written to",
        )
    copies, told = 0, guarded(observer)
    while True:
        copies += 1
        with scratch_folder(place, _PREFIX) as folder:
            try:
                runner, verdict = subject.copied(folder, told)
            except RetiredError:
                if copies == _COPIES_MAX:
                    raise
                continue
            return replace(_Check(runner).judged(verdict), seconds=time.perf_counter() - began)


@dataclass(frozen=True, slots=True)
class _Subject:
    """The store: read, never written."""

    project: Project
    uri: str
    options: Mapping[str, str]
    identity: Identity
    spark: SparkSession | str | None

    def copied(self, folder: Path, observer: Observer) -> tuple[Runner, Verdict]:
        """What runs steps on a scratch copy of the newest state, and what can be said before any ran."""
        log = DeltaLog(f"{self.uri}/stash", self.options)
        registry = Registry.of(self.project.current_types)
        stash = Stash.open(log, registry, self.project.constraints)
        state = stash.head.state
        version = state.marks.get(Mark.STASH_VERSION)
        if version is None:
            raise NotInitializedError(log.uri)
        self.project.check_version(version)
        journal = Journal(log, registry, state.fence, state)
        verdict = Verdict(
            store=self.uri,
            id=self.identity.id,
            version=version,
            target=self.project.current,
            ts=state.version,
            ok=False,
            steps=(),
            before=None,
            after=None,
            builtins=None,
            mismatches=tuple(event.value.name for event in mismatches(self.project, read_events(journal))),
            needs_reapply=is_undone(journal, self.project),
            startup_s=0.0,
            extra_bytes=0,
            seconds=0.0,
        )
        self._preflight(journal, folder)
        copy = scratch_copy(self.project, log, state, folder, (open_storage(self.uri, self.options), self.options))
        jobs = SparkJobs(lambda: find_session(self.spark))
        copied = Journal(copy, registry, state.fence, copy.state(copy.verify()))
        return Runner(copied, self.project, (str(folder), {}), jobs, observer), verdict

    def _preflight(self, journal: Journal, folder: Path) -> None:
        steps = list(_plans(self.project, journal))
        if any(step.needs_spark for step in steps) and self.spark is None:
            require_spark(self.uri)
        needed = sum(file.size for file in journal.state.files.values()) + room_needed(steps)
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise PreflightError(
                self.uri,
                f"a scratch copy needs about {needed >> 20} MiB in {folder.parent}, and {free >> 20} MiB are free",
                "make room there, or name another folder for scratch copies",
            )


@dataclass(frozen=True, slots=True)
class _Check:
    runner: Runner

    def judged(self, verdict: Verdict) -> Verdict:
        journal, project = self.runner.journal, self.runner.project
        trial, before, after = Trial(self.runner), None, None
        if journal.version >= project.first_proto:
            before = self._looked()
            if not before.ok:
                sifted = sift(journal, project)
                trial.dead = sifted.dead
                counts = sifted.set_aside.total(), sifted.left_out.total()
                before = replace(before, set_aside=counts[0], left_out=counts[1])
        spark_s = self._start_spark()
        steps = tuple(self._steps(trial))
        if steps and all(step.outcome is not Outcome.NOT_RUN and step.error is None for step in steps):
            after = self._looked()
        builtins = self._builtins()
        looks = [look for look in (before, after) if look is not None]
        sound = all(step.outcome is Outcome.OK for step in steps) and all(look.ok for look in looks)
        sound = sound and (builtins is None or builtins.outcome is Outcome.OK)
        return replace(
            verdict,
            ok=sound and not (steps and verdict.mismatches),
            steps=steps,
            before=before,
            after=after,
            builtins=builtins,
            startup_s=spark_s + sum(step.own_s for step in steps),
            extra_bytes=sum(step.bytes_written for step in steps),
        )

    def _builtins(self) -> BuiltinsVerdict | None:
        """What a leader does last of all, done on the copy."""
        journal, project = self.runner.journal, self.runner.project
        if project.builtins is None:
            return None
        if journal.version != project.current:
            return BuiltinsVerdict(Outcome.NOT_RUN)
        place = Place(*self.runner.place, project)
        stash = Stash.open(journal.log, Registry.of(project.current_types), project.constraints)
        stash.resume(journal.fence)
        try:
            keeper = keep(place, stash, None, run_leader)
        except CatalogError as error:
            return BuiltinsVerdict(Outcome.FAILED, _trouble(error))
        plan = keeper.outcome.plan if keeper is not None else None
        return None if plan is None else _told(plan)

    def _looked(self) -> Look:
        """Everything that a check of a store looks at; what earlier tries left in the copy is no finding."""
        journal, project = self.runner.journal, self.runner.project
        version = journal.version
        report = fsck(journal.log, registry_of(project, version), project.constraints.at(version))
        findings = tuple(finding for finding in report.findings if finding.code is not Code.ORPHAN)
        counts = dict(report.counts)
        counts.pop(Code.ORPHAN, None)
        return Look(version, findings, counts)

    def _start_spark(self) -> float:
        """Start Spark if a step needs it; answer how long that took."""
        began = time.perf_counter()
        if not any(step.needs_spark for step in _plans(self.runner.project, self.runner.journal)):
            return 0.0
        _ = self.runner.jobs.session
        return time.perf_counter() - began

    def _steps(self, trial: Trial) -> Iterator[StepVerdict]:
        project, journal = self.runner.project, self.runner.journal
        versions = range(journal.version, project.current)
        for version in versions:
            began = time.perf_counter()
            try:
                yield trial.run(migration_of(project, version))
            except (StoreUnreachableError, SparkStartError):
                raise  # of the scratch copy or of this machine: nothing is known of the step
            except Exception as error:  # noqa: BLE001 - whatever a migration raises
                failed = self._unrun(version)
                seconds = time.perf_counter() - began
                yield replace(failed, outcome=Outcome.FAILED, error=_trouble(error), seconds=seconds)
                yield from (self._unrun(later) for later in versions[version - versions.start + 1 :])
                return

    def _unrun(self, version: int) -> StepVerdict:
        project, journal = self.runner.project, self.runner.journal
        try:
            plan = describe(migration_of(project, version), journal.state, version)
        except Exception:  # noqa: BLE001 - as it is told of the step that failed
            return StepVerdict(f"v{version}_to_v{version + 1}", version, version + 1, "", Outcome.NOT_RUN)
        return StepVerdict(plan.name, version, version + 1, plan.summary, Outcome.NOT_RUN)


def _plans(project: Project, journal: Journal) -> Iterator[StepPlan]:
    """The plans of the steps that can be described; of the others it is told when it is their turn."""
    for version in range(journal.version, project.current):
        with suppress(Exception):
            yield describe(migration_of(project, version), journal.state, version)


def _told(plan: Plan) -> BuiltinsVerdict:
    return BuiltinsVerdict(
        Outcome.OK,
        evolved=tuple(str(change.builtin.name) for change in plan.evolved),
        replaced=tuple(str(change.builtin.name) for change in plan.replaced),
        created=tuple(str(creation.builtin.name) for creation in plan.created),
        given_up=tuple(str(name) for name in plan.given_up),
    )


def _trouble(error: Exception) -> Trouble:
    if isinstance(error, CatalogError):
        return Trouble(error.what, error.why, error.next)
    return Trouble(
        f"{type(error).__name__}: {error}",
        "the step raised it outside of any row",
        "mend the migration, and check again",
    )
