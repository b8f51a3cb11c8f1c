"""Where a log can be, and how to make what it holds."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from catalog.engine.base.fence import Fence
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import (
    ROWS,
    AppTxn,
    CommitRequest,
    DataFile,
    FaultHook,
    FaultPoint,
    FileKind,
    Log,
    LogState,
    Operation,
    no_fault,
)
from catalog.engine.storage.base import open_storage
from tests.memory_log import LostResponseError, Memory, MemoryLog

FENCE = Fence(0, 0)


class Place(Protocol):
    """One store, opened by as many processes as a test needs."""

    def open(self, reached: FaultHook = no_fault) -> Log: ...

    def wait(self, milliseconds: int) -> None:
        """Let time pass on the clock of every log that is open here."""


@dataclass
class MemoryPlace:
    memory: Memory = field(default_factory=lambda: Memory(now_ms=1_000_000))

    def open(self, reached: FaultHook = no_fault) -> MemoryLog:
        return MemoryLog(self.memory, reached=reached)

    def wait(self, milliseconds: int) -> None:
        self.memory.now_ms += milliseconds


@dataclass
class DeltaPlace:
    uri: str
    options: Mapping[str, str] = field(default_factory=dict)
    ahead_s: float = 0
    aged_ms: Counter[str] = field(default_factory=Counter)
    """By the name of a file: for how long the test has waited since it was written."""

    def open(self, reached: FaultHook = no_fault) -> DeltaLog:
        log = DeltaLog(self.uri, self.options, reached=reached, clock=lambda: time.time() + self.ahead_s)
        storage: Any = log._storage  # noqa: SLF001 - nobody waits for hours
        entries, modified_ms = storage.entries, storage.modified_ms

        def dated(path: str) -> int | None:
            found = modified_ms(path)
            return None if found is None else found - self.aged_ms[_name(path)]

        storage.modified_ms = dated
        storage.entries = lambda *besides: (
            replace(file, modified_ms=file.modified_ms - self.aged_ms[_name(file.path)]) for file in entries(*besides)
        )
        return log

    def wait(self, milliseconds: int) -> None:
        self.ahead_s += milliseconds / 1000
        for file in open_storage(self.uri, self.options).entries():
            self.aged_ms[_name(file.path)] += milliseconds

    @property
    def folder(self) -> Path:
        return Path(self.uri)

    def entry(self, version: int) -> Path:
        return self._numbered(f"{version:020d}.json")

    def checkpoint(self, version: int) -> Path:
        return self._numbered(f"{version:020d}.checkpoint.parquet")

    def _numbered(self, name: str) -> Path:
        """Where it is now: in the archive or in the log."""
        archived = self.folder / "_archive" / name
        return archived if archived.exists() else self.folder / "_delta_log" / name


def _name(path: str) -> str:
    return path.rpartition("/")[2]


class Crash(BaseException):
    """The process stops here."""


class LoseAnswers:
    """Lose the answer at each of some points."""

    def __init__(self, *points: FaultPoint) -> None:
        self.points = points

    def __call__(self, point: FaultPoint) -> None:
        if point in self.points:
            raise LostResponseError(f"no answer at {point}")


class CrashAt:
    def __init__(self, point: FaultPoint) -> None:
        self.point = point

    def __call__(self, point: FaultPoint) -> None:
        if point is self.point:
            raise Crash(point)


def rows(ts: int, *keys: bytes, diff: int = 1, value: bytes = b"value") -> pa.Table:
    columns = {"key": list(keys), "value": [value] * len(keys), "ts": [ts] * len(keys), "diff": [diff] * len(keys)}
    return pa.table(columns, schema=ROWS)


def tail(log: Log, state: LogState, *keys: bytes, collection: str = "role", fence: Fence | None = None) -> DataFile:
    """A file with these keys for the commit after a state."""
    table = rows(state.version + 1, *(keys or (b"key",)))
    return log.write(collection, FileKind.TAIL, state.fence if fence is None else fence, table)


def change(*adds: DataFile, removes: tuple[DataFile, ...] = (), **more: object) -> CommitRequest:
    operation = Operation(str(more.pop("operation", Operation.TRANSACTION)))
    return CommitRequest(operation, uuid.uuid4().hex, adds, removes, **more)  # type: ignore[arg-type]


def created(place: Place, reached: FaultHook = no_fault) -> tuple[Log, LogState]:
    """A new log, and its first state."""
    place.open().create(uuid.uuid4().hex)
    log = place.open(reached)
    return log, log.state(0)


def append(log: Log, state: LogState, *keys: bytes, removes: tuple[DataFile, ...] = (), **marks: int) -> LogState:
    """Commit one file with these keys; answer the state after it."""
    asked = change(
        tail(log, state, *keys),
        removes=removes,
        app_txns={AppTxn(name.lower()): number for name, number in marks.items()},
    )
    return state.after(log.compare_and_append(state, asked))


def grown(log: Log, state: LogState, count: int) -> LogState:
    """Commit so often, each time a file in place of the one before."""
    for _ in range(count):
        state = append(log, state, removes=tuple(state.files.values()))
    return state
