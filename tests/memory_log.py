"""The log in memory: the same protocol, with a clock and faults of the test's own.

Several logs over one `Memory` are several processes over one store. It behaves as an object store does: a commit whose
answer was lost may still arrive, until its version is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock

import pyarrow as pa

from catalog.engine.base.fence import Fence
from catalog.engine.log.commit_rules import attempt, check_change, check_size, committed, sealing
from catalog.engine.log.data_files import (
    check_rows,
    decode_row_list,
    decode_rows,
    describe,
    describe_tail,
    encode_rows,
    encode_tail,
    name_file,
)
from catalog.engine.log.digests import state_text
from catalog.engine.log.parquet_footers import ParquetGroups, read_groups
from catalog.engine.log.protocol import (
    Commit,
    CommitRequest,
    DataFile,
    FaultHook,
    FaultPoint,
    FileKind,
    LogState,
    Operation,
    Row,
    RowGroup,
    no_fault,
)
from catalog.engine.storage.base import StoredFile
from catalog.errors import (
    CatalogError,
    ConflictError,
    IndeterminateError,
    MissingFileError,
    NoStoreError,
    NoSuchVersionError,
    RetiredError,
)


@dataclass(slots=True)
class Memory:
    """What outlives a process."""

    commits: dict[int, Commit] = field(default_factory=dict)
    states: dict[int, LogState] = field(default_factory=dict)
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    in_flight: list[tuple[LogState, Commit]] = field(default_factory=list)
    """Commits whose answer was lost before they arrived."""
    checkpointed: int = 0
    now_ms: int = 0
    lock: Lock = field(default_factory=Lock)

    def land(self, expected: LogState, commit: Commit) -> bool:
        """Take a version, unless it is taken."""
        with self.lock:
            if commit.version in self.commits:
                return False
            self.states[commit.version] = expected.after(commit)
            self.commits[commit.version] = replace(commit, state_digest=state_text(expected.digest_after(commit)))
            return True

    def deliver(self) -> None:
        """Let everything arrive that is still under way."""
        while self.in_flight:
            self.land(*self.in_flight.pop(0))


class LostResponseError(Exception):
    """Raised by a fault: the storage did what it was asked, and its answer was lost."""


class MemoryLog:
    def __init__(self, memory: Memory, *, reached: FaultHook = no_fault) -> None:
        self._memory = memory
        self._reached = reached
        self.uri = "memory:"

    def now_ms(self) -> int:
        return self._memory.now_ms

    def place_ms(self) -> int:
        return self._memory.now_ms

    def entry_times(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        return ((version, self.commit(version).timestamp_ms) for version in range(first, last + 1))

    def create(self, txid: str) -> bool:
        if self._memory.commits:
            return False
        commit = committed(0, CommitRequest(Operation.CREATE, txid), self.now_ms())
        try:
            self._reached(FaultPoint.CREATE_BEFORE_LOG)
            self._memory.land(LogState(-1, {}, {}), commit)
            self._reached(FaultPoint.CREATE_AFTER_LOG)
        except LostResponseError as error:
            if 0 not in self._memory.commits:
                raise IndeterminateError(self.uri, 0, txid, str(error)) from error
        return True

    def verify(self) -> int:
        return self.head(0)

    def head(self, known: int) -> int:  # noqa: ARG002 - nothing is far in memory
        if not self._memory.commits:
            raise NoStoreError(self.uri, "nothing is there")
        return max(self._memory.commits)

    def commit(self, version: int) -> Commit:
        found = self._memory.commits.get(version)
        if found is None:
            raise self._absent(version)
        return found

    def commits(self, first: int, last: int) -> Iterator[Commit]:
        return (self.commit(version) for version in range(first, last + 1))

    def state(self, version: int) -> LogState:
        found = self._memory.states.get(version)
        if found is None:
            raise self._absent(version)
        return found

    def write(self, collection: str, kind: FileKind, fence: Fence, rows: pa.Table) -> DataFile:
        check_rows(collection, kind, rows)
        content = encode_rows(rows, kind)
        return describe(self._write(collection, kind, fence, content), content.nbytes, rows)

    def write_tail(self, collection: str, fence: Fence, rows: Sequence[Row]) -> DataFile:
        content = encode_tail(collection, rows)
        return describe_tail(self._write(collection, FileKind.TAIL, fence, content), content.nbytes, rows)

    def _write(self, collection: str, kind: FileKind, fence: Fence, content: memoryview) -> str:
        path = name_file(collection, kind, fence, content)
        self._reached(FaultPoint.WRITE_BEFORE_FILE)
        self._memory.files[path] = (bytes(content), self.now_ms())
        self._reached(FaultPoint.WRITE_AFTER_FILE)
        return path

    def rows(self, file: DataFile) -> list[Row]:
        return decode_row_list(self.uri, file, self._content(file))

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None
    ) -> pa.Table:
        return decode_rows(self.uri, file, self._content(file), columns, groups)

    def groups(self, file: DataFile) -> tuple[RowGroup, ...]:
        return read_groups(self.uri, file, partial(self._range, file), lambda: self.read(file, ["key"]))

    def grouped(self, file: DataFile) -> ParquetGroups:
        return ParquetGroups.opened(self.uri, file, partial(self._range, file))

    def _range(self, file: DataFile, start: int, end: int) -> bytes:
        return self._content(file)[start:end]

    def _content(self, file: DataFile) -> bytes:
        found = self._memory.files.get(file.path)
        if found is None:
            raise MissingFileError(self.uri, file.path)
        return found[0]

    def compare_and_append(self, expected: LogState, change: CommitRequest) -> Commit:
        check_change(expected, change)
        for file in change.adds:
            found = self._memory.files.get(file.path)
            check_size(self.uri, file, None if found is None else len(found[0]))
        head = self.head(expected.version)
        if head != expected.version:
            raise ConflictError(self.uri, expected.version, head)
        commit = committed(expected.version + 1, change, self.now_ms())
        with attempt(
            self.uri,
            commit.version,
            change,
            probe=lambda: self._probe(commit.version),
            seal=lambda: self._seal(expected, change),
        ):
            self._append(expected, commit)
        try:
            self._reached(FaultPoint.COMMIT_AFTER_SYNC)
        except Exception as error:
            reason = f"not known to be durable: {error}"
            raise IndeterminateError(self.uri, commit.version, change.txid, reason) from error
        return commit

    def checkpoint(self, version: int) -> None:
        self.state(version)
        self._reached(FaultPoint.CHECKPOINT_BEFORE)
        self._memory.checkpointed = version
        self._reached(FaultPoint.CHECKPOINT_AFTER_FILE)
        self._reached(FaultPoint.CHECKPOINT_AFTER)

    def last_checkpoint(self) -> int:
        return self._memory.checkpointed

    def checkpoints(self) -> Iterator[tuple[int, LogState | CatalogError]]:
        if version := self._memory.checkpointed:
            yield version, self._memory.states[version]

    def expire(self, before: int) -> None:
        for version in sorted(self._memory.states):
            if version < min(before, self._memory.checkpointed):
                self._reached(FaultPoint.EXPIRE_BEFORE_ENTRY)
                del self._memory.states[version]
                del self._memory.commits[version]

    def files(self) -> Iterator[StoredFile]:
        for path, (content, written_ms) in list(self._memory.files.items()):
            yield StoredFile(path, len(content), written_ms)

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._reached(FaultPoint.DELETE_BEFORE_FILE)
            self._memory.files.pop(path, None)

    def _append(self, expected: LogState, commit: Commit) -> None:
        try:
            self._reached(FaultPoint.COMMIT_BEFORE_LOG)
        except LostResponseError:
            self._memory.in_flight.append((expected, commit))
            raise
        if not self._memory.land(expected, commit):
            raise ConflictError(self.uri, expected.version, commit.version)
        self._reached(FaultPoint.COMMIT_AFTER_LOG)

    def _probe(self, version: int) -> Commit | None:
        self._reached(FaultPoint.COMMIT_PROBE)
        return self._memory.commits.get(version)

    def _seal(self, expected: LogState, change: CommitRequest) -> bool:
        self._reached(FaultPoint.COMMIT_SEAL)
        return self._memory.land(expected, committed(expected.version + 1, sealing(change), self.now_ms()))

    def _absent(self, version: int) -> RetiredError | NoSuchVersionError:
        head = self.head(0)
        if version > head:
            return NoSuchVersionError(self.uri, version, head)
        return RetiredError(self.uri, version, self._memory.states[head].frontier)
