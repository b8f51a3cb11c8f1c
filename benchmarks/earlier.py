"""The code of an earlier commit beside that of this checkout: each in processes of its own, with a store of its own.

Programs in a string are valid at both commits. The modules of an earlier commit may have the names of before they were
rearranged.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

ROOT = Path(__file__).parents[1]
BEFORE = "4490cbf"
"""The commit with whose speed this code is compared."""
STEP = """
import sys, time
from dataclasses import replace
from catalog.upgrade import PROJECT
path, version, collection = sys.argv[1], int(sys.argv[2]), sys.argv[3]
try:
    from catalog.engine.log.delta import DeltaLog
except ImportError:
    from catalog.engine.execution import Execution
    from catalog.engine.made import Source
    from catalog.engine.plan import plan_step
    from catalog.log.delta import DeltaLog
    from catalog.spark.jobs import SparkJobs
    from catalog.spark.session import local_session
    def execute(plan, state, log, project, store, fence, jobs, report):
        return Execution(Source(log, project, store, fence, jobs, report), plan, state).run()
else:
    from catalog.engine.migrate.plan import plan_step
    from catalog.engine.migrate.step_execution import execute as execute_step
    from catalog.engine.migrate.step_result import StepContext
    from catalog.engine.spark.jobs import SparkJobs
    from catalog.engine.spark.session import local_session
    def execute(*step):
        return execute_step(StepContext(*step))
log = DeltaLog(f"{path}/stash")
state = log.state(log.verify())
plan = plan_step(PROJECT, state, version)
if collection:
    own = tuple(action for action in plan.actions if getattr(action, "collection", "") == collection)
    plan = replace(plan, actions=own)
jobs = SparkJobs(local_session)
for _ in sys.stdin:
    start = time.perf_counter()
    result = execute(plan, state, log, PROJECT, (path, {}), state.fence, jobs, lambda *_: None)
    seconds = time.perf_counter() - start
    log.delete([file.path for file in result.adds])
    print(result.violations.listed[0] if result.violations else seconds, flush=True)
"""
"""Executes and verifies a step, or its actions on one collection, for each line of input; nothing is committed."""
ITEMS = """
import sys
from dataclasses import replace
from pathlib import Path
from catalog.upgrade import PROJECT
path, version, rows, comments = Path(sys.argv[1]), *map(int, sys.argv[2:])
try:
    from catalog.tools.generator import CollectionShape, StoreShape, generate
except ImportError:
    from catalog.generator import CollectionStatistics as CollectionShape, Statistics as StoreShape, generate
few = CollectionShape(rows=20, key_bytes_mean=3, key_bytes_p95=3, value_bytes_mean=30, value_bytes_p95=60)
shape = dict.fromkeys(("role", "database", "schema", "cluster", "audit_log"), few)
shape["item"] = replace(few, rows=rows, value_bytes_mean=150, value_bytes_p95=220)
if comments:
    shape["comment"] = replace(few, rows=comments)
generate(PROJECT, path, version, rows, 1, like=StoreShape(version, shape))
"""


@contextlib.contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Check a commit out into a folder of its own, with its generated code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "catalog"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(folder), commit], cwd=ROOT, check=True)
        try:
            generate_code = [sys.executable, "-m", "build_tools", "codegen"]
            subprocess.run(generate_code, check=True, env=environment(folder), cwd=folder, stdout=subprocess.DEVNULL)
            yield folder
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(folder)], cwd=ROOT, check=True)


def store_of_items(code: Path, path: Path, version: int, rows: int, comments: int = 0) -> None:
    """Make a store that is nearly all items, by the code of a checkout."""
    command = [sys.executable, "-c", ITEMS, str(path), str(version), str(rows), str(comments)]
    subprocess.run(command, check=True, env=environment(code), cwd=code)


@contextlib.contextmanager
def server(code: Path, program: str, *words: object) -> Iterator[Callable[[], float]]:
    """Run a program with the code of a checkout; the given function asks it for the number it prints."""
    command = [sys.executable, "-c", program, *map(str, words)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment(code), cwd=code
    ) as process:

        def ask() -> float:
            told, said = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
            told.write("run\n")
            told.flush()
            answer = said.readline().strip()
            try:
                return float(answer)
            except ValueError:
                raise SystemExit(f"it failed with the code in {code}: {answer or 'no answer'}") from None

        yield ask
        process.communicate()


def environment(code: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(code)}
