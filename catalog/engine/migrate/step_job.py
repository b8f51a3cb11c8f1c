"""The Spark job of a step: its tasks, put together so that a small store needs few partitions, and its frames."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from catalog.actions import Action, Columnar, Frame, Insert
from catalog.engine.log.protocol import LogState
from catalog.engine.migrate.frame_action import frame_job
from catalog.engine.migrate.frame_input import FrameRead, reads_few_rows
from catalog.engine.migrate.migration_errors import migration_errors
from catalog.engine.migrate.partitions import (
    PART_BYTES,
    SHUFFLED_ROWS,
    SLOW_PART_BYTES,
    Partition,
    Partitioning,
    divide,
    rows_to_shuffle,
)
from catalog.engine.migrate.plan import StepPlan
from catalog.engine.migrate.rewrite_task import (
    HashFinding,
    InsertTask,
    Task,
    TaskContext,
    TaskReport,
    gather,
    insert_rows,
    kinds_of,
    rewrite_part,
    rewrite_shuffled_part,
)
from catalog.engine.migrate.rewriters import REWRITERS
from catalog.engine.migrate.step_result import StepContext
from catalog.engine.migrate.violations import LISTED_MAX
from catalog.engine.spark.jobs import TaskOutput
from catalog.engine.stash.arguments import described
from catalog.engine.stash.registry import encode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PlannedTasks = dict[str, tuple[Partitioning, Sequence[Task]]]
_GATHERED_HERE_ROWS_MAX = 100_000
"""The hashes of so many rows are compared by this process: 1.6 MB of each kind, and no shuffle."""
_GROUP_BYTES = 256 * 1024
"""Stored bytes that are worth a partition of their own: about a tenth of a second of work."""
_GROUPS_MIN = 2
"""Partitions of a job that has several tasks, however small they are."""


@dataclass(frozen=True, slots=True)
class StepJob:
    """The outcome of a job."""

    reports: list[TaskReport]
    reads: list[FrameRead]
    """The rows that were read for frames."""
    findings: list[HashFinding]


def file_actions(plan: StepPlan) -> dict[str, tuple[Action, ...]]:
    """Return the actions that rewrite a collection file by file, by collection."""
    found: dict[str, tuple[Action, ...]] = {}
    for action in plan.actions:
        if type(action) in REWRITERS:
            for name in action.writes:
                found[name] = (*found.get(name, ()), action)
    return found


def part_bytes(actions: Sequence[Action]) -> int:
    """Return the size of a task's part: a function that is called for every row takes longer than one for a batch."""
    return PART_BYTES if isinstance(actions[0], Columnar) else SLOW_PART_BYTES


def has_few_rows(step: StepContext, collections: Iterable[str]) -> bool:
    """Tell if the hashes of these collections, and of those that frames read, are few enough for this process."""
    read = {*collections, *(name for action in step.plan.actions for name in action.reads)}
    return sum(file.rows for file in step.state.files.values() if file.collection in read) <= _GATHERED_HERE_ROWS_MAX


def session_for(step: StepContext) -> AbstractContextManager[None]:
    """Return the context in which the step's job plans its frames: for few rows, if frames read few."""
    frames = [action for action in step.plan.actions if isinstance(action, Frame)]
    is_small = frames and all(reads_few_rows(step, action) for action in frames)
    return step.jobs.for_few_rows() if is_small else nullcontext()


def run_step_job(step: StepContext, context: TaskContext, next_ids: Mapping[str, int]) -> StepJob:
    """Rewrite, insert, run the frames and hash what the constraints need, as one job."""
    planned = _rewrite_tasks(step, context, next_ids)
    planned |= _hash_tasks(step, step.state, context.needed.keys() - step.plan.rewrites - step.plan.drops)
    frames: list[DataFrame] = []
    reads: list[FrameRead] = []
    with ExitStack() as held:
        for action in step.plan.actions:
            if isinstance(action, Frame):
                job = frame_job(step, context, action, next_ids[action.ids] if action.ids else None, held)
                frames += job.frames
                reads += job.reads
        done = _run(step, context, planned, list(_inserts(step)), frames)
    return StepJob(done.reports, [*reads, *done.reads], done.findings)


def run_hash_job(step: StepContext, context: TaskContext, state: LogState) -> StepJob:
    """Hash the collections that the context names, at a state."""
    return _run(step, context, _hash_tasks(step, state, context.needed))


def pack_tasks(tasks: Sequence[Task | InsertTask]) -> list[list[Task | InsertTask]]:
    """Divide tasks among partitions of about the same size, as many as their stored bytes are worth."""
    sizes = [_stored_bytes(task.part) if isinstance(task, Task) else 0 for task in tasks]
    count = min(len(tasks), max(_GROUPS_MIN, -(-sum(sizes) // _GROUP_BYTES)))
    groups: list[tuple[int, int, list[Task | InsertTask]]] = [(0, number, []) for number in range(count)]
    for number in sorted(range(len(tasks)), key=lambda number: -sizes[number]):
        load, own, held = groups[0]
        held.append(tasks[number])
        heapq.heapreplace(groups, (load + sizes[number] + 1, own, held))
    return [held for _, _, held in sorted(groups, key=lambda group: group[1])]


def _stored_bytes(part: Partition) -> int:
    return sum(file.size for file in (*(piece.file for piece in part.pieces), *part.tail))


def _rewrite_tasks(step: StepContext, context: TaskContext, next_ids: Mapping[str, int]) -> PlannedTasks:
    """Return the tasks of the collections that are rewritten file by file."""
    planned: PlannedTasks = {}
    for name, actions in file_actions(step.plan).items():
        division = divide(step.log, step.state, name, part_bytes=part_bytes(actions))
        first_ids = _first_ids(step, context, name, division, next_ids)
        planned[name] = (
            division,
            [Task(part, actions, first_id) for part, first_id in zip(division.parts, first_ids, strict=True)],
        )
    return planned


def _hash_tasks(step: StepContext, state: LogState, names: Iterable[str]) -> PlannedTasks:
    """Return the tasks that hash collections at a state."""
    divisions = {name: divide(step.log, state, name) for name in names}
    return {name: (division, [Task(part) for part in division.parts]) for name, division in divisions.items()}


def _inserts(step: StepContext) -> Iterable[InsertTask]:
    for action in step.plan.actions:
        if isinstance(action, Insert):
            with migration_errors(step.plan.name):
                rows = tuple((encode(key), encode(value)) for key, value in spelt_out_rows(action))
            if rows:
                yield InsertTask(action.collection, rows)


def spelt_out_rows(action: Insert) -> Iterator[tuple[Message, Message]]:
    """Yield the rows that an action adds; refuse anything else that its function returns."""
    made: Any = action.rows()  # whatever a migration returns
    if not isinstance(made, Iterable) or isinstance(made, str | bytes | Mapping):
        raise TypeError(f"the insert of {action.collection} returned {described(made)}; needed: rows (key, value)")
    for row in made:
        match row:
            case (Message() as key, Message() as value):
                yield key, value
            case _:
                raise TypeError(f"the insert of {action.collection} made {described(row)}; needed: a row (key, value)")


def _first_ids(
    step: StepContext, context: TaskContext, name: str, division: Partitioning, next_ids: Mapping[str, int]
) -> list[int]:
    """Return the first id of each part, so that ids are dense and in the order of keys; several parts count first."""
    actions = file_actions(step.plan)[name]
    allocator = next((action.allocator for action in actions if action.allocator is not None), None)
    start = 0 if allocator is None else next_ids[allocator]
    if allocator is None or len(division.parts) < 2:  # noqa: PLR2004 - one part needs no count
        return [start] * len(division.parts)
    counting = [Task(part, actions, only_counts_ids=True) for part in division.parts]
    frames, count = _task_frames(step, context, {name: (division, counting)}, ())
    reports: list[TaskReport] = step.jobs.collect(frames, step.watch, count=count).reports
    used = {report.number: report.ids for report in reports}
    return list(accumulate((used.get(part.number, 0) for part in division.parts[:-1]), initial=start))


def _run(
    step: StepContext,
    context: TaskContext,
    planned: PlannedTasks,
    inserts: Sequence[InsertTask] = (),
    more: Sequence[DataFrame] = (),
) -> StepJob:
    """Run tasks and frames as one Spark job; return the reports of tasks and the findings of their hashes."""
    frames, count = _task_frames(step, context, planned, inserts)
    listed_max = None if step.is_thorough else LISTED_MAX
    done = step.jobs.collect(
        [*frames, *more],
        step.watch,
        gather=partial(gather, kinds_of(context.needed), listed_max) if context.needed else None,
        buckets=context.buckets,
        gathers_here=has_few_rows(step, context.needed),
        count=count,
    )
    return StepJob(
        [report for report in done.reports if isinstance(report, TaskReport)],
        [report for report in done.reports if isinstance(report, FrameRead)],
        done.findings,
    )


def _task_frames(
    step: StepContext, context: TaskContext, planned: PlannedTasks, inserts: Sequence[InsertTask]
) -> tuple[list[DataFrame], int]:
    """Return the frames that run tasks, and the number of partitions in which tasks read their rows themselves."""
    direct = [task for division, tasks in planned.values() for task in tasks if not division.shuffled]
    groups = pack_tasks([*direct, *inserts])
    frames = [step.jobs.tasks(partial(_do_task, context), groups)] if groups else []
    for division, tasks in planned.values():
        if division.shuffled:
            lows = [task.part.low for task in tasks]
            pieces = [(file, number) for file in division.shuffled for number in range(len(step.log.groups(file)))]
            reading = partial(rows_to_shuffle, step.log, lows)
            working = partial(rewrite_shuffled_part, context, tuple(tasks))
            frames.append(step.jobs.shuffled(reading, pieces, SHUFFLED_ROWS, working))
    return frames, len(groups)


def _do_task(context: TaskContext, task: Task | InsertTask) -> TaskOutput:
    return insert_rows(context, task) if isinstance(task, InsertTask) else rewrite_part(context, task)
