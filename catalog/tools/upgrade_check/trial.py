"""The trial of a step on a scratch copy: every row is verified, and rows that break a rule are set aside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

from catalog.engine.base.project import MigrationModule
from catalog.engine.log.protocol import LogState
from catalog.engine.migrate import recorder
from catalog.engine.migrate.plan import LiveRows, StepPlan, StepPosition, describe
from catalog.engine.migrate.row_errors import Keys, add_keys
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS, registry_of, row_types
from catalog.engine.migrate.step_execution import execute
from catalog.engine.migrate.step_job import file_actions
from catalog.engine.migrate.step_progress import Counts, StepProgress
from catalog.engine.migrate.step_result import StepResult
from catalog.engine.migrate.step_runner import StepRunner
from catalog.engine.migrate.violations import Violations
from catalog.engine.stash.view import BaseFileCache, live_rows, load_view
from catalog.errors import UnwrittenStepError
from catalog.tools.upgrade_check.drop_rows import drop_referring_rows, drop_rows
from catalog.tools.upgrade_check.field_scan import FieldScan
from catalog.tools.upgrade_check.fields import compare_fields
from catalog.tools.upgrade_check.repetition import check_repetition
from catalog.tools.upgrade_check.report import CollectionReport, FieldReport, StepOutcome, StepReport

_RUNS_MAX = 5
"""A step that refuses stored rows runs again without them; a correct one then refuses none."""


@dataclass(slots=True)
class Trial:
    """Takes a scratch copy from one version to the next, with every row verified."""

    runner: StepRunner
    excluded: Keys = field(default_factory=dict)
    """Rows that were taken out so far."""

    def run(self, module: MigrationModule, position: StepPosition) -> StepReport:
        """Take the copy one version on; raise if the step cannot run at all."""
        began, journal = perf_counter(), self.runner.journal
        plan = replace(describe(module, journal.state, journal.version, LiveRows(journal.log)), position=position)
        progress = StepProgress(self.runner.observer, plan)
        progress.begin()
        number = recorder.begin(journal, plan, str(self.runner.project.build))
        totals = _Totals(journal.state, journal.state)
        result = self._execute(plan, progress, totals)
        committing = perf_counter()
        self.runner.commit(plan, number, result)
        totals.own_s += perf_counter() - committing
        committed = journal.state
        self._count_frame_changes(plan, totals, result)
        self._scan_fields(plan, totals, result, committed)
        check_repetition(replace(self.runner.step_context(plan, progress), state=totals.last), totals.violations)
        drop_rows(journal, result.bad_new.keys, result.bad_new.duplicated)
        add_keys(self.excluded, result.bad_new.keys)
        self._drop_referring_rows(totals, plan.version)
        progress.commit(result.counts)
        return StepReport(
            name=plan.name,
            previous=plan.previous,
            version=plan.version,
            summary=plan.summary,
            outcome=StepOutcome.FAILED if totals.violations else StepOutcome.OK,
            seconds=perf_counter() - began,
            own_s=totals.own_s,
            collections=tuple(self._collections(plan, totals, result)),
            violations=tuple(totals.violations.listed),
            counts=dict(totals.violations.counts),
            left_out=totals.left_out.total(),
            bytes_written=sum(file.size for file in result.adds),
            warnings=tuple(_warnings(totals.fields)),
        )

    def _execute(self, plan: StepPlan, progress: StepProgress, totals: _Totals) -> StepResult:
        """Execute the step without the stored rows that break a rule; these, and what refers to them, go first."""
        journal = self.runner.journal
        for _ in range(_RUNS_MAX):
            began, totals.last = perf_counter(), journal.state
            result = execute(self.runner.step_context(plan, progress, is_thorough=True, excluded=self.excluded))
            totals.violations.merge([result.violations])
            bad = result.bad_stored.keys
            if not bad:
                check_share = result.sampled_s / result.task_s if result.task_s else 0.0
                totals.own_s = (perf_counter() - began) * (1 - check_share)
                totals.set_aside += result.bad_new.set_aside
                return result
            journal.log.delete([file.path for file in result.adds])
            totals.set_aside.update({name: len(keys) for name, keys in bad.items()})
            drop_rows(journal, bad)
            add_keys(self.excluded, bad)
            self._drop_referring_rows(totals, plan.previous)
        raise UnwrittenStepError(plan.name, f"it refused other rows each of {_RUNS_MAX} times that it ran")

    def _drop_referring_rows(self, totals: _Totals, version: int) -> None:
        totals.left_out += drop_referring_rows(self.runner.journal, self.runner.project, version, self.excluded)

    def _count_frame_changes(self, plan: StepPlan, totals: _Totals, result: StepResult) -> None:
        """Count what frames did to the rows that they replaced, by their keys; tasks count for the other forms."""
        log, after = self.runner.journal.log, self.runner.journal.state
        for name in plan.rewrites - file_actions(plan).keys():
            old, new = (load_view(BaseFileCache(log), state, (name,)).rows(name) for state in (totals.last, after))
            counts, bad = result.counts[name], result.bad_new.keys.get(name, set())
            counts.changed, counts.deleted = _changed_and_deleted(old, new, bad)
            counts.inserted = counts.rows_after + result.bad_new.set_aside[name] + counts.deleted - counts.rows_before

    def _scan_fields(self, plan: StepPlan, totals: _Totals, result: StepResult, after: LogState) -> None:
        """Count the fields of rewritten collections before and after."""
        log, project = self.runner.journal.log, self.runner.project
        old_types, registry = row_types(project, plan.previous), registry_of(project, plan.version)
        for name in sorted((plan.rewrites - ENGINE_COLLECTIONS) & registry.by_name.keys() & old_types.keys()):
            then, now, new = FieldScan(), FieldScan(), registry.named(name)
            then.add(old_types[name], load_view(BaseFileCache(log), totals.last, (name,)).tables(name))
            now.add(new, load_view(BaseFileCache(log), after, (name,)).tables(name))
            action = next((own for own in plan.actions if name in own.writes), None)
            gone = result.counts[name].deleted + result.bad_new.set_aside[name]
            totals.fields[name] = compare_fields(old_types[name], new, then, now, gone, action)

    def _collections(self, plan: StepPlan, totals: _Totals, result: StepResult) -> Iterator[CollectionReport]:
        forms: dict[str, list[str]] = {}
        for work in plan.works:
            own = forms.setdefault(work.collection, [])
            own += [work.form] if work.form not in own else []
        log, after = self.runner.journal.log, self.runner.journal.state
        for name in (*forms, *sorted(({*totals.set_aside, *totals.left_out} - forms.keys()) - ENGINE_COLLECTIONS)):
            files = [state.files_of(name) for state in (totals.first, after)]
            rows_before, rows_after = (live_rows(log, own) for own in files)
            bytes_before, bytes_after = (sum(file.size for file in own) for own in files)
            counts = result.counts.get(name, Counts())
            yield CollectionReport(
                name,
                ", ".join(forms.get(name, [])),
                rows_before,
                rows_after,
                bytes_before,
                bytes_after,
                changed=counts.changed,
                inserted=counts.inserted,
                deleted=counts.deleted,
                set_aside=totals.set_aside[name],
                left_out=totals.left_out[name],
                fields=tuple(totals.fields.get(name, ())),
            )


@dataclass(slots=True)
class _Totals:
    first: LogState
    last: LogState
    """The state that its last run read: without the stored rows that it refuses."""
    violations: Violations = field(default_factory=Violations)
    set_aside: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    own_s: float = 0.0
    fields: dict[str, list[FieldReport]] = field(default_factory=dict)


def _warnings(fields: Mapping[str, Iterable[FieldReport]]) -> Iterator[str]:
    """Yield a sentence for each field that rows lose though they stay."""
    for collection, reports in fields.items():
        for own in reports:
            if own.is_warning:
                yield (
                    f"{collection}: {own.path} is set in {own.before or 0:,} rows before the step and in"
                    f" {own.after or 0:,} after it, and no deleted row explains it; keep the field, or if it is meant,"
                    f' say so in the action: empties=("{own.path}",)'
                )


def _changed_and_deleted(
    old: Iterator[tuple[bytes, bytes]], new: Iterator[tuple[bytes, bytes]], bad: set[bytes]
) -> tuple[int, int]:
    """Return how many rows, in the order of keys, have another value under their key, and how many are gone."""
    changed = deleted = 0
    following = next(new, None)
    for key, value in old:
        while following is not None and following[0] < key:
            following = next(new, None)
        if following is not None and following[0] == key:
            changed += following[1] != value
        elif key in bad:
            changed += 1
        else:
            deleted += 1
    return changed, deleted
