"""Frame steps against a columnar step of the same rows, and against the code of an earlier commit.

Steps are executed and verified on a warm session, never committed; peers run in turns, medians with the spread between
the quartiles. The earlier code runs in processes of its own, on a store of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.earlier import ROOT, STEP, checkout, server, store_of_items
from catalog.engine.log.delta import DeltaLog
from catalog.engine.migrate.plan import plan_step
from catalog.engine.migrate.step_execution import execute
from catalog.engine.migrate.step_result import StepContext
from catalog.engine.spark.jobs import SparkJobs
from catalog.engine.spark.session import local_session
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT

FRAME, COLUMNAR = 20, 17
"""The versions that a step of each form leads on from."""
WARM_UP = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the large store")
    parser.add_argument("--before", default="", metavar="COMMIT", help="the code to compare with at many rows")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        small(Path(name), given.rounds)
        if given.before:
            large(Path(name), given.before, given.rows, given.rounds)


def small(folder: Path, rounds: int, rows: int = 1_000) -> None:
    """Time a frame step and a columnar step of stores with the same number of rows."""
    peers = {}
    for form, version in (("frame", FRAME), ("columnar", COLUMNAR)):
        generate(PROJECT, folder / form, version, rows, 1)
        peers[form] = step_of(folder / form, version)
    times: dict[str, list[float]] = {form: [] for form in peers}
    for number in range(WARM_UP + rounds):
        for form, step in peers.items():
            seconds = seconds_of(step)
            if number >= WARM_UP:
                times[form].append(seconds)
    frame, columnar = times["frame"], times["columnar"]
    ratio = statistics.median(frame) / statistics.median(columnar)
    print(f"v20_to_v21, {rows:,} rows: {spread(frame)} s (at most 1.5)", end="", flush=True)
    print(f" against {spread(columnar)} of v17_to_v18: {ratio:.1f} (at most 5)", flush=True)


def large(folder: Path, before: str, rows: int, rounds: int) -> None:
    """Time the frame step of many items, by this code and by that of an earlier commit."""
    times: dict[str, list[float]] = {"now": [], "before": []}
    with checkout(before) as earlier, contextlib.ExitStack() as held:
        peers = {}
        for name, code in (("now", ROOT), ("before", earlier)):
            store_of_items(code, folder / name, FRAME, rows, rows // 20)
            peers[name] = held.enter_context(server(code, STEP, folder / name, FRAME, ""))
        for number in range(1 + rounds):
            for name, ask in peers.items():
                seconds = ask()
                if number:
                    times[name].append(seconds)
    ratio = statistics.median(times["now"]) / statistics.median(times["before"])
    print(f"v20_to_v21, {rows:,} items: {spread(times['now'])} s", end="", flush=True)
    print(f" against {spread(times['before'])} at {before}: {ratio:.2f} (at most 1)", flush=True)


def step_of(path: Path, version: int) -> StepContext:
    log = DeltaLog(f"{path}/stash")
    state = log.state(log.verify())
    plan = plan_step(PROJECT, state, version)
    return StepContext(
        plan, state, log, PROJECT, (str(path), {}), state.fence, SparkJobs(local_session), lambda *_: None
    )


def seconds_of(step: StepContext) -> float:
    """Execute a step, remove what it wrote, and return how long the execution took."""
    start = time.perf_counter()
    result = execute(step)
    seconds = time.perf_counter() - start
    if result.violations:
        raise SystemExit(str(result.violations.listed[0]))
    step.log.delete([file.path for file in result.adds])
    return seconds


def spread(numbers: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(numbers, n=4)
    return f"{middle:.2f} ({low:.2f}..{high:.2f})"


if __name__ == "__main__":
    main()
