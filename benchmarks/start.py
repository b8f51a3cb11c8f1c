"""A start that upgrades a small store, and a statement, against the floor of Spark: whole processes, in turns.

The floor is a fresh process that starts a session with the same settings and collects one `mapInArrow` task, with an
archive of Java's classes. Each is also run without it, as on a machine where Spark never ran. Medians with the spread
between the quartiles; processor time of each process and its children besides, which says more on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from catalog.tools.generator import generate
from catalog.upgrade import PROJECT

ROOT = Path(__file__).parents[1]
FLOOR: Final = """
from catalog.engine.spark.session import local_session
session = local_session()
assert len(session.range(0, 1, 1, 1).mapInArrow(lambda batches: batches, "id long").collect()) == 1
"""
CATALOG: Final = "import sys; from catalog.cli.main_group import main; sys.exit(main())"
COUNT: Final = "SELECT count(*) FROM item"
WITHOUT_ARCHIVE: Final = 1.5
"""The first run ever may take so much longer."""
FENCE_TO_READY: Final = 0.8


@dataclass(frozen=True, slots=True)
class Store:
    version: int
    rows: int
    limit: float
    """In floors."""

    @property
    def name(self) -> str:
        return f"start of {self.rows:,} rows, v{self.version} to v{PROJECT.current}"


STORES: Final = (Store(14, 1_000, 1.8), Store(20, 1_000, 1.4), Store(14, 50_000, 2.5))


@dataclass(slots=True)
class Times:
    """The times of one thing, in seconds."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows-max", type=int, default=50_000, help="leave out larger stores")
    parser.add_argument("--archive-only", action="store_true", help="leave out the runs without an archive")
    given = parser.parse_args()
    stores = [store for store in STORES if store.rows <= given.rows_max]
    with tempfile.TemporaryDirectory(prefix="catalog-start-") as name:
        folder = Path(name)
        print(f"{given.rounds} rounds, times in seconds", flush=True)
        for store in stores:
            generate(PROJECT, folder / f"v{store.version}-{store.rows}", store.version, store.rows, 1)
        upgraded = folder / "upgraded"
        generate(PROJECT, upgraded, PROJECT.current, 1_000, 1)
        archive = folder / "archive"
        run([sys.executable, "-m", "catalog.engine.spark.archive_maker", str(archive)], {})
        bench = Bench(folder)
        for _ in range(given.rounds):
            for setting in (str(archive),) if given.archive_only else (str(archive), "off"):
                told = "" if setting != "off" else ", no archive"
                bench.time(f"floor{told}", setting, partial(run, [sys.executable, "-c", FLOOR]))
                for store in stores:
                    bench.start(store, told, setting)
                count = [sys.executable, "-c", CATALOG, "sql", "--store", str(upgraded), COUNT]
                bench.time(f"sql{told}", setting, partial(run, count))
        bench.print(stores)


@dataclass(slots=True)
class Bench:
    folder: Path
    times: dict[str, Times] = field(default_factory=dict)
    since_fence: dict[str, list[float]] = field(default_factory=dict)
    """From the fence until the store is ready."""

    def time(self, name: str, setting: str, act: Callable[[Mapping[str, str]], str]) -> str:
        """Run a process, and note its times under a name."""
        before, began = children_s(), time.perf_counter()
        said = act({"CATALOG_CLASS_ARCHIVE": setting})
        own = self.times.setdefault(name, Times())
        own.wall.append(time.perf_counter() - began)
        own.processor.append(children_s() - before)
        return said

    def start(self, store: Store, told: str, setting: str) -> None:
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder / f"v{store.version}-{store.rows}", copy)
        command = [sys.executable, "-c", CATALOG, "start", "--store", str(copy), "--log-format", "json"]
        said = self.time(f"{store.name}{told}", setting, partial(run, command))
        at = {line["event"]: datetime.fromisoformat(line["time"]) for line in map(json.loads, said.splitlines())}
        passed = (at["ready"] - at["fence_taken"]).total_seconds()
        self.since_fence.setdefault(f"{store.name}{told}", []).append(passed)

    def print(self, stores: Sequence[Store]) -> None:
        floor = self.times["floor"]
        limits = {"floor": 1.0, "sql": 1.3} | {store.name: store.limit for store in stores}
        print(f"{'':45} {'wall, quartiles':>24} {'floors':>7} {'at most':>8} {'processor':>10} {'floors':>7}")
        for name, own in self.times.items():
            bare = name.removesuffix(", no archive")
            limit = limits[bare] * (1 if bare == name else WITHOUT_ARCHIVE)
            row(name, own.wall, floor.wall, "" if bare == "floor" else f"{limit:.2f}", own.processor, floor.processor)
        for name, passed in self.since_fence.items():
            limited = name == stores[0].name
            row(f"{name}: fence to ready", passed, floor.wall, f"{FENCE_TO_READY:.2f}" if limited else "")


def row(
    name: str,
    wall: Sequence[float],
    floor: Sequence[float],
    limit: str,
    processor: Sequence[float] = (),
    processor_floor: Sequence[float] = (),
) -> None:
    low, _, high = statistics.quantiles(wall, n=4) if len(wall) > 1 else (wall[0],) * 3
    middle, ratio = statistics.median(wall), statistics.median(wall) / statistics.median(floor)
    line = f"{name:45} {f'{middle:.2f} ({low:.2f}..{high:.2f})':>24} {ratio:>7.2f} {limit:>8}"
    if processor:
        used = statistics.median(processor)
        line += f" {used:>10.2f} {used / statistics.median(processor_floor):>7.2f}"
    print(line, flush=True)


def run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a program to its end; return what it wrote to standard error."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stderr


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
