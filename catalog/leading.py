"""Leading a store that is there, at whatever version it is: who is waited for, and how one takes over.

Nothing is created, initialised or upgraded here: what does that, and whoever mends a store by hand, leads by these
pieces. A store that this build cannot serve is refused before anyone is fenced.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from catalog.errors import LegacyRowsError, NotInitializedError, TimedOutError, VersionChangedError
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Fence, Log, Mark
from catalog.log.storage import Storage, open_storage
from catalog.notices import FenceTaken, Observer, WaitingForLeader, ignore
from catalog.project import Place, Project
from catalog.stash.collections import Registry
from catalog.stash.heartbeat import INTERVAL_S, Heartbeat, Sign, sign_of, sweep, wait_for_leader
from catalog.stash.identity import require_identity
from catalog.stash.stash import Stash

if TYPE_CHECKING:
    from catalog.engine.journal import Journal


@dataclass(frozen=True, slots=True)
class Patience:
    """How a leader treats one that came before it."""

    deploy_generation: int | None = 0
    """None: the one that the store is at."""
    lock_timeout_s: float = 60.0
    """A live leader of the same generation is waited for so long, and each that follows it meanwhile so long again; one
    of a lower generation not at all."""
    heartbeat_s: float = INTERVAL_S
    deadline_s: float | None = None
    """On the monotonic clock: from then on a live leader is left to lead, and whoever waits for it gives up."""


@dataclass(frozen=True, slots=True)
class Leader:
    """A store that this process leads."""

    storage: Storage
    log: Log
    fence: Fence
    stash: Stash
    """With the types of the store's own version. Of one from before rows were messages, only engine collections can be
    used."""
    journal: Journal


@contextmanager
def leading(place: Place, patience: Patience, observer: Observer = ignore) -> Iterator[Leader]:
    """Lead an existing store until the end of the block, and let whoever waits go ahead then."""
    storage, log = existing(place)
    store = require_identity(storage, place.project.name).id
    while True:
        stash = own_stash(place.project, log)
        try:
            fence = take_lead(stash, storage, patience, observer)
        except VersionChangedError:
            continue  # another leader upgraded it while we waited
        break
    heartbeat = show_life(storage, fence, patience, store)
    try:
        yield Leader(storage, log, fence, stash, open_journal(place.project, log, fence))
    finally:
        heartbeat.stop()


def existing(place: Place) -> tuple[Storage, DeltaLog]:
    """The storage of a store that is there, and its log."""
    storage = open_storage(place.uri, place.options)
    require_identity(storage, place.project.name)
    return storage, DeltaLog(f"{storage.uri}/stash", place.options)


def own_stash(project: Project, log: Log) -> Stash:
    """The stash with the types and constraints of the version that the store is at."""
    version = log.state(log.verify()).marks.get(Mark.STASH_VERSION)
    while version is not None:
        project.check_version(version)
        is_current = version == project.current or version < project.first_proto
        types = project.current_types if is_current else project.types(version)
        stash = Stash.open(log, Registry.of(types), project.constraints.at(version))
        if stash.head.serves == version:
            return stash
        version = stash.head.serves  # upgraded or undone between the two looks
    raise NotInitializedError(log.uri)


def require_messages(project: Project, stash: Stash) -> None:
    """Refuse a store whose rows are older than messages."""
    version = stash.head.state.marks[Mark.STASH_VERSION]
    if version < project.first_proto:
        raise LegacyRowsError(stash.head.log.uri, stash.ts, version, project.first_proto)


def take_lead(stash: Stash, storage: Storage, patience: Patience, observer: Observer = ignore) -> Fence:
    """Wait for a live leader of the same generation, then take over from exactly that one.

    If another was quicker, that one is waited for as long again: whoever leads does so for the whole timeout.
    """
    began = time.monotonic()
    while True:
        stash.refresh()
        present, generation = stash.head.state.fence, patience.deploy_generation
        if generation is None:
            generation = present.generation
        if present.epoch > 0 and present.generation == generation:
            _wait(stash, storage, patience, began, observer)
        fence = stash.take_over(generation, holder(), expected=present)
        if fence is not None:
            version = stash.head.state.marks.get(Mark.STASH_VERSION)
            observer(FenceTaken(fence.generation, fence.epoch, version, time.monotonic() - began))
            return fence


def holder() -> str:
    """Who this process is, for people to read in the store."""
    return f"{socket.gethostname()}:{os.getpid()}"


def show_life(storage: Storage, fence: Fence, patience: Patience, store: str) -> Heartbeat:
    """Beat as the leader of the store of this id, and remove the signs of life of those before it."""
    heartbeat = Heartbeat(storage, fence, patience.heartbeat_s, store)
    heartbeat.start()
    sweep(storage, fence)
    return heartbeat


def open_journal(project: Project, log: Log, fence: Fence) -> Journal:
    """The journal of a store of any version."""
    from catalog.engine.journal import Journal  # noqa: PLC0415 - a store that is up to date needs no engine

    return Journal(log, Registry.of(project.current_types), fence, log.state(log.verify()))


def _wait(stash: Stash, storage: Storage, patience: Patience, began: float, observer: Observer) -> None:
    present, until = stash.head.state.fence, time.monotonic() + patience.lock_timeout_s
    deadline = inf if patience.deadline_s is None else patience.deadline_s
    if observer is not ignore and sign_of(storage, present) is Sign.BEATING:
        told = WaitingForLeader(_holder(stash).strip(), present.generation, present.epoch, patience.lock_timeout_s)
        observer(told)
    if wait_for_leader(storage, present, min(until, deadline), patience.heartbeat_s) and deadline < until:
        waited_s = round(time.monotonic() - began, 1)
        raise TimedOutError(f"its leader {_holder(stash)}of epoch {present.epoch}", waited_s)


def _holder(stash: Stash) -> str:
    """Who leads, for people to read."""
    collection = stash.head.registry.named("fence_token")
    found = [collection.decode(*row)[1] for row in stash.view().rows(collection.name)]
    return "".join(f"{value.holder} " for value in found)  # type: ignore[attr-defined]
