"""The table of a log in delta-rs: made, opened, and held open from one commit to the next.

delta-rs knows no archive and gives up at a damaged checkpoint; this module gives it what it needs, and translates its
errors. A log that needs no table loads no delta-rs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from catalog.engine.base.rust_panic import is_panic
from catalog.engine.log.archive import Archive
from catalog.engine.log.delta_entries import archived, checkpoint_path
from catalog.engine.log.protocol import CommitRequest, LogState
from catalog.engine.log.state_reader import LAST_CHECKPOINT, StateReader
from catalog.engine.storage.base import Storage
from catalog.engine.storage.object_store import delta_options
from catalog.errors import ConflictError, DamagedError, StoreUnreachableError
from catalog.errors.redaction import redact, redacted_cause, secrets_of

if TYPE_CHECKING:
    from deltalake import DeltaTable  # noqa: TID251 - a type

HELD_COMMITS_MAX: Final = 20
"""Commits after which a log is read again, from the last checkpoint on; a table that is held longer slows down."""


class HeldTable:
    def __init__(self, storage: Storage, options: Mapping[str, str], archive: Archive, reader: StateReader) -> None:
        self._storage = storage
        self._options = options
        self._delta_options = delta_options(options)
        self._archive = archive
        self._reader = reader
        self._uri = storage.uri
        self._held: tuple[int, DeltaTable] | None = None
        """A table, and the version at which it was opened."""

    def create(self, change: CommitRequest, now_ms: int) -> None:
        from catalog.engine.log.delta_table import create_table  # noqa: PLC0415 - a log that is there needs no delta-rs

        create_table(self._uri, self._delta_options, change, now_ms)

    def appender(self, expected: LogState) -> Callable[[CommitRequest, int], None]:
        """Return the function that commits after the expected version, if that is the newest."""
        from catalog.engine.log.delta_table import append  # noqa: PLC0415 - as above

        return partial(append, self._open_newest(expected), expected)

    def create_checkpoint(self, version: int) -> None:
        with self._translated("checkpoint"):
            self._open(version).create_checkpoint()

    def _open_newest(self, expected: LogState) -> DeltaTable:
        """Open the table at its newest version, if that is the expected one."""
        held, self._held = self._held, None
        if (
            held is not None
            and 0 <= expected.version - held[0] < HELD_COMMITS_MAX
            and self._caught_up(held[1], expected)
        ):
            opened, table = held
        else:
            opened, table = expected.version, self._open(None)
        if table.version() != expected.version:
            raise ConflictError(self._uri, expected.version, table.version())
        self._held = opened, table
        return table

    def _caught_up(self, table: DeltaTable, expected: LogState) -> bool:
        """Tell if a table that was opened for an earlier commit can be used; if in doubt, it cannot.

        delta-rs does not promise to distinguish a log whose next entries are gone from one that has none. They go in
        order: while the expected entry is there, so is whatever follows it.
        """
        try:
            table.update_incremental()
            return self._archive.is_current(expected.version)
        except Exception:  # noqa: BLE001 - opening anew tells what is wrong
            return False

    def _open(self, version: int | None) -> DeltaTable:
        """Open the table at a version, or at its newest.

        If that fails although the state can be read, bring back what delta-rs needs from the archive, and remove
        damaged checkpoints.
        """
        from catalog.engine.log.delta_table import open_table  # noqa: PLC0415 - as above

        try:
            with self._translated("open"):
                return open_table(self._uri, self._delta_options, version)
        except StoreUnreachableError as error:
            newest = self._reader.verify()
            usable, damaged = self._reader.usable_checkpoint(newest if version is None else version)
            try:
                self._reader.state(newest)
            except DamagedError as worse:
                raise (damaged[0] if damaged else worse) from error
        self._archive.bring_back(usable)
        for checkpoint in damaged:
            path = checkpoint_path(checkpoint.version)
            self._storage.delete(path)
            self._storage.delete(archived(path))
        if self._reader.last_checkpoint() != usable:
            self._storage.delete(LAST_CHECKPOINT)
        with self._translated("open"):
            return open_table(self._uri, self._delta_options, version)

    @contextmanager
    def _translated(self, verb: str) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if not (isinstance(error, Exception) or is_panic(error)):
                raise
            secrets = secrets_of(self._options, self._uri)
            reason = redact(str(error), secrets)
            raise StoreUnreachableError(self._uri, verb, reason) from redacted_cause(error, secrets)
