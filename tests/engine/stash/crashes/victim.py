"""A process that writes to a store until it is killed: by itself at a named point, or by others at any time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace

from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.maintenance import clean
from catalog.engine.log.protocol import FaultPoint
from catalog.engine.stash.stash import Stash
from tests.engine.stash.crashes.ledger import EAGER, count_of, open_stash, transact
from tests.engine.stash.races.processes import Told, answer, listen
from tests.memory_log import LostResponseError


@dataclass
class DieAt:
    """Dies when a point is reached for the nth time; may lose an answer on the way there."""

    point: FaultPoint
    times: int
    lose: FaultPoint | None

    def __call__(self, point: FaultPoint) -> None:
        if point is self.point:
            self.times -= 1
            if self.times == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        if point is self.lose:
            raise LostResponseError(f"no answer at {point}")


def commit(stash: Stash) -> None:
    """The next transaction: announced, done, acknowledged."""
    number = count_of(stash.view()) + 1
    answer(begun=number)
    with stash.transaction() as tx:
        transact(tx, number)
    answer(done=number, ts=stash.ts)


def take_over(stash: Stash) -> None:
    stash.take_over(2, "second")


def consolidate(stash: Stash) -> None:
    stash.consolidate("database")


def checkpoint(stash: Stash) -> None:
    stash.log.checkpoint(stash.ts)


def clean_up(stash: Stash) -> None:
    clean(stash.log, stash.state, EAGER)


def sweep(stash: Stash) -> None:
    clean(stash.log, stash.state, replace(EAGER, orphan_ms=0))


ACTIONS: dict[str, Callable[[Stash], None]] = {
    "commit": commit,
    "fence": take_over,
    "consolidation": consolidate,
    "checkpoint": checkpoint,
    "clean-up": clean_up,
    "vacuum": sweep,
}


def die(told: Told) -> None:
    """Make a log, or join a store and do something to it; die on the way."""
    reached = DieAt(FaultPoint(told["point"]), told["times"], told["lose"] and FaultPoint(told["lose"]))
    log = DeltaLog(told["uri"], told["options"], reached=reached)
    if told["action"] == "create":
        log.create("made")
    else:
        stash = open_stash(log)
        stash.join()
        ACTIONS[told["action"]](stash)
    answer(survived=True)


def hurry(told: Told) -> None:
    """Take over, then commit, consolidate and maintain as fast as can be."""
    log = DeltaLog(told["uri"])
    log.create("made")
    stash = open_stash(log)
    stash.take_over(1, str(os.getpid()))
    while True:
        commit(stash)


def main() -> None:
    told = listen()
    if told is not None:
        {"die": die, "hurry": hurry}[told["do"]](told)
