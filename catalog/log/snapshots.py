"""States of a Delta log: the newest usable checkpoint, and every entry since.

Reads the log's own files, so that each entry is checked on the way, a damaged checkpoint is stepped over, and opening
costs the same however long the history is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import (
    CatalogError,
    CorruptCheckpointError,
    DamagedError,
    ForeignTableError,
    InvalidChangeError,
    NoStoreError,
    NoSuchVersionError,
    RetiredError,
    TornLogError,
)
from catalog.log.archive import Archive
from catalog.log.entries import LOG_FOLDER, added_file, checkpoint_path, entry_path, numbered, parse_entry
from catalog.log.protocol import Commit, Mark, State
from catalog.log.storage import Storage, each

HINT = f"{LOG_FOLDER}/_last_checkpoint"
_CHECKPOINT_COLUMNS = ["add.path", "add.partitionValues", "add.size", "add.stats", "txn.appId", "txn.version"]
_GAP_MAX = 32
"""How far beyond the newest entry an opening looks for others."""


class Snapshots:
    def __init__(self, storage: Storage, archive: Archive) -> None:
        self._storage = storage
        self._archive = archive
        self._uri = storage.uri

    def newest(self) -> int:
        """The version of the newest entry; an error that says what is there instead if there is no log."""
        hint = self.hint()
        if hint is not None and (head := self.walk(hint)) is not None:
            return head
        versions, checkpoints = self._archive.listed()
        if versions:
            return versions[-1]
        if checkpoints:
            raise TornLogError(self._uri, checkpoints[-1], "it is missing")
        raise NoStoreError(self._uri, self._storage.found() or "it holds no log")

    def walk(self, known: int) -> int | None:
        """The newest version, from one that was there; none if that is no longer there."""
        if self._storage.remote:
            listed = self._storage.paths(LOG_FOLDER, entry_path(known - 1) if known else "")
            return max((number[0] for path in listed if (number := numbered(path)) and not number[1]), default=None)
        head = known
        while self._storage.size(entry_path(head + 1)) is not None:
            head += 1
        # Entries leave the log in order: if this one is still there, the one after it was never written.
        return head if self._archive.is_current(head) else None

    def gap(self, head: int) -> int | None:
        """An entry that is missing although later ones are there: somebody removed it.

        With a checkpoint only what comes after it is looked at, and that not far: listing would tell for sure, but
        takes longer the longer the history is.
        """
        if self.hint() is None:
            versions = self._archive.listed()[0]
            return next((later - 1 for earlier, later in pairwise(versions) if later - earlier > 1), None)
        beyond = range(head + 2, head + 2 + _GAP_MAX)
        goes_on = not self._storage.remote and any(
            self._storage.size(entry_path(later)) is not None for later in beyond
        )
        return head + 1 if goes_on else None

    def hint(self) -> int | None:
        """The version of the last checkpoint as the log remembers it; it may be wrong, and is never relied on."""
        raw = self._storage.read(HINT)
        try:
            return None if raw is None else int(json.loads(raw)["version"])
        except (ValueError, KeyError, TypeError):
            return None

    def commit(self, version: int) -> Commit:
        commit = self.probe(version)
        if commit is None:
            raise self._absent(version)
        return commit

    def probe(self, version: int) -> Commit | None:
        raw = self._archive.read(entry_path(version))
        return None if raw is None else parse_entry(self._uri, version, raw)

    def state(self, version: int) -> State:
        if not self._archive.holds(version):
            raise self._absent(version)
        hint = self.hint()
        if hint is not None and hint <= version:
            try:
                return self.state_from(hint, version)
            except DamagedError:
                pass  # another checkpoint may do
        return self._state_from_any(version)

    def state_from(self, checkpoint: int | None, version: int) -> State:
        """The state at a version, from a given checkpoint or the first entry."""
        state = State(-1, {}, {}) if checkpoint is None else self._read_checkpoint(checkpoint)
        versions = range(state.version + 1, version + 1)
        raws = each(self._storage, self._archive.read, [entry_path(number) for number in versions])
        for number, raw in zip(versions, raws, strict=True):
            if raw is None:
                raise TornLogError(self._uri, number, "it is missing")
            state = state.after(parse_entry(self._uri, number, raw))
        return state

    def usable_checkpoint(self, version: int) -> tuple[int | None, list[CorruptCheckpointError]]:
        """The newest up to a version, if there is one, and what is wrong with those that come between."""
        damaged = []
        for checkpoint in self._checkpoints(version):
            try:
                self._read_checkpoint(checkpoint)
            except CorruptCheckpointError as error:
                damaged.append(error)
            else:
                return checkpoint, damaged
        return None, damaged

    def _checkpoints(self, version: int) -> list[int]:
        """Those up to a version, newest first."""
        return [number for number in reversed(self._archive.listed()[1]) if number <= version]

    def checkpoints(self) -> Iterator[tuple[int, State | CatalogError]]:
        for version in self._archive.listed()[1]:
            try:
                yield version, self._read_checkpoint(version)
            except CatalogError as error:
                if version in self._archive.listed()[1]:  # else it was expired meanwhile
                    yield version, error

    def _state_from_any(self, version: int) -> State:
        """The state from the newest checkpoint that does; else from the first entry."""
        first: DamagedError | None = None
        for start in (*self._checkpoints(version), None):
            try:
                return self.state_from(start, version)
            except DamagedError as error:
                first = first or error
        if version < self._frontier(version):
            raise self._absent(version) from first
        raise first or TornLogError(self._uri, version, "nothing leads to it")

    def _absent(self, version: int) -> RetiredError | NoSuchVersionError | TornLogError:
        """Why there is nothing to read of a version."""
        head = self.newest()
        if version > head:
            return NoSuchVersionError(self._uri, version, head)
        frontier = self._frontier(version)
        if version >= frontier:
            return TornLogError(self._uri, version, "it is missing")
        return RetiredError(self._uri, version, frontier)

    def _frontier(self, version: int) -> int:
        """The retention frontier as it is now; 0 if the version asked about is the newest."""
        head = self.newest()
        return 0 if version == head else self.state(head).frontier

    def _read_checkpoint(self, version: int) -> State:
        raw = self._archive.read(checkpoint_path(version))
        if raw is None:
            raise CorruptCheckpointError(self._uri, version, "it is missing")
        try:
            rows = pq.ParquetFile(pa.BufferReader(raw)).read(_CHECKPOINT_COLUMNS)
            adds = [add for add in rows["add"].drop_null().to_pylist() if add["path"] is not None]
            txns = [txn for txn in rows["txn"].drop_null().to_pylist() if txn["appId"] is not None]
            files = [added_file(add) for add in adds]
            marks = {Mark(txn["appId"]): int(txn["version"]) for txn in txns}
        except InvalidChangeError as error:
            raise ForeignTableError(self._uri, f"checkpoint {version} was not written by this program") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptCheckpointError(self._uri, version, str(error)) from error
        return State(version, {file.path: file for file in files}, marks)
