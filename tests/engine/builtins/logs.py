"""The logs of a store in memory, which a process uses step by step; quick, for files are kept as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa

from catalog.engine.base.fence import Fence
from catalog.engine.log.data_files import name_file
from catalog.engine.log.protocol import Commit, CommitRequest, DataFile, FaultPoint, FileKind, LogState, RowGroup
from catalog.engine.shard.schema import FINALIZED
from catalog.engine.storage.base import StoredFile
from catalog.errors import MissingFileError
from tests.memory_log import Memory, MemoryLog

STASH = "stash"
Step = Callable[[FaultPoint | None], None]


def pass_step(_point: FaultPoint | None = None) -> None:
    """Alone, and without faults."""


@dataclass
class Disk:
    """What outlives every process."""

    logs: dict[str, Memory] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    finalizing: Callable[[str], None] = lambda _name: None
    """Told whenever a shard may have been finalised just now."""

    def is_finalized(self, name: str) -> bool:
        memory = self.logs[name]
        newest = memory.states[max(memory.states)]
        return any(file.collection == FINALIZED for file in newest.files.values())

    def shards(self) -> set[str]:
        """All that are there, finalised or not."""
        return {name for name, memory in self.logs.items() if memory.commits and name != STASH}

    def open(self, name: str, step: Step = pass_step) -> StepLog:
        return StepLog(self, name, self.logs.setdefault(name, Memory(now_ms=1_000_000)), step)

    def forked(self) -> Disk:
        """The same, to go on differently."""
        copies = {
            name: Memory(dict(m.commits), dict(m.states), dict(m.files), list(m.in_flight), m.checkpointed, m.now_ms)
            for name, m in self.logs.items()
        }
        return Disk(copies, self.tables, self.numbers)

    def deliver(self) -> None:
        for memory in self.logs.values():
            memory.deliver()


class StepLog(MemoryLog):
    def __init__(self, disk: Disk, name: str, memory: Memory, step: Step) -> None:
        super().__init__(memory, reached=step)
        self.uri = f"memory:{name}"
        self.disk, self.name, self.step = disk, name, step

    def create(self, txid: str) -> bool:
        self.step(None)
        return super().create(txid)

    def head(self, known: int) -> int:
        self.step(None)
        return super().head(known)

    def state(self, version: int) -> LogState:
        self.step(None)
        return super().state(version)

    def write(self, collection: str, kind: FileKind, fence: Fence, rows: pa.Table) -> DataFile:
        content = str(next(self.disk.numbers)).encode()
        path = name_file(collection, kind, fence, pa.py_buffer(content))
        self.step(FaultPoint.WRITE_BEFORE_FILE)
        self._memory.files[path] = (content, self.now_ms())
        self.disk.tables[path] = rows
        self.step(FaultPoint.WRITE_AFTER_FILE)
        dated = rows["ts"].to_pylist()
        return DataFile(path, collection, kind, len(content), rows.num_rows, min(dated), max(dated))

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None
    ) -> pa.Table:
        self.step(None)
        assert groups is None
        if file.path not in self._memory.files:
            raise MissingFileError(self.uri, file.path)
        found = self.disk.tables[file.path]
        return found if columns is None else found.select(columns)

    def groups(self, file: DataFile) -> tuple[RowGroup, ...]:
        keys = self.read(file)["key"].to_pylist()
        return (RowGroup(min(keys), max(keys), file.rows, file.size),)

    def compare_and_append(self, expected: LogState, change: CommitRequest) -> Commit:
        self.step(None)
        try:
            return super().compare_and_append(expected, change)
        finally:
            if any(file.collection == FINALIZED for file in change.adds):
                self.disk.finalizing(self.name)

    def files(self) -> Iterator[StoredFile]:
        self.step(None)
        return super().files()
