"""States of a Delta log: the newest usable checkpoint, and every entry since.

Reads the log's own files, so that each entry is checked on the way, a damaged checkpoint is stepped over, and opening
costs the same however long the history is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

from catalog.engine.base.lazy_arrow import pa, pq
from catalog.engine.log.archive import Archive
from catalog.engine.log.data_files import file_collection
from catalog.engine.log.delta_entries import LOG_FOLDER, added_file, checkpoint_path, entry_path, numbered, parse_entry
from catalog.engine.log.digests import state_text
from catalog.engine.log.protocol import AppTxn, Commit, LogState
from catalog.engine.log.small_parquet import read_columns
from catalog.engine.storage.base import Storage, map_concurrently
from catalog.errors import (
    AlteredEntryError,
    CatalogError,
    CorruptCheckpointError,
    DamagedError,
    InvalidChangeError,
    NoStoreError,
    NoSuchVersionError,
    RetiredError,
    TornLogError,
)

LAST_CHECKPOINT = f"{LOG_FOLDER}/_last_checkpoint"
_CHECKPOINT_COLUMNS = ["add.path", "add.size", "add.stats", "txn.appId", "txn.version"]
_SMALL_CHECKPOINT_BYTES_MAX = 256 * 1024
"""A checkpoint of so few bytes is read in less time than it takes to import Arrow."""
_GAP_MAX = 32
"""Versions beyond the newest entry that an opening tries."""


class StateReader:
    def __init__(self, storage: Storage, archive: Archive) -> None:
        self._storage = storage
        self._archive = archive
        self._uri = storage.uri
        self.newest_read: int | None = None
        """The newest version whose state a caller has read."""

    def newest(self) -> int:
        """Return the version of the newest entry; if there is no log, the error says what is there instead."""
        checkpoint = self.last_checkpoint()
        if checkpoint is not None and (head := self.walk(checkpoint)) is not None:
            return head
        versions, checkpoints = self._archive.listed()
        if versions:
            return versions[-1]
        if checkpoints:
            raise TornLogError(self._uri, checkpoints[-1], "it is missing")
        raise NoStoreError(self._uri, self._storage.found() or "it holds no log")

    def verify(self) -> int:
        """Return the version of the newest entry of a log without gaps, as far as they can be found quickly."""
        while True:
            head = self.newest()
            try:
                self.commit(head)
            except RetiredError:
                if self.newest() == head:
                    raise
                continue  # it was retired before it was read
            gaps = self._gaps(head)
            if lost := next(filter(self._is_lost, gaps), None):
                raise TornLogError(self._uri, lost, "it is missing, and later ones are there")
            if not any(map(self._archive.holds, gaps)):  # else they were committed, with later ones, since we looked
                return head

    def walk(self, known: int) -> int | None:
        """Return the newest version, searched from one that was there; none if that one is no longer there."""
        if self._storage.remote:
            listed = self._storage.paths(LOG_FOLDER, entry_path(known - 1) if known else "")
            return max((number[0] for path in listed if (number := numbered(path)) and not number[1]), default=None)
        head = known
        while self._storage.size(entry_path(head + 1)) is not None:
            head += 1
        # Entries leave the log in order: if this one is still there, the one after it was never written. If the first
        # has expired, a writer that stood still may have taken the name of a later one that has expired too.
        return head if self._archive.is_current(head) and (head == known or self._archive.holds(known)) else None

    def _gaps(self, head: int) -> list[int]:
        """Return entries that were not found although later ones are there: they may have come, or expired, since.

        With a checkpoint only some versions after the newest are tried: listing would find every gap, but takes longer
        the longer the history is.
        """
        if self.last_checkpoint() is None:
            versions = self._archive.listed()[0]
            return [later - 1 for earlier, later in pairwise(versions) if later - earlier > 1]
        beyond = range(head + 2, head + 2 + _GAP_MAX)
        goes_on = not self._storage.remote and any(
            self._storage.size(entry_path(later)) is not None for later in beyond
        )
        return [head + 1] if goes_on else []

    def _is_lost(self, version: int) -> bool:
        """Look again for an entry that was not found: tell if it is missing, and has neither come nor expired since."""
        if self._archive.holds(version):
            return False
        try:
            return version >= self._frontier(version)
        except TornLogError:
            return True  # the newest state needs it

    def last_checkpoint(self) -> int | None:
        """Return the version of the last checkpoint as `_last_checkpoint` names it; it may be wrong, and is never
        relied on.
        """
        raw = self._storage.read(LAST_CHECKPOINT)
        try:
            return None if raw is None else int(json.loads(raw)["version"])
        except (ValueError, KeyError, TypeError):
            return None

    def commit(self, version: int) -> Commit:
        while (commit := self.probe(version)) is None:
            self._require_present(version)
        return commit

    def require_unexpired(self, first: int) -> None:
        """Refuse entries that were read from a version on if they had expired before.

        A writer that stood still may take the name of an entry that has expired. While there is an entry before it, or
        a checkpoint, none that follows has expired.
        """
        if self._storage.remote or first == 0 or self._archive.holds(first - 1):
            return  # over the network a commit that stood still is looked at again
        checkpoints = self._archive.listed()[1]
        if checkpoints and first < checkpoints[0]:
            raise RetiredError(self._uri, first, self.newest_state().frontier)

    def probe(self, version: int) -> Commit | None:
        raw = self._archive.read(entry_path(version))
        return None if raw is None else parse_entry(self._uri, version, raw)

    def newest_state(self) -> LogState:
        """Return the newest state, or a newer one if that is retired before it is read."""
        while True:
            newest = self.newest()
            try:
                return self._state(newest)
            except RetiredError:
                if self.newest() == newest:
                    raise

    def state(self, version: int) -> LogState:
        found = self._state(version)
        self.newest_read = max(version, self.newest_read or 0)
        return found

    def _state(self, version: int) -> LogState:
        while not self._archive.holds(version):
            self._require_present(version)
        checkpoint = self.last_checkpoint()
        if checkpoint is not None and checkpoint <= version:
            try:
                return self.state_from(checkpoint, version)
            except DamagedError:
                pass  # another checkpoint may do
        return self._state_from_any(version)

    def state_from(self, checkpoint: int | None, version: int) -> LogState:
        """Return the state at a version, from a given checkpoint or the first entry; every entry vouches for it."""
        state = LogState(-1, {}, {}) if checkpoint is None else self._read_checkpoint(checkpoint)
        if state.version == version:
            self._check_proven(state)
        versions = range(state.version + 1, version + 1)
        raws = map_concurrently(self._storage, self._archive.read, [entry_path(number) for number in versions])
        for number, raw in zip(versions, raws, strict=True):
            if raw is None:
                raise TornLogError(self._uri, number, "it is missing")
            commit = parse_entry(self._uri, number, raw)
            state = state.after(commit)
            self._check_digest(state, commit, checkpoint)
            checkpoint = None if commit.state_digest else checkpoint
        return state

    def _check_proven(self, checkpoint: LogState) -> None:
        """Refuse a checkpoint of another state than the entry of its version led to."""
        if (commit := self.probe(checkpoint.version)) is not None:
            self._check_digest(checkpoint, commit, checkpoint.version)

    def _check_digest(self, state: LogState, commit: Commit, unproven: int | None) -> None:
        """Refuse a state other than the one that its commit led to; blame the checkpoint if nothing has proven it."""
        if not commit.state_digest or commit.state_digest == state_text(state.digest):
            return
        if unproven is not None:
            raise CorruptCheckpointError(self._uri, unproven, f"entry {commit.version} leads to another state")
        raise AlteredEntryError(self._uri, commit.version, "it leads to another state than those before it")

    def usable_checkpoint(self, version: int) -> tuple[int | None, list[CorruptCheckpointError]]:
        """Return the newest usable checkpoint up to a version, and what is wrong with those after it."""
        damaged = []
        for checkpoint in self._checkpoints(version):
            try:
                self._usable_checkpoint(checkpoint)
            except CorruptCheckpointError as error:
                if checkpoint in self._checkpoints(version):  # else it expired meanwhile
                    damaged.append(error)
            else:
                return checkpoint, damaged
        return None, damaged

    def _usable_checkpoint(self, version: int) -> LogState:
        """Return the state of a checkpoint; if the entry of its version is damaged, later ones vouch for it."""
        state = self._read_checkpoint(version)
        with suppress(TornLogError, AlteredEntryError):
            self._check_proven(state)
        return state

    def _checkpoints(self, version: int) -> list[int]:
        """Return the checkpoints up to a version, newest first."""
        return [number for number in reversed(self._archive.listed()[1]) if number <= version]

    def checkpoints(self) -> Iterator[tuple[int, LogState | CatalogError]]:
        for version in self._archive.listed()[1]:
            try:
                yield version, self._usable_checkpoint(version)
            except CatalogError as error:
                if version in self._archive.listed()[1]:  # else it was expired meanwhile
                    yield version, error

    def _state_from_any(self, version: int) -> LogState:
        """Return the state from the newest checkpoint that is usable; else from the first entry."""
        first: DamagedError | None = None
        tried: list[int] | None = None
        while (found := self._checkpoints(version)) != tried:  # others may be made, and these expire, meanwhile
            tried = found
            for start in (*found, None):
                try:
                    return self.state_from(start, version)
                except DamagedError as error:
                    first = first or error
        frontier = self._frontier(version)
        if version < frontier:
            raise RetiredError(self._uri, version, frontier) from first
        raise first or TornLogError(self._uri, version, "nothing leads to it")

    def _require_present(self, version: int) -> None:
        """Look again for an entry that was not found; raise the error for it unless it has come since."""
        head = self.newest()
        if version > head:
            raise NoSuchVersionError(self._uri, version, head)
        if self._archive.holds(version):
            return
        frontier = self._frontier(version)  # read last: it was moved before the entry could expire
        if version < frontier:
            raise RetiredError(self._uri, version, frontier)
        raise TornLogError(self._uri, version, "it is missing")

    def _frontier(self, version: int) -> int:
        """Return the retention frontier as it is now; 0 if the version asked about is the newest."""
        return 0 if version == self.newest() else self.newest_state().frontier

    def _read_checkpoint(self, version: int) -> LogState:
        raw = self._archive.read(checkpoint_path(version))
        if raw is None:
            raise CorruptCheckpointError(self._uri, version, "it is missing")
        try:
            adds, txns = _checkpoint_actions(raw)
            files = [added_file(add) for add in adds]
            app_txns = {AppTxn(name): int(number) for name, number in txns.items()}
        except (OSError, ValueError, KeyError, TypeError, InvalidChangeError) as error:
            raise CorruptCheckpointError(self._uri, version, str(error)) from error
        return LogState(version, {file.path: file for file in files}, app_txns)


def _checkpoint_actions(raw: bytes) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the files and the app transactions of a checkpoint."""
    found = read_columns(raw, _CHECKPOINT_COLUMNS) if len(raw) <= _SMALL_CHECKPOINT_BYTES_MAX else None
    if found is None:
        rows = pq.ParquetFile(pa.BufferReader(raw)).read(_CHECKPOINT_COLUMNS).flatten()
        found = {name: rows[name].to_pylist() for name in _CHECKPOINT_COLUMNS}
    paths, sizes, stats, names, numbers = found.values()
    adds = [
        {"path": path, "size": size, "stats": own, "partitionValues": {"collection": file_collection(path)}}
        for path, size, own in zip(map(_text, paths), sizes, stats, strict=True)
        if path is not None
    ]
    return adds, {name: number for name, number in zip(map(_text, names), numbers, strict=True) if name is not None}


def _text(value: bytes | str | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value
