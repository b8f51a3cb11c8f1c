"""Processes as threads of which one runs at a time: who goes on is drawn from a seed at every step of every log."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock, Thread

from catalog.engine.log.protocol import FaultPoint
from tests.engine.log.places import Crash
from tests.memory_log import LostResponseError

LOSABLE = frozenset({
    FaultPoint.COMMIT_BEFORE_LOG, FaultPoint.COMMIT_AFTER_LOG, FaultPoint.COMMIT_PROBE, FaultPoint.COMMIT_SEAL,
    FaultPoint.COMMIT_AFTER_SYNC,
    FaultPoint.CREATE_BEFORE_LOG, FaultPoint.CREATE_AFTER_LOG,
})  # fmt: skip


@dataclass
class Turns:
    chance: random.Random
    crash_rate: float = 0.0
    lose_rate: float = 0.0
    switch_rate: float = 0.3
    stall_rate: float = 0.0
    """How often a process is kept waiting until all others have ended."""
    back: Lock = field(default_factory=Lock)
    waiting: int = 0

    def __post_init__(self) -> None:
        self.back.acquire()

    def run(self, bodies: list[Callable[[Actor], None]]) -> list[Actor]:
        """Run each body as a process, all at once, to their ends."""
        actors = [Actor(self, body) for body in bodies]
        running = list(actors)
        for actor in actors:
            actor.thread.start()
        self.waiting = len(running)
        while running:
            actor = self.chance.choice([one for one in running if not one.is_stalled] or running)
            actor.go.release()
            self.back.acquire()
            if actor.is_done:
                actor.thread.join()
                running.remove(actor)
                self.waiting = len(running)
        return actors


class Actor:
    def __init__(self, turns: Turns, body: Callable[[Actor], None]) -> None:
        self.turns = turns
        self.go = Lock()
        self.go.acquire()
        self.is_done = self.is_dead = self.is_stalled = False
        self.error: BaseException | None = None
        self.met_fault = False
        self.thread = Thread(target=self._work, args=(body,), daemon=True)

    def step(self, point: FaultPoint | None = None) -> None:
        """Let others go first, now and then; stop here for ever, now and then, or lose an answer."""
        turns = self.turns
        if self.is_dead:
            raise Crash(point)
        if turns.waiting > 1 and turns.chance.random() < turns.switch_rate:
            self.is_stalled = turns.chance.random() < turns.stall_rate
            turns.back.release()
            self.go.acquire()
        if turns.crash_rate and turns.chance.random() < turns.crash_rate:
            self.is_dead = self.met_fault = True
            raise Crash(point)
        if turns.lose_rate and point in LOSABLE and turns.chance.random() < turns.lose_rate:
            self.met_fault = True
            raise LostResponseError(f"no answer at {point}")

    def _work(self, body: Callable[[Actor], None]) -> None:
        self.go.acquire()
        try:
            body(self)
        except BaseException as error:  # noqa: BLE001 - looked at by whoever started it
            self.error = error
        self.is_done = True
        self.turns.back.release()
