"""Upgrades against a bare pool of processes, against themselves at other sizes, and against Alembic on SQL.

Peers run in one process tree, in turns, on a warm session; medians with the spread between the quartiles. The pool does
the very same tasks (read, decode, change, encode, verify, fsync, write) without Spark, and compares the same hashes
in the same buckets: the ratio is what Spark costs.
With `--before COMMIT` the same steps also run with the code of an earlier commit.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

from benchmarks.earlier import ROOT, STEP, checkout, environment, server, store_of_items
from benchmarks.sql_peers import alembic_rates
from benchmarks.task_costs import task_costs
from catalog import open_catalog
from catalog.engine.log.delta import DeltaLog
from catalog.engine.migrate.partitions import divide
from catalog.engine.migrate.plan import plan_step
from catalog.engine.migrate.rewrite_task import Task, TaskContext, gather, kinds_of, run_task
from catalog.engine.migrate.row_types import RowColumns
from catalog.engine.migrate.row_verifier import EncodedRows, RowVerifier
from catalog.engine.migrate.step_execution import task_context
from catalog.engine.migrate.step_job import file_actions, part_bytes
from catalog.engine.migrate.step_result import StepContext
from catalog.engine.migrate.step_runner import StepRunner
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.migrate.undo import undo
from catalog.engine.migrate.violations import LISTED_MAX, RowRule
from catalog.engine.spark.jobs import SparkJobs
from catalog.engine.spark.session import local_session
from catalog.engine.stash.registry import Registry
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT

PROCESSES = 2
Hashed = list[tuple[int, bytes]]
"""The hashes of a task, each part with the number of its bucket."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", metavar="COMMIT", help="run the forms at this commit too, in turns")
    parser.add_argument("parts", nargs="*", default=["forms", "costs", "untouched", "whole", "sql", "memory"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "forms" in given.parts:
            with checkout(given.before) if given.before else contextlib.nullcontext() as earlier:
                against_pool("columnar (v17_to_v18)", folder / "columnar", 17, given.rows, given.rounds, earlier)
                against_pool("per row (v18_to_v19)", folder / "rows", 18, given.rows, given.rounds, earlier)
                against_pool("per row (v18_to_v19)", folder / "fewer", 18, given.rows // 5, given.rounds, earlier)
        if "costs" in given.parts:
            for what, version in (("columnar (v17_to_v18)", 17), ("per row (v18_to_v19)", 18)):
                store_of_items(ROOT, folder / f"costs-{version}", version, given.rows // 20)
                task_costs(what, *items_tasks(folder / f"costs-{version}", version))
        if "untouched" in given.parts:
            untouched(folder, given.rows, given.rounds)
        if "whole" in given.parts:
            whole(folder, given.rows // 20)
        if "sql" in given.parts:
            alembic_rates(folder, given.rows // 5)
    if "memory" in given.parts:
        memory(given.rows)


def against_pool(what: str, path: Path, version: int, rows: int, rounds: int, earlier: Path | None) -> None:
    """Time a step's items on Spark, in a pool of processes and on Spark at an earlier commit; nothing is committed."""
    store_of_items(ROOT, path, version, rows)
    context, tasks = items_tasks(path, version)
    bare = replace(context, needed={})
    with contextlib.ExitStack() as held:
        pool = held.enter_context(ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")))

        def pooled(context: TaskContext, work: Callable[[TaskContext, Task], Hashed]) -> None:
            blobs: dict[int, list[bytes]] = {}
            for done in pool.map(partial(work, context), tasks):
                for bucket, blob in done:
                    blobs.setdefault(bucket, []).append(blob)
            list(pool.map(partial(gather, kinds_of(context.needed), LISTED_MAX), blobs.values()))

        peers: dict[str, Callable[[], object]] = {
            "spark": held.enter_context(server(ROOT, STEP, path, version, "item")),
            "pool": lambda: pooled(context, work),
            "unverified": lambda: pooled(bare, unverified_work),
        }
        if earlier is not None:
            stored = path.with_name(f"{path.name}-before")
            store_of_items(earlier, stored, version, rows)
            peers["before"] = held.enter_context(server(earlier, STEP, stored, version, "item"))
        for act in peers.values():
            act()
        times, processor = in_turns(peers, rounds)
    rates = {name: [rows / seconds for seconds in taken] for name, taken in times.items()}
    costs = {name: spread([seconds / rows * 1e6 for seconds in taken], ".1f") for name, taken in processor.items()}
    ratio = statistics.median(rates["spark"]) / statistics.median(rates["pool"])
    print(f"{what}, {rows:,} items: {spread(rates['spark'])} rows/s on Spark", end="", flush=True)
    print(f" against {spread(rates['pool'])} in {PROCESSES} bare processes: {ratio:.2f} (at least 0.85, better 0.9)")
    print(f"  processor time a row, µs: {costs['spark']} on Spark, Java included, against {costs['pool']}")
    cost = statistics.median(times["pool"]) / statistics.median(times["unverified"])
    print(f"  of which verification: the pool without it does {spread(rates['unverified'])} rows/s, {cost:.2f} times")
    if earlier is not None:
        ratio = statistics.median(rates["spark"]) / statistics.median(rates["before"])
        print(f"  before: {spread(rates['before'])} rows/s, {costs['before']} µs of processor time a row;", end="")
        print(f" now {ratio:.2f} times the rows/s", flush=True)


def items_tasks(path: Path, version: int) -> tuple[TaskContext, list[Task]]:
    """Return the tasks of a step that rewrite items."""
    log = DeltaLog(f"{path}/stash")
    state = log.state(log.verify())
    plan = plan_step(PROJECT, state, version)
    plan = replace(
        plan, actions=tuple(action for action in plan.actions if getattr(action, "collection", "") == "item")
    )
    jobs = SparkJobs(local_session)
    step = StepContext(plan, state, log, PROJECT, (str(path), {}), state.fence, jobs, lambda *_: None)
    actions = file_actions(plan)["item"]
    parts = divide(log, state, "item", part_bytes=part_bytes(actions)).parts
    return task_context(step), [Task(part, actions) for part in parts]


def work(context: TaskContext, task: Task) -> Hashed:
    """Do what a task on Spark does, hashes included, and remove what it wrote."""
    report, hashes = run_task(context, task)
    context.log.delete([file.path for file in report.files])
    return list(hashes.packed(kinds_of(context.needed), context.buckets))


def unverified_work(context: TaskContext, task: Task) -> Hashed:
    with mock.patch.object(RowVerifier, "check_batch", decoded_only):
        return work(context, task)


def decoded_only(
    _verifier: RowVerifier, codec: RowColumns, rows: EncodedRows, rule: object, encoded_from: object
) -> tuple[object, None]:
    """Stand in for verification: input is decoded, because the change needs it, and output is trusted."""
    return (encoded_from if rule is RowRule.ENCODE else codec.decode(*rows)), None


def untouched(folder: Path, rows: int, rounds: int) -> None:
    """Time a step that touches no file, in a large store and in a small one."""
    large, small = folder / "untouched-large", folder / "untouched-small"
    store_of_items(ROOT, large, 21, rows)
    store_of_items(ROOT, small, 21, 1_000)
    times: dict[str, list[float]] = {"large": [], "small": []}
    for _ in range(rounds * 3):
        for name, path in (("large", large), ("small", small)):
            runner = runner_of(path)
            start = time.perf_counter()
            runner.run(plan_step(PROJECT, runner.journal.state, 21))
            times[name].append((time.perf_counter() - start) * 1000)
            undo(runner.journal, PROJECT)
    ratio = statistics.median(times["large"]) / statistics.median(times["small"])
    print(f"v21_to_v22 over {rows:,} rows: {spread(times['large'], '.1f')} ms", end="")
    print(f" against {spread(times['small'], '.1f')} over 1,000: {ratio:.2f} (at most 1.3)", flush=True)


def whole(folder: Path, rows: int) -> None:
    """Time every step from the oldest version on, warm."""
    path = folder / "whole"
    generate(PROJECT, path, 14, rows, 1)
    session = local_session(short_jobs=False)
    session.range(2).mapInArrow(lambda batches: batches, "id long").collect()
    start = time.perf_counter()
    with open_catalog(path, spark=session) as catalog:
        seconds = time.perf_counter() - start
        print(f"v14 to v{catalog.version}, {rows:,} rows: {seconds:.1f} s, {rows / seconds:,.0f} rows/s", flush=True)


def memory(rows: int) -> None:
    """Measure the peak memory of the driver during a columnar step, in processes of their own."""
    peaks = {count: peak_mib(count) for count in (4 * rows // 10, 4 * rows)}
    (few, low), (many, high) = peaks.items()
    print(f"peak memory of the driver: {high:.0f} MiB at {many:,} rows, {low:.0f} at {few:,}:", end=" ")
    print(f"{high / low:.2f} (at most 1.3)", flush=True)


def peak_mib(rows: int) -> float:
    with tempfile.TemporaryDirectory() as name:
        store_of_items(ROOT, Path(name) / "store", 17, rows)
        script = (
            "import sys\nfrom pathlib import Path\nfrom benchmarks.upgrade import PROJECT, plan_step, runner_of\n"
            "runner = runner_of(Path(sys.argv[1]))\nrunner.run(plan_step(PROJECT, runner.journal.state, 17))\n"
            "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
            "print(int(peak.split()[1]) / 1024)\n"
        )
        command = [sys.executable, "-c", script, f"{name}/store"]
        here = environment(ROOT)
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=here)
    return float(done.stdout)


def runner_of(path: Path) -> StepRunner:
    log = DeltaLog(f"{path}/stash")
    state = log.state(log.verify())
    journal = SystemRows(log, Registry.of(PROJECT.current_types), state.fence, state)
    return StepRunner(journal, PROJECT, (str(path), {}), SparkJobs(local_session))


def in_turns(
    peers: dict[str, Callable[[], object]], rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the seconds that each took, and the processor time of this process and all below it meanwhile."""
    times: dict[str, list[float]] = {name: [] for name in peers}
    processor: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, act in peers.items():
            before, start = processor_s(), time.perf_counter()
            act()
            times[name].append(time.perf_counter() - start)
            processor[name].append(processor_s() - before)
    return times, processor


def processor_s() -> float:
    """Return the processor time of this process and of all that descend from it."""
    ticks, children = dict[int, int](), dict[int, list[int]]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            ticks[int(stat.parent.name)] = sum(map(int, fields[11:15]))
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [os.getpid()]
    for process in found:
        found += children.get(process, [])
    return sum(ticks.get(process, 0) for process in found) / os.sysconf("SC_CLK_TCK")


def spread(numbers: Sequence[float], form: str = ",.0f") -> str:
    low, middle, high = statistics.quantiles(numbers, n=4)
    return f"{middle:{form}} ({low:{form}}..{high:{form}})"


if __name__ == "__main__":
    main()
