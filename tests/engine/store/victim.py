"""A process that writes to a store, copies it or removes it, until it is killed: by others, or by itself on the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from unittest.mock import patch

from catalog.constraints import CONSTRAINTS
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace
from catalog.engine.stash.stash import Stash
from catalog.engine.storage.local import LocalStorage
from catalog.tools import copy as copies
from catalog.tools.remove import remove_store
from catalog.upgrade import PROJECT
from tests.engine.stash.crashes.ledger import REGISTRY, SHAPE, count_of, open_stash, transact
from tests.engine.stash.races.processes import Told, answer, listen


def write(told: Told) -> None:
    """Commit and consolidate as fast as can be; `eager` also retires and deletes whatever is not the newest."""
    log = DeltaLog(f"{told['store']}/stash")
    stash = open_stash(log) if told["eager"] else Stash.open(log, REGISTRY, CONSTRAINTS)
    stash.compaction = SHAPE
    stash.join()
    while True:
        number, ts = count_of(stash.view()) + 1, stash.refresh() + 1  # nobody else writes
        with stash.transaction() as tx:
            transact(tx, number)
        answer(done=number, ts=ts)


def copy(told: Told) -> None:
    """Die when so many files are written, or when all are and only `store.json` is not."""
    countdown = Countdown(told["times"])
    source, target = StorePlace.at(PROJECT, told["store"]), StorePlace.at(PROJECT, told["target"])
    with patch.object(copies, "make_identity", die):
        copies.copy_store(source, target, progress=lambda *_: countdown.tick())
    answer(survived=True)


def remove(told: Told) -> None:
    """Die before so many files are deleted."""
    countdown, delete = Countdown(told["times"]), LocalStorage.delete

    def deadly(storage: LocalStorage, path: str) -> None:
        countdown.tick()
        delete(storage, path)

    with patch.object(LocalStorage, "delete", deadly):
        remove_store(StorePlace.at(PROJECT, told["store"]), "victim")
    answer(survived=True)


class Countdown:
    def __init__(self, times: int) -> None:
        self.times = times

    def tick(self) -> None:
        self.times -= 1
        if self.times == 0:
            die()


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


ACTIONS: dict[str, Callable[[Told], None]] = {"write": write, "copy": copy, "remove": remove}


def main() -> None:
    told = listen()
    if told is not None:
        ACTIONS[told["do"]](told)
