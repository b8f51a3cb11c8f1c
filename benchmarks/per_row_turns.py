"""The tasks of the per-row step v18_to_v19 at two commits, in turns: processor time a row, without Spark."""

from __future__ import annotations

import contextlib
import statistics
import tempfile

from benchmarks.earlier import BEFORE, ROOT, checkout, server

ROWS = 50_000
ROUNDS = 9
VERSION = 18
SERVER = """
import sys, time
from benchmarks.upgrade import *
path, version, rows = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
try:
    from benchmarks.earlier import ROOT
except ImportError:
    store_of_items(path, version, rows)
    log = DeltaLog(f"{path}/stash")
    state = log.state(log.verify())
    plan = plan_step(PROJECT, state, version)
    own = tuple(action for action in plan.actions if getattr(action, "collection", "") == "item")
    jobs = SparkJobs(local_session)
    source = Source(log, PROJECT, (str(path), {}), state.fence, jobs, lambda *_: None)
    execution = Execution(source, replace(plan, actions=own), state)
    context = execution.setting
    tasks = [Task(part, execution.actions["item"]) for part in divide(log, state, "item").parts]
else:
    store_of_items(ROOT, path, version, rows)
    context, tasks = items_tasks(path, version)
for _ in sys.stdin:
    start = time.process_time()
    for task in tasks:
        work(context, task)
    print((time.process_time() - start) / rows * 1e6, flush=True)
"""
"""Valid at both commits: `work` rewrites, verifies, hashes and writes a part."""


def main() -> None:
    with checkout(BEFORE) as earlier, tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as held:
        peers = {
            name: held.enter_context(server(code, SERVER, f"{folder}/{name}", VERSION, ROWS))
            for name, code in (("before", earlier), ("now", ROOT))
        }
        for ask in peers.values():
            ask()
        costs: dict[str, list[float]] = {name: [] for name in peers}
        for _ in range(ROUNDS):
            for name, ask in peers.items():
                costs[name].append(ask())
    for name, own in costs.items():
        low, middle, high = statistics.quantiles(own, n=4)
        print(f"{name}: {middle:.1f} ({low:.1f}..{high:.1f}) µs of processor time a row, least {min(own):.1f}")
    ratio = statistics.median(costs["before"]) / statistics.median(costs["now"])
    print(f"now {ratio:.2f} times the rows a second of processor time of {BEFORE} (at least 2)")


if __name__ == "__main__":
    main()
