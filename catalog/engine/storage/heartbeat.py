"""Heartbeats of a leader: advisory, outside the log, and never used for safety.

They let processes of one generation wait for each other instead of taking over from each other for ever. A process
compares two readings of a heartbeat, never clocks.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from catalog.engine.base.fence import Fence
from catalog.engine.base.process import require_opener
from catalog.engine.storage.base import Storage
from catalog.errors import CatalogError

FOLDER = "heartbeats"
INTERVAL_S = 1.0
_GRACE = 3
"""In intervals: a leader without a heartbeat for so long is taken for dead."""
_RELEASED = -1
_NAME = re.compile(FOLDER + r"/\.?(\d+)\.(\d+)\.json(?:\.[0-9a-f]{32}\.tmp)?")
"""Of a sign of life, or of one that its writer did not finish."""


@dataclass(slots=True)
class Heartbeat:
    """A thread that beats from start to stop."""

    storage: Storage
    fence: Fence
    interval_s: float = INTERVAL_S
    store: str = ""
    """The id of the store that is led: a place may have had another one before."""
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _opened_by: int = field(default_factory=os.getpid)

    def start(self) -> None:
        """Beat once before returning, so that no process takes a new leader for none, then in a thread."""
        self._beat(0)
        self._thread = threading.Thread(target=self._run, name="catalog-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and release the leadership so that a waiting process can go ahead.

        A forked child is refused: the leadership is its parent's.
        """
        require_opener(self._opened_by, f"the lead of {self.storage.uri}")
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._beat(_RELEASED)

    def _run(self) -> None:
        count = 1
        while not self._stopped.wait(self.interval_s):
            self._beat(count)
            count += 1

    def _beat(self, count: int) -> None:
        _write(self.storage, self.fence, self.store, count)


def was_led(storage: Storage, store: str) -> bool:
    """Tell if a leader of this store has left a heartbeat: none does before there is a log."""
    return any(_sign(storage, path).get("store") == store for path in storage.paths(FOLDER))


def release(storage: Storage, fence: Fence, store: str) -> None:
    """Release the leadership of a fence, so that no process waits for its leader."""
    _write(storage, fence, store, _RELEASED)


def sweep(storage: Storage, fence: Fence) -> None:
    """Remove the heartbeats of leaders before a fence, for which no process waits any more. Errors are ignored."""
    with suppress(CatalogError):  # the next leader tries again
        for path in list(storage.paths(FOLDER)):
            if (own := _fence_of(path)) is not None and own < fence:
                storage.delete(path)


def is_heartbeat(path: str) -> bool:
    """Tell if a file is a heartbeat, or one that its writer did not finish."""
    return _fence_of(path) is not None


def wait_for_leader(
    storage: Storage,
    fence: Fence,
    deadline: float,
    interval_s: float = INTERVAL_S,
    watch: Callable[[float, float], None] | None = None,
) -> bool:
    """Wait until the leader of a fence has ended, shows no heartbeat, or the deadline has come; tell if it seems alive.

    `watch` is called meanwhile with the seconds since its last heartbeat, and those until the deadline.
    """
    seen, seen_at = _read(storage, fence), time.monotonic()
    while seen != _RELEASED and time.monotonic() < min(deadline, seen_at + _GRACE * interval_s):
        if watch is not None:
            watch(time.monotonic() - seen_at, deadline - time.monotonic())
        time.sleep(interval_s / 4)
        now = _read(storage, fence)
        if now != seen:
            seen, seen_at = now, time.monotonic()
    return seen != _RELEASED and time.monotonic() < seen_at + _GRACE * interval_s


class LeaderStatus(StrEnum):
    """The heartbeat of a leader at one reading."""

    BEATING = "beating"
    """It was alive once, and did not say that it ended."""
    RELEASED = "released"
    NONE = "none"


def leader_status(storage: Storage, fence: Fence) -> LeaderStatus:
    """Return the last heartbeat of a leader; only a second reading can tell if it is still alive."""
    beat = _read(storage, fence)
    return LeaderStatus.NONE if beat is None else LeaderStatus.RELEASED if beat == _RELEASED else LeaderStatus.BEATING


def is_leader_alive(storage: Storage, fence: Fence, interval_s: float = INTERVAL_S) -> bool:
    """Tell if the leader of a fence, or one after it, shows a heartbeat before it would be taken for dead."""
    seen, end = _signs(storage, fence), time.monotonic() + _GRACE * interval_s
    while set(seen.values()) != {_RELEASED} and time.monotonic() < end:
        time.sleep(interval_s / 4)
        now = _signs(storage, fence)
        if any(beat not in {None, _RELEASED, seen.get(leader)} for leader, beat in now.items()):
            return True
    return False


def _signs(storage: Storage, fence: Fence) -> dict[Fence, int | None]:
    """Return the last heartbeat of the leader of a fence, and of each after it."""
    leaders = {fence}
    with suppress(CatalogError):
        leaders |= {own for path in storage.paths(FOLDER) if (own := _fence_of(path)) is not None and own > fence}
    return {leader: _read(storage, leader) for leader in leaders}


def _read(storage: Storage, fence: Fence) -> int | None:
    try:
        return int(_sign(storage, _path(fence))["beat"])
    except (KeyError, TypeError, ValueError):
        return None


def _sign(storage: Storage, path: str) -> dict[str, Any]:
    """Return the content of a heartbeat; empty if it cannot be read."""
    try:
        raw = storage.read(path)
        found = None if raw is None else json.loads(raw)
    except (CatalogError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _fence_of(path: str) -> Fence | None:
    found = _NAME.fullmatch(path)
    return None if found is None else Fence(int(found[1]), int(found[2]))


def _write(storage: Storage, fence: Fence, store: str, count: int) -> None:
    """Write a heartbeat; a missed one is harmless, because the fence decides which process may write."""
    with suppress(CatalogError):
        storage.replace(_path(fence), json.dumps({"beat": count, "store": store}).encode())


def _path(fence: Fence) -> str:
    return f"{FOLDER}/{fence.generation}.{fence.epoch}.json"
