"""Processes of their own, told what to do and answering, to be let loose on one store and killed at any time.

They come from a server that has imported what they need and done nothing else: delta-rs does not survive a fork once
it has been used, and importing everything anew for each process takes longer than most of them live.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

MODULES = ["tests.engine.stash.races.member", "tests.engine.stash.crashes.victim"]
PATIENCE_S = 120
Told = dict[str, Any]

_context = get_context("forkserver")
_context.set_forkserver_preload(MODULES)
_tester: Connection[Any, Any]
"""In such a process: who told it to do something."""


class Process:
    """A process that runs the `main` of a module."""

    def __init__(self, module: str) -> None:
        self._connection, theirs = _context.Pipe()
        self._process = _context.Process(target=_run, args=(module, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def tell(self, **told: object) -> None:
        self._connection.send(told)

    def hear(self) -> Told:
        """The next answer; it must come, and in time."""
        assert self._connection.poll(PATIENCE_S), "no answer came in time"
        answer = next(self.answers(), None)
        assert answer is not None, f"the process ended, status {self.wait()}"
        return answer

    def is_heard(self) -> bool:
        """Tell if an answer has come, or the process has ended."""
        return self._connection.poll()

    def answers(self) -> Iterator[Told]:
        """Every answer until the process ends; one that was cut off is none."""
        try:
            while True:
                yield self._connection.recv()
        except (EOFError, OSError):
            return

    def kill(self) -> None:
        """As `kill -9` does."""
        self._process.kill()

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def close(self) -> None:
        self.kill()
        self.wait()
        self._connection.close()


class Pool:
    """The processes of one test, which end with it."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._started: list[Process] = []

    def some(self, count: int) -> list[Process]:
        """So many new ones."""
        return [self.one() for _ in range(count)]

    def one(self) -> Process:
        process = Process(self._module)
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            process.close()


def listen() -> Told | None:
    """In such a process: what it is told next; none if nobody is there any more."""
    try:
        told: Told = _tester.recv()
    except EOFError:
        return None
    return told


def answer(**said: object) -> None:
    """In such a process: sent at once and whole, so that it outlives the process."""
    _tester.send(said)


def _run(module: str, connection: Connection[Any, Any]) -> None:
    global _tester  # noqa: PLW0603 - a process has one
    _tester = connection
    importlib.import_module(module).main()
