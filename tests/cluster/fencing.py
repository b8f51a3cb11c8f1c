"""A leader whose job hangs, and another that takes over from it."""

from __future__ import annotations

import signal
from pathlib import Path

from catalog.engine.events import State
from catalog.log.protocol import Mark
from catalog.stash.stash import Stash
from catalog.upgrade import PROJECT
from tests.cluster.servers import await_true, signal_tasks
from tests.cluster.upgraders import Said, Upgrader
from tests.kills.verdict import REGISTRY, Reference, events_of, log_of, newest


def hear_begin(upgrader: Upgrader, step: int) -> list[Said]:
    """All that is said until a step begins."""
    said: list[Said] = []
    while not said or said[-1].get("began") != step:
        said += upgrader.hear_all("began", "done", "error")
        assert "began" in said[-1], said[-1]
    return said


def fence_in_the_middle(reference: Reference, store: Path, upgrader: Upgrader, step: int, *servers: int) -> None:
    """Let the tasks of a step hang, and take over: its leader must learn of it, and leave nothing of the step behind.

    Tasks that hang end only if their job is cancelled: without that, no answer would ever come.
    """
    said = hear_begin(upgrader, step)
    assert signal_tasks(signal.SIGSTOP, *servers)
    log = log_of(store)
    try:
        await_true(lambda: newest(log).marks.get(Mark.RUNNING_STEP) == step, "the step runs")
        Stash.open(log, REGISTRY, PROJECT.constraints).take_over(2, "another")
        said += upgrader.hear_all("done", "error")
    finally:
        signal_tasks(signal.SIGCONT, *servers)
    assert said[-1].get("error") == "FencedError", said[-1]
    assert reference.examine(store, said, deaths=1) == step - 1
    running = events_of(log, newest(log))[-1]
    assert (running.state, int(running.value.version)) == (State.RUNNING, step)
