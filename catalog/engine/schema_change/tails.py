"""The tail of a collection of tables: the newest change of each key that transactions wrote, held in memory.

A tail never changes. The one after a commit shares what was there before: changes are held in runs, each at least twice
as large as the next, so that a commit costs as much as its own rows, however large the tail is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, TypeAlias

from catalog.engine.log.protocol import DataFile, Log, Row

Change: TypeAlias = tuple[int, int, bytes]
"""The ts, the rank and the value of a change of a key. Of two changes the greater one wins."""
REMOVED, ADDED, FOLDED = 0, 1, 2
"""The ranks of changes at one ts: a removed row, an added one, one of a base."""

_TS: Final = itemgetter(0)


def change_of(row: Row) -> tuple[bytes, Change]:
    """Return the key and the change of a row of a tail; the value of a removed row is not kept."""
    key, value, ts, diff = row
    return key, (ts, ADDED, value) if diff > 0 else (ts, REMOVED, b"")


@dataclass(frozen=True, slots=True)
class TailRun:
    changes: Mapping[bytes, Change]
    keys: Sequence[bytes]
    """In order."""
    size: int
    """Of keys and values, in bytes."""

    @classmethod
    def of(cls, changed: Iterable[tuple[bytes, Change]]) -> TailRun:
        """Keep the newest change of each key."""
        newest: dict[bytes, Change] = {}
        for key, change in changed:
            if key not in newest or newest[key] < change:
                newest[key] = change
        size = sum(len(key) + len(change[2]) for key, change in newest.items())
        return cls(newest, sorted(newest), size)

    def under(self, newer: TailRun) -> TailRun:
        """Return this run and a newer one as one."""
        changes, size = dict(self.changes), self.size
        for key, change in newer.changes.items():
            held = changes.get(key)
            if held is None or held < change:
                changes[key] = change
                size += len(change[2]) - len(held[2]) if held else len(change[2]) + len(key)
        keys = sorted((*self.keys, *(key for key in newer.keys if key not in self.changes)))
        return TailRun(changes, keys, size)


@dataclass(frozen=True, slots=True)
class Tail:
    version: int = -1
    """The version of the state that it is the tail of."""
    files: Mapping[str, DataFile] = field(default_factory=dict)
    runs: tuple[TailRun, ...] = ()

    @property
    def size(self) -> int:
        """Return the bytes of keys and values that are held, about."""
        return sum(run.size for run in self.runs)

    def get(self, key: bytes) -> Change | None:
        """Return the newest change of a key."""
        return max((run.changes[key] for run in self.runs if key in run.changes), default=None)

    def between(self, first: bytes, before: bytes | None) -> list[tuple[bytes, Change]]:
        """Return the newest changes of a range of keys, in order."""
        found: dict[bytes, Change] = {}
        for run in self.runs:
            end = len(run.keys) if before is None else bisect_left(run.keys, before)
            for key in run.keys[bisect_left(run.keys, first) : end]:
                change = run.changes[key]
                if key not in found or found[key] < change:
                    found[key] = change
        return sorted(found.items())

    def after(self, version: int, files: Mapping[str, DataFile], rows: Sequence[Row]) -> Tail:
        """Return the tail with the rows of later commits, whose files are among these."""
        if not rows:
            return Tail(version, files, self.runs)
        runs = [*self.runs, TailRun.of(map(change_of, rows))]
        while len(runs) > 1 and len(runs[-2].keys) < 2 * len(runs[-1].keys):
            newer = runs.pop()
            runs.append(runs.pop().under(newer))
        return Tail(version, files, tuple(runs))

    def at(self, log: Log, version: int, files: Mapping[str, DataFile]) -> Tail:
        """Return the tail of a later state; only files with rows of later commits are read.

        Changes of files that are gone are let go. A file that was merged of others adds nothing new up to the version
        that this tail knows.
        """
        added = [file for path, file in files.items() if path not in self.files]
        gone = [file for path, file in self.files.items() if path not in files]
        if version < self.version or any(file.ts_max <= self.version for file in added if not gone):
            return Tail().at(log, version, files)  # of an earlier state, or with files that came back
        runs = self.runs if not gone else _covered(self.runs, gone, files.values())
        rows = [row for file in added if file.ts_max > self.version for row in log.rows(file)]
        return Tail(version, files, runs).after(version, files, rows)


def _covered(runs: tuple[TailRun, ...], gone: Sequence[DataFile], left: Iterable[DataFile]) -> tuple[TailRun, ...]:
    """Return the changes whose ts a file that is left may hold.

    One that is held although its file is gone does no harm: it is in a layer or a base, which win at the same ts.
    """
    spans = sorted({(file.ts_min, file.ts_max) for file in left})
    if not spans:
        return ()
    if all(any(first <= file.ts_min and file.ts_max <= last for first, last in spans) for file in gone):
        return runs
    held = {ts for run in runs for ts in map(_TS, run.changes.values())}
    kept = {ts for ts in held if any(first <= ts <= last for first, last in spans)}
    return tuple(
        run
        for whole in runs
        if (run := TailRun.of((key, change) for key, change in whole.changes.items() if change[0] in kept)).keys
    )
