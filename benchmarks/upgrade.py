"""Upgrades against a bare pool of processes, against themselves at other sizes, and against Alembic on SQL.

Peers run in one process tree, in turns, on a warm session; medians with the spread between the quartiles. The pool does
the very same tasks (read, decode, change, encode, verify, fsync, write) without Spark: the ratio is what Spark costs.
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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

from benchmarks.sql_peers import alembic_rates
from catalog import open_catalog
from catalog.engine.execution import Execution
from catalog.engine.journal import Journal
from catalog.engine.judging import Judge, Rows
from catalog.engine.made import Source
from catalog.engine.parts import divide
from catalog.engine.plan import plan_step
from catalog.engine.step import Runner
from catalog.engine.tasks import Setting, Task, kinds_of, run_task
from catalog.engine.types import Columns
from catalog.engine.undo import undo
from catalog.engine.violations import Rule
from catalog.generator import CollectionStatistics, Statistics, generate
from catalog.log.delta import DeltaLog
from catalog.spark.jobs import SparkJobs
from catalog.spark.session import local_session
from catalog.stash.collections import Registry
from catalog.upgrade import PROJECT

PROCESSES = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("parts", nargs="*", default=["forms", "untouched", "whole", "sql", "memory"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "forms" in given.parts:
            against_pool("columnar (v17_to_v18)", folder / "columnar", 17, given.rows, given.rounds)
            against_pool("per row (v18_to_v19)", folder / "rows", 18, given.rows // 5, given.rounds)
        if "untouched" in given.parts:
            untouched(folder, given.rows, given.rounds)
        if "whole" in given.parts:
            whole(folder, given.rows // 20)
        if "sql" in given.parts:
            alembic_rates(folder, given.rows // 5)
    if "memory" in given.parts:
        memory(given.rows)


def against_pool(what: str, path: Path, version: int, rows: int, rounds: int) -> None:
    """A step's items on Spark, and in a pool of processes; the step is executed and verified, never committed."""
    store_of_items(path, version, rows)
    log = DeltaLog(f"{path}/stash")
    state = log.state(log.verify())
    plan = plan_step(PROJECT, state, version)
    plan = replace(
        plan, actions=tuple(action for action in plan.actions if getattr(action, "collection", "") == "item")
    )
    jobs = SparkJobs(partial(local_session, short_jobs=False))
    source = Source(log, PROJECT, (str(path), {}), state.fence, jobs, lambda *_: None)

    def on_spark() -> None:
        made = Execution(source, plan, state).run()
        if made.violations:
            raise SystemExit(f"{made.violations.listed[0]}")

    execution = Execution(source, plan, state)
    tasks = [Task(part, execution.actions["item"]) for part in divide(log, state, "item").parts]
    bare = replace(execution.setting, wanted={})
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:

        def pooled(setting: Setting, work: Callable[[Setting, Task], int]) -> None:
            list(pool.map(partial(work, setting), tasks))

        peers: dict[str, Callable[[], None]] = {
            "spark": on_spark,
            "pool": lambda: pooled(execution.setting, work),
            "unverified": lambda: pooled(bare, unverified_work),
        }
        for act in peers.values():
            act()
        times = in_turns(peers, rounds)
    rates = {name: [rows / seconds for seconds in taken] for name, taken in times.items()}
    ratio = statistics.median(rates["spark"]) / statistics.median(rates["pool"])
    print(f"{what}, {rows:,} items: {spread(rates['spark'])} rows/s on Spark", end="", flush=True)
    print(f" against {spread(rates['pool'])} in {PROCESSES} bare processes: {ratio:.2f} (at least 0.7, better 0.9)")
    cost = statistics.median(times["pool"]) / statistics.median(times["unverified"])
    print(f"  of which verification: the pool without it does {spread(rates['unverified'])} rows/s, {cost:.2f} times")


def work(setting: Setting, task: Task) -> int:
    """What a task on Spark does, prints included."""
    report, emission = run_task(setting, task)
    packed = sum(len(blob) for _, blob in emission.packed(kinds_of(setting.wanted), setting.buckets))
    return report.rows_before + packed


def unverified_work(setting: Setting, task: Task) -> int:
    with mock.patch.object(Judge, "verified", decoded_only):
        return run_task(setting, task)[0].rows_before


def decoded_only(_judge: Judge, columns: Columns, rows: Rows, rule: object) -> object:
    """In the place of verification: input is decoded, because the change needs it, and output is believed."""
    return None if rule is Rule.ENCODE else columns.decode(rows.keys, rows.values)


def untouched(folder: Path, rows: int, rounds: int) -> None:
    """A step that touches no file, in a large store and in a small one."""
    large, small = folder / "untouched-large", folder / "untouched-small"
    store_of_items(large, 21, rows)
    store_of_items(small, 21, 1_000)
    times: dict[str, list[float]] = {"large": [], "small": []}
    for _ in range(rounds * 3):
        for name, path in (("large", large), ("small", small)):
            runner = runner_of(path)
            start = time.perf_counter()
            module = PROJECT.migration_from(21, PROJECT.build)
            if module is not None:
                runner.run(module)
            times[name].append((time.perf_counter() - start) * 1000)
            undo(runner.journal, PROJECT)
    ratio = statistics.median(times["large"]) / statistics.median(times["small"])
    print(f"v21_to_v22 over {rows:,} rows: {spread(times['large'], '.1f')} ms", end="")
    print(f" against {spread(times['small'], '.1f')} over 1,000: {ratio:.2f} (at most 1.3)", flush=True)


def whole(folder: Path, rows: int) -> None:
    """Every step from the oldest version on, warm."""
    path = folder / "whole"
    generate(PROJECT, path, 14, rows, 1)
    session = local_session(short_jobs=False)
    session.range(2).mapInArrow(lambda batches: batches, "id long").collect()
    start = time.perf_counter()
    with open_catalog(path, spark=session) as catalog:
        seconds = time.perf_counter() - start
        print(f"v14 to v{catalog.version}, {rows:,} rows: {seconds:.1f} s, {rows / seconds:,.0f} rows/s", flush=True)


def memory(rows: int) -> None:
    """Peak memory of the driver during a columnar step, in processes of their own."""
    peaks = {count: peak_mib(count) for count in (4 * rows // 10, 4 * rows)}
    (few, low), (many, high) = peaks.items()
    print(f"peak memory of the driver: {high:.0f} MiB at {many:,} rows, {low:.0f} at {few:,}:", end=" ")
    print(f"{high / low:.2f} (at most 1.3)", flush=True)


def peak_mib(rows: int) -> float:
    with tempfile.TemporaryDirectory() as name:
        store_of_items(Path(name) / "store", 17, rows)
        script = (
            "import sys\nfrom pathlib import Path\nfrom benchmarks.upgrade import PROJECT, runner_of\n"
            "runner_of(Path(sys.argv[1])).run(PROJECT.migration_from(17, PROJECT.build))\n"
            "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
            "print(int(peak.split()[1]) / 1024)\n"
        )
        command = [sys.executable, "-c", script, f"{name}/store"]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def store_of_items(path: Path, version: int, rows: int) -> None:
    """A store that is all but items."""
    small = CollectionStatistics(rows=20, key_bytes_mean=3, key_bytes_p95=3, value_bytes_mean=30, value_bytes_p95=60)
    items = replace(small, rows=rows, value_bytes_mean=150, value_bytes_p95=220)
    shape = dict.fromkeys(("role", "database", "schema", "cluster", "audit_log"), small) | {"item": items}
    generate(PROJECT, path, version, rows, 1, like=Statistics(version, shape))


def runner_of(path: Path) -> Runner:
    log = DeltaLog(f"{path}/stash")
    state = log.state(log.verify())
    journal = Journal(log, Registry.of(PROJECT.current_types), state.fence, state)
    return Runner(journal, PROJECT, (str(path), {}), SparkJobs(local_session))


def in_turns(peers: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, act in peers.items():
            with timed(times[name]):
                act()
    return times


@contextlib.contextmanager
def timed(times: list[float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times.append(time.perf_counter() - start)


def spread(numbers: Sequence[float], form: str = ",.0f") -> str:
    low, middle, high = statistics.quantiles(numbers, n=4)
    return f"{middle:{form}} ({low:{form}}..{high:{form}})"


if __name__ == "__main__":
    main()
