"""Leadership of an existing store of any version: wait for the current leader, then take over.

Nothing is created, initialised or upgraded here. A store that this build cannot serve is refused before its leader is
fenced.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Protocol

from catalog.engine.base.fence import LOCK_TIMEOUT_S, Fence
from catalog.engine.base.project import Project
from catalog.engine.log.place import StorePlace, stash_version
from catalog.engine.log.protocol import AppTxn, Log, LogState
from catalog.engine.log.replica import newest_state
from catalog.engine.stash.recorded_types import missing_record, require_types
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.view import View
from catalog.engine.storage.base import Storage
from catalog.engine.storage.heartbeat import INTERVAL_S, Heartbeat, LeaderStatus, leader_status, sweep, wait_for_leader
from catalog.engine.storage.identity import settle_identity
from catalog.engine.storage.write_probe import require_exclusive
from catalog.engine.store.probed_place import PROBED, has_mark, probe_mark
from catalog.errors import LegacyRowsError, TimedOutError, VersionChangedError
from catalog.events import FenceTaken, Observer, WaitingForLeader, ignore

if TYPE_CHECKING:
    from catalog.engine.migrate.system_rows import SystemRows


@dataclass(frozen=True, slots=True)
class LeadershipOptions:
    """The way in which a new leader treats the present one."""

    deploy_generation: int | None = 0
    """None: the one that the store is at."""
    lock_timeout_s: float = LOCK_TIMEOUT_S
    """A live leader of the same generation is waited for this long, and each that takes over meanwhile this long again;
    a leader of a lower generation is not waited for."""
    heartbeat_s: float = INTERVAL_S
    deadline_s: float | None = None
    """On the monotonic clock: from then on a live leader keeps the lead, and the process that waits gives up."""


class Preparation(Protocol):
    """The preparation of a process for its turn to lead."""

    def wait(self, silent_s: float, left_s: float, interval_s: float) -> None:
        """Continue while a live leader is waited for: seconds since its last heartbeat, until the timeout, between two
        heartbeats.
        """

    def complete(self) -> None:
        """End before the present leader is fenced; raise to leave it in the lead."""


@dataclass(frozen=True, slots=True)
class LedStore:
    """A store that this process leads."""

    storage: Storage
    log: Log
    fence: Fence
    stash: Stash
    """With the types of the store's own version. If its rows are older than messages, only engine collections can be
    used."""
    system_rows: SystemRows


@contextmanager
def leading(place: StorePlace, leadership: LeadershipOptions) -> Iterator[LedStore]:
    """Lead an existing store at its own version until the end of the block, then release the lead."""
    storage, log, store = place.storage, place.log(), place.identity().id
    settle_identity(storage)
    while True:
        stash = own_stash(place.project, log)
        try:
            fence = take_lead(stash, place, leadership)
        except VersionChangedError:
            continue  # another leader upgraded it while this process waited
        break
    heartbeat = start_heartbeat(storage, fence, leadership, store)
    try:
        yield LedStore(storage, log, fence, stash, open_system_rows(place.project, log, fence))
    finally:
        heartbeat.stop()


def own_stash(project: Project, log: Log) -> Stash:
    """Open the stash with the types and constraints of the version that the store is at."""
    version = stash_version(newest_state(log), log.uri)
    while True:
        project.check_version(version)
        is_current = version == project.current or version < project.first_proto
        types = project.current_types if is_current else project.types(version)
        stash = Stash.open(log, Registry.of(types), project.constraints.at(version))
        present = stash_version(stash.state, log.uri)
        if present == version:
            require_types(project, stash.view())
            return stash
        version = present  # upgraded or undone between the two reads


def require_messages(project: Project, stash: Stash) -> None:
    """Refuse a store whose rows are older than messages."""
    version = stash.state.app_txns[AppTxn.STASH_VERSION]
    if version < project.first_proto:
        raise LegacyRowsError(stash.log.uri, stash.ts, version, project.first_proto)


def take_lead(
    stash: Stash,
    place: StorePlace,
    leadership: LeadershipOptions,
    observer: Observer = ignore,
    preparation: Preparation | None = None,
    *,
    is_probed: bool = False,
) -> Fence:
    """Wait for a live leader of the same generation, then take over from exactly that one.

    If another process takes over first, it is waited for as long again: each leader leads for the whole timeout. A
    place that no leader of this build has probed is probed first, unless that was just done.
    """
    began, storage, project = time.monotonic(), place.storage, place.project
    mark = probe_mark(storage, project)
    if not is_probed and not has_mark(stash.view(), project, mark):
        require_exclusive(storage)

    def notes(view: View) -> dict[str, str]:
        require_types(project, view)
        if view.state.stash_version is None:
            return {}  # they are written as it is initialised
        probed = {} if has_mark(view, project, mark) else {PROBED: mark}
        return {**missing_record(project, view), **probed}

    while True:
        stash.refresh()
        present, generation = stash.state.fence, leadership.deploy_generation
        if generation is None:
            generation = present.generation
        if present.epoch > 0 and present.generation == generation:
            _wait(stash, storage, leadership, began, observer, preparation)
        waited_s = time.monotonic() - began
        if preparation is not None:
            preparation.complete()
        fence = stash.take_over(generation, holder(), present, notes)
        if fence is not None:
            version = stash.state.stash_version
            observer(FenceTaken(fence.generation, fence.epoch, version, waited_s))
            return fence


def holder() -> str:
    """Return the host and number of this process, for people to read in the store."""
    return f"{platform.node()}:{os.getpid()}"


def start_heartbeat(storage: Storage, fence: Fence, leadership: LeadershipOptions, store: str) -> Heartbeat:
    """Beat as the leader of the store of this id, and remove the heartbeats of earlier leaders."""
    heartbeat = Heartbeat(storage, fence, leadership.heartbeat_s, store)
    heartbeat.start()
    sweep(storage, fence)
    return heartbeat


def open_system_rows(project: Project, log: Log, fence: Fence, state: LogState | None = None) -> SystemRows:
    """Open the engine's own collections of a store of any version, at its newest state by default."""
    from catalog.engine.migrate.system_rows import SystemRows  # noqa: PLC0415 - a store that is up to date needs no engine

    return SystemRows(log, Registry.of(project.current_types), fence, state or newest_state(log))


def _wait(
    stash: Stash,
    storage: Storage,
    leadership: LeadershipOptions,
    began: float,
    observer: Observer,
    preparation: Preparation | None,
) -> None:
    present, until = stash.state.fence, time.monotonic() + leadership.lock_timeout_s
    deadline = inf if leadership.deadline_s is None else leadership.deadline_s
    if observer is not ignore and leader_status(storage, present) is LeaderStatus.BEATING:
        observer(WaitingForLeader(_holder(stash), present.generation, present.epoch, leadership.lock_timeout_s))
    interval_s = leadership.heartbeat_s
    watch = None if preparation is None else lambda silent_s, left_s: preparation.wait(silent_s, left_s, interval_s)
    if wait_for_leader(storage, present, min(until, deadline), interval_s, watch) and deadline < until:
        waited_s = round(time.monotonic() - began, 1)
        raise TimedOutError(f"its leader {_holder(stash)} of epoch {present.epoch}".replace("  ", " "), waited_s)


def _holder(stash: Stash) -> str:
    from catalog.engine.store.snapshot import read_holder  # noqa: PLC0415 - most stores have no leader to wait for

    return read_holder(stash.log, stash.registry, stash.state)
