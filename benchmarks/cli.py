"""The command line against Alembic's, and against itself on a store with a longer past.

Whole processes, from start to exit, in turns; medians with the spread between the quartiles, of the time that passes
and of the processor's time. Both sides run as installed programs do: with compiled bytecode, in a folder of their own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL

from benchmarks.store import align, grow, store

ROOT = Path(__file__).parents[1]
ALEMBIC = Path(sys.executable).parent / "alembic"
ROUNDS = 9
COMMITS = 10_000
SCRIPT = """#!{python}
import sys
from catalog.cli.main_group import main
if __name__ == '__main__':
    sys.exit(main())
"""
"""The script that installing the package writes."""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        young, old = store(folder / "young", 0), store(folder / "old", 0)
        grow(young, 10)
        grow(old, COMMITS)
        align(young, old)
        young.close()
        old.close()
        runs = _in_turns(_programs(folder))
    _show("catalog info / alembic current", runs["info"], runs["current"], 0.4)
    _show("catalog start, nothing to do / alembic upgrade head", runs["start"], runs["upgrade"], 0.5)
    _show(f"catalog info after {COMMITS:,} commits / after 10", runs["info, old"], runs["info"], 1.2)
    _show(f"catalog start after {COMMITS:,} commits / after 10", runs["start, old"], runs["start"], 1.2)


@dataclass(frozen=True, slots=True)
class Program:
    words: tuple[str | Path, ...]
    folder: Path
    variables: dict[str, str]

    def run(self) -> tuple[float, float]:
        """Run to the end; return the milliseconds that passed, and those of the processor."""
        began_s = time.perf_counter()
        process = subprocess.Popen(self.words, cwd=self.folder, env=self.variables, stdout=DEVNULL, stderr=DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{self.words} ended with {process.returncode}")
        return (time.perf_counter() - began_s) * 1000, (used.ru_utime + used.ru_stime) * 1000


@dataclass(slots=True)
class Runs:
    passed_ms: list[float] = field(default_factory=list)
    processor_ms: list[float] = field(default_factory=list)


def _programs(folder: Path) -> dict[str, Program]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("CATALOG_", "PYTHON"))}
    variables |= {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    script, peer = folder / "catalog", folder / "alembic"
    script.write_text(SCRIPT.format(python=sys.executable), encoding="utf-8")
    script.chmod(0o755)
    peer.mkdir()

    def alembic(*words: str) -> Program:
        return Program((ALEMBIC, *words), peer, variables)

    def catalog(verb: str, name: str) -> Program:
        return Program((script, verb, "--store", folder / name), folder, variables)

    _make_database(peer, alembic("init", "migrations"), alembic("revision", "--message", "one"))
    return {
        "info": catalog("info", "young"),
        "current": alembic("current"),
        "info, old": catalog("info", "old"),
        "start": catalog("start", "young"),
        "upgrade": alembic("upgrade", "head"),
        "start, old": catalog("start", "old"),
    }


def _make_database(folder: Path, init: Program, revision: Program) -> None:
    """Make a SQLite database with one migration, for Alembic."""
    init.run()
    settings = folder / "alembic.ini"
    lines = settings.read_text(encoding="utf-8").splitlines()
    url = f"sqlalchemy.url = sqlite:///{folder}/peer.db"
    edited = [url if line.startswith("sqlalchemy.url") else line for line in lines]
    settings.write_text("\n".join(edited), encoding="utf-8")
    revision.run()


def _in_turns(programs: dict[str, Program]) -> dict[str, Runs]:
    for program in programs.values():
        program.run()  # compiles, and applies Alembic's migration
    runs = {name: Runs() for name in programs}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            passed_ms, processor_ms = program.run()
            runs[name].passed_ms.append(passed_ms)
            runs[name].processor_ms.append(processor_ms)
    return runs


def _show(what: str, ours: Runs, peer: Runs, most: float) -> None:
    for kind, own, other in (
        ("time", ours.passed_ms, peer.passed_ms),
        ("processor", ours.processor_ms, peer.processor_ms),
    ):
        ratio = statistics.median(own) / statistics.median(other)
        print(f"{what}, {kind}: {_spread(own)} / {_spread(other)}: {ratio:.2f} (at most {most})", flush=True)


def _spread(times_ms: list[float]) -> str:
    low, middle, high = statistics.quantiles(times_ms, n=4)
    return f"{middle:.0f} ms ({low:.0f}..{high:.0f})"


if __name__ == "__main__":
    main()
