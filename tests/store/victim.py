"""A process that writes to a store, copies it or removes it, until it is killed: by others, or by itself on the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from unittest.mock import patch

from catalog import copying
from catalog.constraints import CONSTRAINTS
from catalog.log.delta import DeltaLog
from catalog.log.local_storage import LocalStorage
from catalog.log.storage import open_storage
from catalog.removing import remove_store
from catalog.stash.stash import Stash
from catalog.upgrade import PROJECT
from tests.crashes.ledger import REGISTRY, SHAPE, count_of, open_stash, transact
from tests.races.processes import Told, answer, listen


def write(told: Told) -> None:
    """Commit and consolidate as fast as can be; `eager` also retires and deletes whatever is not the newest."""
    log = DeltaLog(f"{told['store']}/stash")
    stash = open_stash(log) if told["eager"] else Stash.open(log, REGISTRY, CONSTRAINTS)
    stash.shape = SHAPE
    stash.join()
    while True:
        number, ts = count_of(stash.view()) + 1, stash.refresh() + 1  # nobody else writes
        with stash.transaction() as tx:
            transact(tx, number)
        answer(done=number, ts=ts)


def copy(told: Told) -> None:
    """Die when so many files are written, or when all are and only `store.json` is not."""
    countdown = Countdown(told["times"])
    source, target = open_storage(told["store"], {}), open_storage(told["target"], {})
    with patch.object(copying, "make_identity", die):
        copying.copy_store(PROJECT, source, {}, target, {}, progress=lambda *_: countdown.tick())
    answer(survived=True)


def remove(told: Told) -> None:
    """Die before so many files are deleted."""
    countdown, delete = Countdown(told["times"]), LocalStorage.delete

    def deadly(storage: LocalStorage, path: str) -> None:
        countdown.tick()
        delete(storage, path)

    with patch.object(LocalStorage, "delete", deadly):
        remove_store(PROJECT, open_storage(told["store"], {}), {}, "victim")
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
