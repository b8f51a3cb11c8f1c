"""A leader whose job hangs, and another that takes over from it."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import AppTxn
from catalog.engine.migrate.recorder import RunState
from catalog.engine.stash.stash import Stash
from catalog.errors.versions import VersionChangedError
from catalog.upgrade import PROJECT
from tests.engine.migrate.cluster.servers import await_true, signal_tasks
from tests.engine.migrate.cluster.upgraders import Said, Upgrader
from tests.engine.migrate.kills.verdict import REGISTRY, Reference, events_of, log_of, newest


def hear_begin(upgrader: Upgrader, step: int) -> list[Said]:
    """All that is said until a step begins."""
    said: list[Said] = []
    while not said or said[-1].get("began") != step:
        said += upgrader.hear_all("began", "done", "error")
        assert "began" in said[-1], said[-1]
    return said


def take_over(log: DeltaLog) -> int:
    """Take over from a leader whose tasks hang, and return the step that runs; one more may be committed meanwhile."""
    while True:
        await_true(lambda: newest(log).app_txns.get(AppTxn.RUNNING_STEP), "a step runs")
        stash = Stash.open(log, REGISTRY, PROJECT.constraints)
        if step := stash.replica.state.app_txns.get(AppTxn.RUNNING_STEP):
            with suppress(VersionChangedError):
                stash.take_over(2, "another")
                return step


def fence_in_the_middle(reference: Reference, store: Path, upgrader: Upgrader, step: int, *servers: int) -> None:
    """Let the tasks of a step hang, and take over: its leader must learn of it, and leave nothing of the step behind.

    Tasks that hang end only if their job is cancelled: without that, no answer would ever come.
    """
    said = hear_begin(upgrader, step)
    assert signal_tasks(signal.SIGSTOP, *servers)
    log = log_of(store)
    try:
        step = take_over(log)  # the step, or a later one if its tasks had all ended
        said += upgrader.hear_all("done", "error")
    finally:
        signal_tasks(signal.SIGCONT, *servers)
    assert said[-1].get("error") == "FencedError", said[-1]
    assert reference.examine(store, said, deaths=1) == step - 1
    running = events_of(log, newest(log))[-1]
    assert (running.state, int(running.value.version)) == (RunState.RUNNING, step)
