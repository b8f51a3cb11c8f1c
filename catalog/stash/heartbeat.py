"""Signs of life of a leader: advisory, outside the log, and never used for safety.

They let processes of one generation wait for each other instead of taking over from each other for ever. Whoever looks
compares what it saw with what it sees, not clocks with clocks.
"""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from catalog.errors import CatalogError
from catalog.log.protocol import Fence
from catalog.log.storage import Storage

FOLDER = "heartbeats"
INTERVAL_S = 1.0
_GRACE = 3
"""In intervals: a leader that has shown no sign for so long is taken for dead."""
_RELEASED = -1
_NAME = re.compile(FOLDER + r"/\.?(\d+)\.(\d+)\.json(?:\.[0-9a-f]{32}\.tmp)?")
"""Of a sign of life, or of one that its writer did not finish."""


@dataclass(slots=True)
class Heartbeat:
    """Beats from start to stop, in a thread of its own."""

    storage: Storage
    fence: Fence
    interval_s: float = INTERVAL_S
    store: str = ""
    """The id of the store that is led: a place may have had another one before."""
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="catalog-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and let whoever waits go ahead."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._beat(_RELEASED)

    def _run(self) -> None:
        count = 0
        while not self._stopped.is_set():
            self._beat(count)
            count += 1
            self._stopped.wait(self.interval_s)

    def _beat(self, count: int) -> None:
        try:
            self.storage.replace(_path(self.fence), json.dumps({"beat": count, "store": self.store}).encode())
        except CatalogError:
            return  # a missed sign of life is nothing: the fence decides who may write


def was_led(storage: Storage, store: str) -> bool:
    """Whether a leader of this store has left a sign: none does before there is a log."""
    return any(_sign(storage, path).get("store") == store for path in storage.paths(FOLDER))


def release(storage: Storage, fence: Fence, store: str) -> None:
    """Say for the leader of a fence that it has ended, so that nobody waits for it."""
    Heartbeat(storage, fence, store=store)._beat(_RELEASED)  # noqa: SLF001 - of this module


def sweep(storage: Storage, fence: Fence) -> None:
    """Remove what leaders before a fence left: nobody waits for them any more. What cannot be removed stays."""
    try:
        for path in list(storage.paths(FOLDER)):
            found = _NAME.fullmatch(path)
            if found is not None and Fence(int(found[1]), int(found[2])) < fence:
                storage.delete(path)
    except CatalogError:
        return  # the next leader tries again


def is_sign(path: str) -> bool:
    """Whether a file is a sign of life, or one that its writer did not finish."""
    return _NAME.fullmatch(path) is not None


def wait_for_leader(storage: Storage, fence: Fence, deadline: float, interval_s: float = INTERVAL_S) -> bool:
    """Wait until the leader of a fence has ended, shows no sign of life, or the deadline has come.

    Answers whether, for all that is known, it lives.
    """
    seen, seen_at = _read(storage, fence), time.monotonic()
    while seen != _RELEASED and time.monotonic() < min(deadline, seen_at + _GRACE * interval_s):
        time.sleep(interval_s / 4)
        now = _read(storage, fence)
        if now != seen:
            seen, seen_at = now, time.monotonic()
    return seen != _RELEASED and time.monotonic() < seen_at + _GRACE * interval_s


class Sign(StrEnum):
    """What the heartbeat of a leader says at one look."""

    BEATING = "beating"
    """It was alive once, and did not say that it ended."""
    RELEASED = "released"
    NONE = "none"


def sign_of(storage: Storage, fence: Fence) -> Sign:
    """The last sign of life of a leader; whether it still lives only a second look can tell."""
    beat = _read(storage, fence)
    return Sign.NONE if beat is None else Sign.RELEASED if beat == _RELEASED else Sign.BEATING


def is_led(storage: Storage, fence: Fence, interval_s: float = INTERVAL_S) -> bool:
    """Whether the leader of a fence, or one after it, shows a sign of life before it would be taken for dead."""
    seen, end = _signs(storage, fence), time.monotonic() + _GRACE * interval_s
    while set(seen.values()) != {_RELEASED} and time.monotonic() < end:
        time.sleep(interval_s / 4)
        now = _signs(storage, fence)
        if any(beat not in {None, _RELEASED, seen.get(leader)} for leader, beat in now.items()):
            return True
    return False


def _signs(storage: Storage, fence: Fence) -> dict[Fence, int | None]:
    """The last sign of the leader of a fence, and of each after it."""
    try:
        found = [_NAME.fullmatch(path) for path in storage.paths(FOLDER)]
    except CatalogError:
        found = []
    leaders = {Fence(int(name[1]), int(name[2])) for name in found if name is not None}
    return {leader: _read(storage, leader) for leader in {fence, *leaders} if leader >= fence}


def _read(storage: Storage, fence: Fence) -> int | None:
    try:
        return int(_sign(storage, _path(fence))["beat"])
    except (KeyError, TypeError, ValueError):
        return None


def _sign(storage: Storage, path: str) -> dict[str, Any]:
    """What a sign of life says; nothing if it cannot be read."""
    try:
        raw = storage.read(path)
        found = None if raw is None else json.loads(raw)
    except (CatalogError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _path(fence: Fence) -> str:
    return f"{FOLDER}/{fence.generation}.{fence.epoch}.json"
