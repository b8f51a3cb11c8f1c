"""Where the processor time of a task goes: its stages in microseconds a row, in one process, without Spark.

Each stage is timed by a clock around its functions, less the time of the stages inside it. A migration's own function
and protobuf's reading and writing are too quick for a clock: they are run by themselves over the same rows.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast
from unittest import mock

from catalog.actions import PerRow
from catalog.engine.base.project import load_project
from catalog.engine.log.delta import DeltaLog
from catalog.engine.migrate import constraint_hashes, partitions, rewrite_task, row_verifier
from catalog.engine.migrate.partitions import read_part
from catalog.engine.migrate.rewrite_task import Task, TaskContext, TaskHashes, kinds_of, run_task
from catalog.engine.migrate.rewriters import REWRITERS
from catalog.engine.migrate.row_types import RowColumns, row_types

ROUNDS = 5
STAGES: dict[str, list[tuple[Any, str]]] = {
    "read files": [(DeltaLog, "read"), (rewrite_task, "read_part"), (partitions, "merged")],
    "columns from bytes (ptars)": [(RowColumns, "decode")],
    "bytes from columns (ptars)": [(RowColumns, "encode")],
    "protobuf's sample, one row in 64": [(row_verifier, "_protobuf_error")],
    "comparison of bytes": [(row_verifier.RowVerifier, "verify")],
    "hashes of keys, unique values, references": [
        (rewrite_task, "hash_rows"),
        (rewrite_task, "_differing"),
        (constraint_hashes, "hash_values"),
        (TaskHashes, "packed"),
    ],
    "sort and write files": [(rewrite_task, "write_rows"), (DeltaLog, "write")],
}
REWRITING = "rewriter"


def task_costs(what: str, context: TaskContext, tasks: Sequence[Task]) -> None:
    """Print the stages of tasks, the most expensive first."""
    rows, found = 0, list[defaultdict[str, float]]()
    for _ in range(ROUNDS + 1):
        clock = _Clock()
        with clock.running(), clock.stage("the rest"):
            rows = sum(_run(context, task) for task in tasks)
        found.append(clock.spent)
    costs = {name: statistics.median(each[name] for each in found[1:]) / rows * 1e6 for name in found[-1]}
    print(f"{what}, {rows:,} items: {sum(costs.values()):.1f} µs of processor time a row, of which")
    for name, cost in sorted(costs.items(), key=lambda each: -each[1]):
        print(f"  {cost:5.2f} {name}")
        if name == REWRITING and isinstance(tasks[0].actions[0], PerRow):
            for part, own in _rewriting_costs(context, tasks):
                print(f"        {own:5.2f} {part}")


def _run(context: TaskContext, task: Task) -> int:
    report, hashes = run_task(context, task)
    list(hashes.packed(kinds_of(context.needed), context.buckets))
    return report.rows_before


def _rewriting_costs(context: TaskContext, tasks: Sequence[Task]) -> Iterator[tuple[str, float]]:
    """Yield the least that a per-row migration costs: protobuf and its own function, alone in a loop."""
    action = cast("PerRow", tasks[0].actions[0])
    read_key, read_value = row_types(load_project(context.project), context.old)[action.collection].readers
    tables = [table for task in tasks for table in read_part(context.log, task.part)[0]]
    rows = [row for table in tables for row in zip(*(column.to_pylist() for column in table), strict=True)]
    change: Callable[..., Any] = action.change  # of this benchmark, one that yields rows

    def read() -> None:
        for key, value in rows:
            read_key(key)
            read_value(value)

    def changed() -> None:
        for key, value in rows:
            for _ in change(read_key(key), read_value(value)):
                pass

    def written() -> None:
        for key, value in rows:
            for new_key, new_value in change(read_key(key), read_value(value)):
                new_key.SerializeToString()
                new_value.SerializeToString()

    before = 0.0
    for part, act in (("protobuf reads", read), ("the migration's function", changed), ("protobuf writes", written)):
        cost = min(_processor_s(act) for _ in range(ROUNDS)) / len(rows) * 1e6
        yield part, cost - before
        before = cost


def _processor_s(act: Callable[[], None]) -> float:
    start = time.process_time()
    act()
    return time.process_time() - start


class _Clock:
    """Processor time by stage, each without the stages inside it."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._inside = [0.0]

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.process_time()
        self._inside.append(0.0)
        yield
        took = time.process_time() - start
        self.spent[name] += took - self._inside.pop()
        self._inside[-1] += took

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Put the clock around the functions of all stages."""
        rewriters = {kind: self._timed_rewriter(make) for kind, make in REWRITERS.items()}
        with contextlib.ExitStack() as held:
            held.enter_context(mock.patch.object(rewrite_task, "REWRITERS", rewriters))
            for name, functions in STAGES.items():
                for owner, function in functions:
                    if hasattr(owner, function):
                        timed = self._timed(name, getattr(owner, function))
                        held.enter_context(mock.patch.object(owner, function, timed))
            yield

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: object, **named: object) -> Any:  # noqa: ANN401 - whatever the function returns
            with self.stage(name):
                return function(*given, **named)

        return timed

    def _timed_rewriter(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: object) -> Any:  # noqa: ANN401 - whatever the function returns
            rewriter = mock.Mock()
            rewriter.rewrite = self._timed(REWRITING, make(*given).rewrite)
            return rewriter

        return timed
