"""Signs of life of owners and bulk writes: small files outside the log, advisory, never used for safety.

A process compares two readings of a sign, never clocks: one that did not change for long enough is taken for dead.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, Self

from catalog.engine.storage.base import Storage
from catalog.errors import CatalogError

FOLDER = "heartbeats/tables"
_FILE = re.compile(FOLDER + r"/\.?[A-Za-z0-9_-]+\.json(?:\.[0-9a-f]{32}\.tmp)?")
DEAD_AFTER_S = 60.0
_SHOWN_EVERY_S = 1.0


class Signs(Protocol):
    """Signs of life, of owners and of bulk writes."""

    def show(self, name: str, **facts: int) -> None:
        """Show that one is alive, with its progress."""

    def facts(self, name: str) -> dict[str, int]:
        """Return the progress that one showed last; empty if it showed none."""

    def dead(self, names: Iterable[str]) -> list[str]:
        """Return those that have shown no sign of life for too long."""

    def end(self, name: str) -> None:
        """Remove a sign, because what it stood for is over."""


@dataclass(slots=True)
class StoredSigns:
    """Signs of life as files of a store."""

    storage: Storage
    dead_after_s: float = DEAD_AFTER_S
    _counts: dict[str, int] = field(default_factory=dict)
    _shown_s: dict[str, float] = field(default_factory=dict)
    _seen: dict[str, tuple[object, float]] = field(default_factory=dict)
    """The last reading of a sign that differed, and when."""

    def show(self, name: str, **facts: int) -> None:
        """Show that one is alive, with its progress; at most once a second, and a missed one is harmless."""
        now = time.monotonic()
        if now - self._shown_s.get(name, -_SHOWN_EVERY_S) < _SHOWN_EVERY_S:
            return
        self._shown_s[name] = now
        self._counts[name] = count = self._counts.get(name, 0) + 1
        with suppress(CatalogError):
            self.storage.replace(_path(name), json.dumps({"beat": count, **facts}).encode())

    def facts(self, name: str) -> dict[str, int]:
        """Return the progress that one showed last; empty if it showed none."""
        try:
            raw = self.storage.read(_path(name))
            found = {} if raw is None else json.loads(raw)
        except (CatalogError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def dead(self, names: Iterable[str]) -> list[str]:
        """Return those that have shown no sign of life for too long, as far as this process has watched them."""
        return [name for name in names if self._is_dead(name)]

    def _is_dead(self, name: str) -> bool:
        now, sign = time.monotonic(), self.facts(name).get("beat")
        known = self._seen.get(name)
        if known is None or known[0] != sign:
            self._seen[name] = sign, now
            return False
        return now - known[1] >= self.dead_after_s

    def end(self, name: str) -> None:
        """Remove a sign, because what it stood for is over."""
        with suppress(CatalogError):
            self.storage.delete(_path(name))


@dataclass(slots=True)
class LifeThread:
    """A thread that shows a sign of life from start to stop."""

    signs: Signs
    name: str
    interval_s: float = 5.0
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.signs.show(self.name)
        self._thread = threading.Thread(target=self._run, name=f"sign-{self.name}", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self.signs.end(self.name)

    def _run(self) -> None:
        while not self._stopped.wait(self.interval_s):
            self.signs.show(self.name)


def is_sign(path: str) -> bool:
    """Tell if a file is a sign of life, or one that its writer did not finish."""
    return _FILE.fullmatch(path) is not None


def _path(name: str) -> str:
    return f"{FOLDER}/{name}.json"
