"""Opening a store: as leader, member, read-only, savepoint or for debugging.

Reads what the store is before anything is fenced, refuses what this build cannot serve, and hands out a `Catalog`. No
JVM is started and no pyspark imported here.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, overload

from google.protobuf.message import Message

from catalog.errors import (
    LegacyRowsError,
    NotAStoreError,
    NotInitializedError,
    ReadOnlyError,
    UpgradeNeededError,
    VersionChangedError,
)
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Change, Fence, FileKind, Log, Mark, Operation
from catalog.log.storage import Storage, open_storage
from catalog.project import Project
from catalog.stash.collections import Registry
from catalog.stash.consolidation import base_tables
from catalog.stash.heartbeat import INTERVAL_S, Heartbeat, sweep, wait_for_leader
from catalog.stash.identity import is_unfinished, make_identity, read_identity
from catalog.stash.stash import Stash
from catalog.stash.transaction import Transaction
from catalog.stash.view import View

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_Key = TypeVar("_Key", bound=Message)
_ID_BLOCK = 64


class Mode(StrEnum):
    LEADER = "leader"
    """Takes over, fences everyone before it, initialises and upgrades."""
    MEMBER = "member"
    """Joins the present leader; writes, never upgrades."""
    READ_ONLY = "read-only"
    """Never writes the stash."""
    SAVEPOINT = "savepoint"
    """Writes to a scratch copy, which is gone afterwards."""
    DEBUG = "debug"
    """Reads at the store's own version, with that version's types."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is, and whose."""

    uri: str
    options: Mapping[str, str]
    project: Project


class Catalog:
    """An open store."""

    def __init__(
        self, stash: Stash, mode: Mode, place: Place, *, heartbeat: Heartbeat | None = None, scratch: Path | None = None
    ) -> None:
        self._stash, self._mode, self._place = stash, mode, place
        self._heartbeat, self._scratch = heartbeat, scratch
        self._ids: dict[str, tuple[int, int]] = {}

    @property
    def version(self) -> int:
        return self._stash.head.state.marks[Mark.STASH_VERSION]

    @property
    def epoch(self) -> int:
        return self._stash.head.state.fence.epoch

    @property
    def ts(self) -> int:
        return self._stash.ts

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commits on exit, rolls back on an exception."""
        if self._mode in {Mode.READ_ONLY, Mode.DEBUG}:
            raise ReadOnlyError(self._mode)
        with self._stash.transaction() as transaction:
            yield transaction

    @overload
    def rows(self, key_type: type[_Key], as_of: None = None) -> Iterator[tuple[_Key, Message]]: ...

    @overload
    def rows(self, key_type: type[Message], as_of: int) -> Iterator[tuple[Message, Message]]: ...

    def rows(self, key_type: type[Message], as_of: int | None = None) -> Iterator[tuple[Message, Message]]:
        """Every row of the collection that a type of key names, now or at a ts, in the order of keys.

        At a ts before the store's version changed, rows have the types of the version of then; the collection may be
        named by its key's type of now or of then.
        """
        view = self._stash.view(as_of)
        registry, asked = self._registry(view), key_type.DESCRIPTOR.full_name
        named = registry.by_key.get(asked) or registry.named(self._stash.head.registry.of_key(key_type).name)
        return (named.decode(key, value) for key, value in view.rows(named.name))

    def _registry(self, view: View) -> Registry:
        """The types that rows had at a ts."""
        project, present = self._place.project, self._stash.head
        version = view.state.marks.get(Mark.STASH_VERSION)
        if version is None or version == present.serves:
            return present.registry
        if project.minimum <= version < project.first_proto:
            raise LegacyRowsError(present.log.uri, view.state.version, version, project.first_proto)
        return Registry.of(project.types(version))

    def table(self, name: str, as_of: int | None = None) -> pa.Table:
        """Every row of a collection as typed columns: `key` and `value`, structs of their fields at that ts."""
        import pyarrow as pa  # noqa: PLC0415 - callers that want messages need no Arrow

        from catalog.codec import bounded_batches, codec_for  # noqa: PLC0415

        view = self._stash.view(as_of)
        collection = self._registry(view).named(name)
        key, value = codec_for(collection.key_type.DESCRIPTOR), codec_for(collection.value_type.DESCRIPTOR)
        types = pa.schema([("key", pa.struct(list(key.schema))), ("value", pa.struct(list(value.schema)))])
        batches = [
            pa.record_batch([key.decode(batch["key"]), value.decode(batch["value"])], schema=types)
            for batch in bounded_batches(view.table(name))
        ]
        return pa.Table.from_batches(batches, schema=types)

    def dataframe(self, name: str, as_of: int | None = None, spark: SparkSession | None = None) -> DataFrame:
        """A collection as a Spark DataFrame of typed columns, at a ts; by default what this catalog shows now."""
        from catalog.datasource import dataframe  # noqa: PLC0415 - whoever asks for no frame needs no pyspark
        from catalog.spark.session import local_session  # noqa: PLC0415

        session = spark if spark is not None else local_session()
        place, at = self._place, self.ts if as_of is None else as_of
        return dataframe(session, place.uri, place.options, name, at, project=place.project.name)

    def subscribe(self, key_type: type[_Key], since: int) -> Iterator[tuple[Message, Message, int, int]]:
        """Every change after a ts up to the newest: key, value, ts, diff. Ask again from the last ts for more."""
        return self._stash.subscribe(key_type, since)

    def refresh(self) -> int:
        """See what others have committed; answer the newest ts."""
        return self._stash.refresh()

    def allocate(self, name: str) -> int:
        """A new id; ids come in blocks, in commits of their own, so there may be gaps."""
        following, end = self._ids.get(name, (0, 0))
        if following == end:
            following = self._stash.allocate(name, _ID_BLOCK)
            end = following + _ID_BLOCK
        self._ids[name] = (following + 1, end)
        return following

    def close(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Patience:
    """How a leader treats one that came before it."""

    deploy_generation: int = 0
    lock_timeout_s: float = 60.0
    """A live leader of the same generation is waited for so long, and each that follows it meanwhile so long again; one
    of a lower generation not at all."""
    heartbeat_s: float = INTERVAL_S


def open_store(
    project: Project, store: str | os.PathLike[str], mode: Mode, options: Mapping[str, str], patience: Patience
) -> Catalog:
    storage = open_storage(os.fspath(store), options)
    identity = read_identity(storage, project.name)
    place = Place(storage.uri, options, project)
    log = DeltaLog(f"{storage.uri}/stash", options)
    if identity is None:
        if mode is not Mode.LEADER:
            raise NotAStoreError(storage.uri, storage.found() or "there is no store.json")
        _make_store(storage, project)
    if mode is Mode.LEADER:
        log.create(uuid.uuid4().hex)
    stash = _open_stash(project, log, mode)
    match mode:
        case Mode.LEADER:
            try:
                fence = _lead(stash, storage, patience)
            except VersionChangedError as changed:
                _require_current(project, log, changed.after)
                raise
            heartbeat = Heartbeat(storage, fence, patience.heartbeat_s)
            heartbeat.start()
            sweep(storage, fence)
            try:
                _initialize(project, stash)
            except BaseException:
                heartbeat.stop()
                raise
            return Catalog(stash, mode, place, heartbeat=heartbeat)
        case Mode.MEMBER:
            stash.join()
            return Catalog(stash, mode, place)
        case Mode.READ_ONLY | Mode.DEBUG:
            return Catalog(stash, mode, place)
        case Mode.SAVEPOINT:
            return _savepoint(project, stash, mode)


def _make_store(storage: Storage, project: Project) -> None:
    """Make an empty place a store; several processes may do so at once."""
    stray = next((entry for entry in storage.entries("heartbeats") if not is_unfinished(entry.path)), None)
    if stray is not None and read_identity(storage, project.name) is None:
        raise NotAStoreError(storage.uri, f"there is no store.json, but {stray.path} is there")
    make_identity(storage, project.name)


def _open_stash(project: Project, log: Log, mode: Mode) -> Stash:
    stash = Stash.open(log, Registry.of(project.current_types), project.constraints)
    version = stash.head.state.marks.get(Mark.STASH_VERSION)
    if version is None:
        if mode is not Mode.LEADER:
            raise NotInitializedError(log.uri)
        stash.head.serves = project.current  # another may initialise it first, at a version that this build refuses
        return stash
    if mode is Mode.DEBUG and version != project.current:
        return Stash.open(log, Registry.of(project.types(version)), project.constraints.at(version))
    _require_current(project, log, version)
    return stash


def _require_current(project: Project, log: Log, version: int) -> None:
    """Refuse to serve rows of another version than this build's."""
    project.check_version(version)
    if version < project.current:
        raise UpgradeNeededError(log.uri, version, project.current)


def _lead(stash: Stash, storage: Storage, patience: Patience) -> Fence:
    """Wait for a live leader of the same generation, then take over from exactly that one.

    If another was quicker, that one is waited for as long again: whoever leads does so for the whole timeout.
    """
    generation = patience.deploy_generation
    while True:
        stash.refresh()
        present = stash.head.state.fence
        if present.epoch > 0 and present.generation == generation:
            wait_for_leader(storage, present, time.monotonic() + patience.lock_timeout_s, patience.heartbeat_s)
        fence = stash.take_over(generation, f"{socket.gethostname()}:{os.getpid()}", expected=present)
        if fence is not None:
            return fence


def _initialize(project: Project, stash: Stash) -> None:
    """Seed an empty store at the current version, in one commit."""
    if Mark.STASH_VERSION in stash.head.state.marks:
        return
    transaction = Transaction(stash.head.registry, stash.view())
    config = stash.head.registry.named("config")
    transaction.insert(config.key_type(name="stash_version"), config.value_type(number=project.current))
    project.initialize(transaction)
    stash.commit(transaction, {Mark.STASH_VERSION: project.current})


def _savepoint(project: Project, stash: Stash, mode: Mode) -> Catalog:
    """A scratch copy of the newest rows, which this process alone leads."""
    scratch = Path(tempfile.mkdtemp(prefix="catalog-savepoint-"))
    try:
        log = DeltaLog(str(scratch / "stash"), {})
        log.create(uuid.uuid4().hex)
        view, fence = stash.view(), Fence(0, 0)
        files = [
            log.write(name, FileKind.BASE, fence, rows)
            for name in sorted(view.collections())
            for rows in base_tables(view, name, ts=0)
        ]
        marks = {**view.state.marks, Mark.FRONTIER: 0}
        log.compare_and_append(log.state(0), Change(Operation.TRANSACTION, uuid.uuid4().hex, tuple(files), marks=marks))
        copy = Stash.open(log, stash.head.registry, project.constraints)
        copy.take_over(view.state.fence.generation, "savepoint")
        make_identity(open_storage(str(scratch), {}), project.name)
        return Catalog(copy, mode, Place(str(scratch), {}, project), scratch=scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
