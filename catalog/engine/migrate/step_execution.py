"""The execution of a step up to its commit: its files written and verified, nothing committed.

`execute` is one path: context -> job -> counts -> scan of constraints -> violations -> result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from catalog.actions import Frame
from catalog.engine.codec import bounded_batches
from catalog.engine.codec.enum_values import UndeclaredValues
from catalog.engine.log.protocol import FileKind, LogState
from catalog.engine.migrate.constraint_hashes import HashesNeeded, HashKind, key_kind, unique_kind
from catalog.engine.migrate.frame_input import FrameRead
from catalog.engine.migrate.plan import StepPlan, touched
from catalog.engine.migrate.rewrite_task import HashFinding, TaskContext, TaskReport, kinds_of
from catalog.engine.migrate.row_errors import BadRows, Keys, add_keys, key_text
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS, RowColumns, row_types, undeclared_in
from catalog.engine.migrate.step_job import (
    StepJob,
    file_actions,
    has_few_rows,
    run_hash_job,
    run_step_job,
    session_for,
)
from catalog.engine.migrate.step_result import StepContext, StepResult
from catalog.engine.migrate.violation_lookup import ViolationLookup
from catalog.engine.migrate.violations import RowRule
from catalog.engine.stash.constraints import Reference
from catalog.engine.stash.engine_rows import ALLOCATORS
from catalog.engine.stash.registry import Collection, encode
from catalog.engine.stash.view import BaseFileCache, live_rows, load_view
from catalog.errors import UnwrittenStepError

_ROWS_PER_BUCKET = 500_000
_BUCKETS_MAX = 64


def execute(step: StepContext) -> StepResult:
    """Write and verify the files of a step; rows that break a rule are returned, not raised."""
    with session_for(step):
        context = task_context(step)
        next_ids = _next_ids(step)
        job = run_step_job(step, context, next_ids)
        result = _collect(step, job)
        if step.is_thorough and result.bad_stored:
            return replace(result, bad_new=BadRows())  # the step runs again without the bad stored rows
        _check_counts(step, job, next_ids, result)
        _check_enums(step, job.reports, result)
        lost = _collections_that_lost_keys(step, job.reports, result)
        findings = [*_relevant(context, job), *_scan(step, context, job.reports, result, lost)]
        result.bad_new.merge(_look_up(step, context, result, findings))
        _add_collections(step, result, lost)
        return result


def task_context(step: StepContext) -> TaskContext:
    """Return the context of the step's tasks, with the hashes that they compute."""
    plan = step.plan
    changed = plan.rewrites | plan.adds
    needed = {name: HashesNeeded.all_of(step.constraints, name) for name in changed}
    for target in {reference.target for own in needed.values() for reference in own.references} - needed.keys():
        needed[target] = HashesNeeded(keys=True)
    for reference in _from_untouched(step, _replaced_by_frames(plan)):
        own = needed.get(reference.collection, HashesNeeded())
        needed[reference.collection] = replace(own, references=(*own.references, reference))
    compared = _compared(step, needed)
    for name, own in () if has_few_rows(step, needed) else compared.items():
        rest = tuple(unique for unique in needed[name].uniques if unique not in own.uniques)
        needed[name] = replace(needed[name], keys=not own.keys, uniques=rest)
    return TaskContext(
        log=step.log,
        project=step.project.name,
        old=plan.previous,
        new=plan.version,
        fence=step.fence,
        base_ts=step.state.version,
        commit_ts=step.state.version + 1,
        created=changed - {file.collection for file in step.state.files.values()},
        needed={name: own for name, own in needed.items() if own},
        compared=compared,
        buckets=_buckets(step, needed),
        is_thorough=step.is_thorough,
    )


def _replaced_by_frames(plan: StepPlan) -> frozenset[str]:
    """Return the collections whose rows frames replace: any of their keys may be gone."""
    return plan.rewrites - file_actions(plan).keys()


def _from_untouched(step: StepContext, targets: AbstractSet[str]) -> list[Reference]:
    """Return the references to some collections from stored ones that the step does not touch."""
    plan = step.plan
    staying = {file.collection for file in step.state.files.values()} - plan.adds - plan.rewrites - plan.drops
    found = step.constraints.references
    return [reference for reference in found if reference.target in targets and reference.collection in staying]


def _compared(step: StepContext, needed: Mapping[str, HashesNeeded]) -> dict[str, HashesNeeded]:
    """Return the constraints that hold after an action that keeps rows if no row differs in their fields.

    Keys that others refer to are needed in any case; a thorough execution trusts nothing. Where rows are few, their
    hashes are made at once and looked at only if a row differs, which spares a second job.
    """
    if step.is_thorough:
        return {}
    targets = {reference.target for own in needed.values() for reference in own.references}
    return {
        name: HashesNeeded(
            keys=name not in targets,
            uniques=tuple(unique for unique in needed[name].uniques if unique.since <= step.plan.previous),
        )
        for action in step.plan.actions
        for name in action.writes
        if action.keeps_rows and name not in step.plan.adds
    }


def _buckets(step: StepContext, needed: Mapping[str, HashesNeeded]) -> int:
    """Return the number of buckets for as many hashes; of references few differ."""
    hashed = {name for name, own in needed.items() if own.keys or own.uniques}
    rows = sum(file.rows for file in step.state.files.values() if file.collection in hashed)
    return min(_BUCKETS_MAX, rows // _ROWS_PER_BUCKET + 1)


def _next_ids(step: StepContext) -> dict[str, int]:
    """Return the lowest free id of each allocator that an action takes ids from."""
    allocators = {action.allocator for action in step.plan.actions if action.allocator is not None}
    if not allocators:
        return {}
    if ALLOCATORS in step.plan.rewrites | step.plan.adds:
        raise UnwrittenStepError(step.plan.name, "it gives out ids and rewrites their allocators at once")
    kind = row_types(step.project, step.plan.previous)[ALLOCATORS]
    if not isinstance(kind, Collection):
        raise UnwrittenStepError(step.plan.name, "it gives out ids before rows are protobuf")
    view = load_view(BaseFileCache(step.log), step.state, (ALLOCATORS,))
    stored = {name: view.get(ALLOCATORS, encode(kind.key_type(name=name))) for name in allocators}
    return {
        name: 1 if value is None else int(kind.value_type.FromString(value).next_id)  # type: ignore[attr-defined]
        for name, value in stored.items()
    }


def _collect(step: StepContext, job: StepJob) -> StepResult:
    """Return the sum of the tasks' reports."""
    result, changed = StepResult(), step.plan.rewrites | step.plan.adds
    for read in job.reads:
        result.bad_stored.merge(read.bad_stored)
        result.task_s += read.seconds
        result.sampled_s += read.sampled_s
    for report in job.reports:
        result.bad_stored.merge(report.bad_stored)
        result.bad_new.merge(report.bad_new)
        result.task_s += report.seconds
        result.sampled_s += report.sampled_s
        if report.collection in changed:
            result.adds += report.files
            counts = result.counts_of(report.collection)
            counts.rows_before += report.rows_before
            counts.changed += report.changed
            counts.deleted += report.deleted
            for name, rows in report.inserted.items():
                result.counts_of(name).inserted += rows
            for name, rows in report.rows_after.items():
                result.counts_of(name).rows_after += rows
    return result


def _check_counts(step: StepContext, job: StepJob, next_ids: Mapping[str, int], result: StepResult) -> None:
    """Add a violation where rows or ids do not add up, and set the next ids."""
    if result.violations and not step.is_thorough:
        return  # tasks stopped early
    reports = job.reports
    _check_reads(step, job.reads, result)
    for name in file_actions(step.plan):
        own = [report.rows_read for report in reports if report.collection == name]
        for kind, read in ((FileKind.BASE, sum(r.base for r in own)), (FileKind.TAIL, sum(r.tail for r in own))):
            stored = sum(file.rows for file in step.state.files_of(name, kind))
            if stored != read:
                _violate(result, RowRule.ROWS, name, f"{read} of {stored} rows of its {kind} files were read")
    for action in step.plan.actions:
        for name in action.writes if action.keeps_rows else ():
            counts = result.counts_of(name)
            rows = counts.rows_after + result.bad_new.set_aside[name] - counts.inserted
            if rows != counts.rows_before:
                _violate(result, RowRule.ROWS, name, f"{counts.rows_before} rows became {rows}")
        if action.allocator is not None:
            takers = [report for report in reports if report.ids and report.collection in action.changes]
            start, used = result.next_ids.get(action.allocator, next_ids[action.allocator]), sum(r.ids for r in takers)
            bounds = [bound for report in takers for bound in report.id_bounds or ()]
            if bounds and (min(bounds), max(bounds)) != (start, start + used - 1):
                found = f"{used} new ids reach from {min(bounds)} to {max(bounds)}, and should be dense from {start}"
                _violate(result, RowRule.KEY, action.allocator, found)
            result.next_ids[action.allocator] = start + used


def _check_reads(step: StepContext, reads: Sequence[FrameRead], result: StepResult) -> None:
    """Add a violation where frames were not given every row, each of them once."""
    frames = [action for action in step.plan.actions if isinstance(action, Frame)]
    for name, count in Counter(name for action in frames for name in action.reads).items():
        entries = sum(read.entries for read in reads if read.collection == name)
        stored = count * sum(file.rows for file in step.state.files_of(name))
        if entries != stored:
            _violate(result, RowRule.ROWS, name, f"{entries} of {stored} rows of its files were read")


def _check_enums(step: StepContext, reports: Sequence[TaskReport], result: StepResult) -> None:
    """Add each enum value that the types do not declare, unless rows of the collection had it before the step."""
    found: dict[str, UndeclaredValues] = {}
    for report in reports:
        for name, own in report.undeclared.items():
            found.setdefault(name, UndeclaredValues()).merge(own)
    for name, values in found.items():
        before = _stored_undeclared(step, name)
        for (path, value), undeclared in values.found.items():
            if (path, value) not in before.found:
                key = key_text(step.registry.named(name), undeclared.key)
                result.bad_new.violations.add(RowRule.ENUM, name, key, undeclared.told(path, value))


def _stored_undeclared(step: StepContext, name: str) -> UndeclaredValues:
    found, old = UndeclaredValues(), row_types(step.project, step.plan.previous).get(name)
    if isinstance(old, Collection):
        for table in load_view(BaseFileCache(step.log), step.state, (name,)).tables(name):
            for batch in bounded_batches(table.select(["key", "value"])):
                columns = RowColumns(old).decode(batch["key"], batch["value"])
                found.merge(undeclared_in(old, batch["key"], columns))
    return found


def _collections_that_lost_keys(step: StepContext, reports: Sequence[TaskReport], result: StepResult) -> frozenset[str]:
    """Return the collections of which keys may be gone; a frame that makes no rows sends no report."""
    by_frames = _replaced_by_frames(step.plan)
    changed = {report.collection for report in reports if report.keys_changed}
    return frozenset({*by_frames, *changed, *result.bad_new.keys})


def _relevant(context: TaskContext, job: StepJob) -> list[HashFinding]:
    """Return the findings without those of constraints in whose fields no row differs from before."""
    differing = frozenset[HashKind]().union(*(report.differing for report in job.reports))
    compared = frozenset(kinds_of(context.compared))
    return [finding for finding in job.findings if finding[0] not in compared or finding[0] in differing]


def _scan(
    step: StepContext,
    context: TaskContext,
    reports: Sequence[TaskReport],
    result: StepResult,
    lost: frozenset[str],
) -> list[HashFinding]:
    """Return the findings of a second job over the rows after the step, if constraints need one.

    It hashes what was compared and differs, and references from collections that stay to rows that may be gone, as far
    as the first job did not.
    """
    differing = frozenset[HashKind]().union(*(report.differing for report in reports)) - {*kinds_of(context.needed)}
    needed = {
        name: HashesNeeded(
            keys=key_kind(name) in differing,
            uniques=tuple(unique for unique in own.uniques if unique_kind(unique) in differing),
        )
        for name, own in context.compared.items()
    }
    for reference in _from_untouched(step, lost - _replaced_by_frames(step.plan)):
        own = needed.get(reference.collection, HashesNeeded())
        needed[reference.collection] = replace(own, references=(*own.references, reference))
        needed[reference.target] = replace(needed.get(reference.target, HashesNeeded()), keys=True)
    needed = {name: own for name, own in needed.items() if own}
    if not needed or (result.violations and not step.is_thorough):
        return []
    context = replace(context, needed=needed, buckets=_buckets(step, needed))
    job = run_hash_job(step, context, _state_after(step, result))
    result.task_s += sum(report.seconds for report in job.reports)
    return job.findings


def _look_up(step: StepContext, context: TaskContext, result: StepResult, findings: Sequence[HashFinding]) -> BadRows:
    """Return the rows that findings of hashes turn out to be."""
    if not findings:
        return BadRows()
    tail = {file.path: file for file in result.adds if file.kind is FileKind.TAIL}
    after = _state_after(step, result)
    whole = replace(after, files={path: file for path, file in after.files.items() if path not in tail})
    excluded: Keys = {}
    add_keys(excluded, step.excluded)
    add_keys(excluded, result.bad_new.keys)
    additions = list(tail.values())
    lookup = ViolationLookup(step.log, whole, additions, step.registry, step.constraints, context.hash_key, excluded)
    return lookup.name(findings, is_thorough=step.is_thorough)


def _state_after(step: StepContext, result: StepResult) -> LogState:
    """Return the state with the files that the commit would leave."""
    replaced = step.plan.rewrites | step.plan.drops
    files = {path: file for path, file in step.state.files.items() if file.collection not in replaced}
    return replace(step.state, files=files | {file.path: file for file in result.adds})


def _add_collections(step: StepContext, result: StepResult, lost: frozenset[str]) -> None:
    """Add the files to remove, the sizes of collections, and the collections that the commit depends on."""
    plan, after = step.plan, _state_after(step, result)
    result.removes = [file for name in sorted(plan.rewrites | plan.drops) for file in step.state.files_of(name)]
    known = {*step.registry.by_name, *ENGINE_COLLECTIONS}
    for name in sorted({file.collection for file in after.files.values()} - known):
        found = f"version {plan.version} has no such collection, and no action retires it"
        _violate(result, RowRule.COLLECTION, name, found)
        result.bad_new.set_aside[name] += live_rows(step.log, step.state.files_of(name))
        result.removes += step.state.files_of(name)
    for name in touched(plan.actions):
        counts = result.counts_of(name)
        counts.bytes_before = sum(file.size for file in step.state.files_of(name))
        counts.bytes_after = sum(file.size for file in after.files_of(name))
        if name not in file_actions(plan):
            counts.rows_before = live_rows(step.log, step.state.files_of(name))
            kept = 0 if name in plan.rewrites | plan.drops else counts.rows_before
            counts.rows_after = kept + sum(file.rows for file in result.adds if file.collection == name)
            counts.deleted = counts.rows_before if name in plan.drops else 0
    result.depends = frozenset({*touched(plan.actions), *_relied_on(step, lost)} - ENGINE_COLLECTIONS)


def _relied_on(step: StepContext, lost: frozenset[str]) -> Iterator[str]:
    """Yield the collections whose rows the step read or compared with its own."""
    for action in step.plan.actions:
        yield from action.reads
        if action.allocator is not None:
            yield ALLOCATORS
    for reference in step.constraints.references:
        if reference.collection in step.plan.rewrites | step.plan.adds:
            yield reference.target
        if reference.target in lost:
            yield reference.collection


def _violate(result: StepResult, rule: RowRule, collection: str, found: str) -> None:
    result.bad_new.violations.add(rule, collection, "", found)
