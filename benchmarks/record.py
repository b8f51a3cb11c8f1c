"""The benchmarks with the commands whose output is committed: `python -m benchmarks.record [NAME …]`.

Each is run by itself, and its output written to `benchmarks/results/NAME.txt` with the commit, the machine and the
command. A benchmark that fails leaves its file as it was.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from benchmarks.earlier import BEFORE, ROOT, environment

COMMANDS = {
    "gate": ["gate"],
    "task-costs": ["upgrade", "costs"],
    "per-row-turns": ["per_row_turns"],
    "cli": ["cli"],
    "frame": ["frame", "--before", BEFORE],
    "upgrade": ["upgrade", "--before", BEFORE, "forms"],
    "start": ["start"],
}


def main() -> None:
    failed = [name for name in sys.argv[1:] or COMMANDS if not record(name)]
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def record(name: str) -> bool:
    """Run a benchmark, and write what it prints to its file; tell if it succeeded."""
    module, *words = COMMANDS[name]
    began = time.perf_counter()
    command = [sys.executable, "-m", f"benchmarks.{module}", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment(ROOT), stdout=subprocess.PIPE, text=True, check=False)
    print(f"$ {' '.join(['python', *command[1:]])}  # {time.perf_counter() - began:.0f} s\n{done.stdout}", flush=True)
    if done.returncode == 0:
        text = f"{machine()}\n$ {' '.join(['python', *command[1:]])}\n{done.stdout}"
        (ROOT / "benchmarks" / "results" / f"{name}.txt").write_text(text, encoding="utf-8")
    return done.returncode == 0


def machine() -> str:
    """Return the commit and the machine, with its load: above the number of cores, other programs ran too."""
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return f"commit {commit}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, load {load:.1f} at the end"


if __name__ == "__main__":
    main()
