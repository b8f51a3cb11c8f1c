"""Processes of their own, started afresh and never forked: told what to do in lines of JSON, and answering in such.

They import what they need before they are told anything, so that several can be let loose at the same moment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120
Told = dict[str, Any]


class Process:
    """A module that is run; it says that it is ready before it is told anything."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def ready(self) -> Process:
        assert self.hear() == {"ready": True}
        return self

    def tell(self, **told: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(told).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self) -> Told:
        """The next answer; it must come, and in time."""
        alarm = threading.Timer(PATIENCE_S, self.kill)
        alarm.start()
        answer = next(self.answers(), None)
        alarm.cancel()
        assert answer is not None, f"the process ended, status {self._process.wait()}"
        return answer

    def answers(self) -> Iterator[Told]:
        """Every answer until the process ends; one that was cut off is none."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith(b"\n"):
                yield json.loads(line)

    def kill(self) -> None:
        """As `kill -9` does."""
        self._process.kill()

    def wait(self) -> int:
        return self._process.wait()

    def close(self) -> None:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()


@dataclass
class Pool:
    """Warm processes of one module: shared where they survive a test, and fresh ones where they do not."""

    module: str
    _running: list[Process] = field(default_factory=list)
    _starting: list[Process] = field(default_factory=list)

    def some(self, count: int) -> list[Process]:
        """So many processes, the same ones whenever it is called."""
        missing = [Process(self.module) for _ in range(count - len(self._running))]
        self._running += [process.ready() for process in missing]
        return self._running[:count]

    def fresh(self, ahead: int) -> Process:
        """A process of the caller's own; so many more are started meanwhile, for the next calls."""
        self._starting += [Process(self.module) for _ in range(ahead + 1 - len(self._starting))]
        return self._starting.pop(0).ready()

    def close(self) -> None:
        for process in (*self._running, *self._starting):
            process.close()
        self._running.clear()
        self._starting.clear()


def listen() -> Told | None:
    """In such a process: what it is told next; none if nobody is there any more."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def answer(**said: object) -> None:
    """In such a process: written at once and whole, so that it outlives the process."""
    os.write(1, json.dumps(said).encode() + b"\n")
