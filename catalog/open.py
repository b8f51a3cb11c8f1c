"""Opening a store: as leader, member, read-only, savepoint or for debugging.

Reads what the store is before anything is fenced, refuses what this build cannot serve, upgrades what it can, and hands
out a `Catalog`. A store that is up to date starts no JVM and imports no pyspark.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.builtin.keeping import Keeper, Use, keep
from catalog.builtin.run import find, join, look, run_leader, run_read_only
from catalog.copying import scratch_copy
from catalog.errors import (
    LostStashError,
    NoStoreError,
    NotAStoreError,
    NotInitializedError,
    UpgradeNeededError,
    VersionChangedError,
)
from catalog.handle import Catalog, Mode
from catalog.leading import (
    Patience,
    open_journal,
    own_stash,
    require_messages,
    show_life,
    take_lead,
)
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Fence, Log, Mark
from catalog.log.storage import Storage, open_storage
from catalog.notices import BuiltinsMigrated, Initialized, Observer, Opening, Ready, guarded, ignore, opening
from catalog.project import Place, Project
from catalog.stash.collections import Registry
from catalog.stash.heartbeat import was_led
from catalog.stash.identity import Identity, is_unfinished, make_identity, read_identity, require_identity
from catalog.stash.stash import Stash
from catalog.stash.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from catalog.engine.plan import StepPlan


_COMPARED_AT_START_MAX = 100_000
"""Rows of the stash that a start takes the time to compare with a builtin; more are left to maintenance."""


@dataclass(frozen=True, slots=True)
class Upgrading:
    """How a store of an older version is taken to this build's."""

    spark: SparkSession | str | None = None
    """A session, or the address of a master or of a Connect server; none: this machine."""
    reapply: bool = False
    """Whether steps that somebody undid are applied again."""
    observer: Observer | None = None
    """Told of everything, and whatever it raises harms nothing."""
    permit: Callable[[StepPlan], None] | None = None
    """Asked before a step and while it runs; raises to stop it."""


def open_store(
    project: Project,
    store: str | os.PathLike[str],
    mode: Mode,
    options: Mapping[str, str],
    patience: Patience,
    upgrading: Upgrading | None = None,
) -> Catalog:
    wanted = upgrading or Upgrading()
    observer = ignore if wanted.observer is None else guarded(wanted.observer)
    storage = open_storage(os.fspath(store), options)
    with opening(observer, Opening(storage.uri, project.name, mode, str(project.build), project.current)) as elapsed_s:
        if mode is Mode.LEADER:
            identity = read_identity(storage, project.name) or _make_store(storage, project)
        else:
            identity = require_identity(storage, project.name)
        cat = _Opening(project, storage, identity, options, patience, wanted, observer).open(mode)
        fence = cat.deploy_generation, cat.epoch
        observer(Ready(storage.uri, mode, cat.version, *fence, cat.ts, elapsed_s()))
        return cat


@dataclass(frozen=True, slots=True)
class _Opening:
    project: Project
    storage: Storage
    identity: Identity
    options: Mapping[str, str]
    patience: Patience
    upgrading: Upgrading
    observer: Observer

    def open(self, mode: Mode) -> Catalog:
        match mode:
            case Mode.LEADER:
                return self.lead()
            case Mode.MEMBER:
                return self.join()
            case Mode.DEBUG:
                return self.debug()
            case Mode.READ_ONLY | Mode.SAVEPOINT:
                return self.read(mode)

    @property
    def place(self) -> Place:
        return Place(self.storage.uri, self.options, self.project)

    def lead(self) -> Catalog:
        self.project.require_frozen_types()
        log = self._log()
        self._make_log(log)
        while True:
            stash = self._stash(log)
            version = stash.head.state.marks.get(Mark.STASH_VERSION)
            if version is None:
                stash.head.serves = self.project.current
            elif version < self.project.current:
                self._preflight(log, stash, version)
            try:
                self._require_builtins(log, stash, version)
                fence = take_lead(stash, self.storage, self.patience, self.observer)
            except VersionChangedError as changed:
                self.project.check_version(changed.after)
                continue  # another leader initialised or upgraded it while we waited
            return self._serve(log, stash, fence)

    def _make_log(self, log: DeltaLog) -> None:
        """A log where there is none yet; a store that was ever led has one, or it is lost."""
        if was_led(self.storage, self.identity.id):
            try:
                log.verify()
            except NoStoreError as error:
                raise LostStashError(self.storage.uri) from error
        elif log.create(uuid.uuid4().hex) and read_identity(self.storage, self.project.name) is None:
            raise NotAStoreError(self.storage.uri, "it was removed while it was being opened")

    def _serve(self, log: Log, stash: Stash, fence: Fence) -> Catalog:
        heartbeat = show_life(self.storage, fence, self.patience, self.identity.id)
        before = stash.head.state.marks.get(Mark.STASH_VERSION)
        try:
            if before is None:
                initialize_stash(self.project, stash)
                self.observer(Initialized(self.project.current))
            elif before < self.project.current:
                self._upgrade(log, fence, self.place, reapply=self.upgrading.reapply)
                stash = self._stash(log)
                stash.resume(fence)
            elif stash.head.state.marks.get(Mark.RUNNING_STEP, 0):
                self._close_dead(log, fence)
                stash.refresh()
            keeper = self._lead_builtins(stash, measured=before != self.project.current)
        except BaseException:
            heartbeat.stop()
            raise
        return Catalog(stash, Mode.LEADER, self.place, keeper=keeper, heartbeat=heartbeat, observer=self.observer)

    def join(self) -> Catalog:
        stash = self._stash(self._log())
        self._require_current(stash)
        self.project.require_frozen_types()
        stash.join()
        keeper = self._keep(stash, self.place, join)
        return Catalog(stash, Mode.MEMBER, self.place, keeper=keeper, observer=self.observer)

    def debug(self) -> Catalog:
        stash = own_stash(self.project, self._log())
        require_messages(self.project, stash)
        keeper = self._keep(stash, self.place, find)
        return Catalog(stash, Mode.DEBUG, self.place, keeper=keeper, observer=self.observer)

    def read(self, mode: Mode) -> Catalog:
        """Read-only serves the store itself, and an older one, like any savepoint, from an upgraded scratch copy."""
        stash = self._stash(self._log())
        version = _version(stash)
        self.project.check_version(version)
        if mode is Mode.READ_ONLY and version == self.project.current:
            keeper = self._keep(stash, self.place, run_read_only)
            return Catalog(stash, mode, self.place, keeper=keeper, observer=self.observer)
        rebuild = (lambda: self.read(mode)) if mode is Mode.READ_ONLY else None
        scratch = Path(tempfile.mkdtemp(prefix=f"catalog-{mode}-"))
        try:
            place, fence = Place(str(scratch), {}, self.project), stash.head.state.fence
            shards_of = None if mode is Mode.READ_ONLY else (self.storage, self.options)
            log = scratch_copy(self.project, stash.head.log, stash.head.state, scratch, shards_of)
            if version < self.project.current:
                self._upgrade(log, fence, place, reapply=True)  # the store itself stays as it is
            copy = self._stash(log)
            if mode is Mode.SAVEPOINT:
                copy.resume(fence)
                keeper = self._keep(copy, place, run_leader)
            else:
                keeper = self._keep(copy, self.place, run_read_only)
            return Catalog(
                copy,
                mode,
                place,
                keeper=keeper,
                scratch=scratch,
                copied_ts=stash.ts,
                rebuild=rebuild,
                observer=self.observer,
            )
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise

    def _require_builtins(self, log: Log, stash: Stash, version: int | None) -> None:
        """Refuse what this build cannot use or migrate, before anyone is fenced."""
        if version is not None and version >= self.project.first_proto:
            own = stash if version == self.project.current else own_stash(self.project, log)
            keep(self.place, own, self.patience.deploy_generation, look)

    def _lead_builtins(self, stash: Stash, *, measured: bool) -> Keeper | None:
        began = time.perf_counter()
        keeper = self._keep(stash, self.place, run_leader)
        if keeper is None:
            return None
        plan = keeper.outcome.plan
        if plan.has_work:
            counts = len(plan.evolved), len(plan.replaced), len(plan.created)
            self.observer(BuiltinsMigrated(str(plan.upto), *counts, time.perf_counter() - began))
        keeper.follow(_COMPARED_AT_START_MAX)
        if measured:
            keeper.measure()
        stash.cleaned = keeper.maintain
        return keeper

    def _keep(self, stash: Stash, place: Place, use: Use) -> Keeper | None:
        return keep(place, stash, self.patience.deploy_generation, use)

    def _log(self) -> DeltaLog:
        return DeltaLog(f"{self.storage.uri}/stash", self.options)

    def _stash(self, log: Log) -> Stash:
        """The stash with the types of this build; of an older store only the engine's collections can be read so."""
        stash = Stash.open(log, Registry.of(self.project.current_types), self.project.constraints)
        stash.observer = self.observer
        version = stash.head.state.marks.get(Mark.STASH_VERSION)
        if version is not None:
            self.project.check_version(version)
        return stash

    def _require_current(self, stash: Stash) -> None:
        if _version(stash) < self.project.current:
            raise UpgradeNeededError(stash.head.log.uri, _version(stash), self.project.current)

    def _preflight(self, log: Log, stash: Stash, version: int) -> None:
        from catalog.engine.run import preflight, require_not_undone, validate  # noqa: PLC0415 - an up-to-date store needs none

        journal = open_journal(self.project, log, stash.head.state.fence)
        validate(self.project, journal)
        if not self.upgrading.reapply:
            require_not_undone(journal, self.project)
        has_session = self.upgrading.spark is not None
        preflight(self.project, self.storage.uri, stash.head.state, version, has_session=has_session)

    def _close_dead(self, log: Log, fence: Fence) -> None:
        """A newer build ended in the middle of its upgrade: say so, or nothing would ever be vacuumed again."""
        from catalog.engine.events import close_dead  # noqa: PLC0415 - seldom needed

        close_dead(open_journal(self.project, log, fence))

    def _upgrade(self, log: Log, fence: Fence, place: Place, *, reapply: bool) -> None:
        from catalog.engine.run import upgrade  # noqa: PLC0415 - as above
        from catalog.engine.step import Runner, permit  # noqa: PLC0415
        from catalog.spark.jobs import SparkJobs  # noqa: PLC0415
        from catalog.spark.session import find_session  # noqa: PLC0415

        jobs = SparkJobs(lambda: find_session(self.upgrading.spark))
        runner = Runner(
            open_journal(self.project, log, fence),
            self.project,
            (place.uri, place.options),
            jobs,
            self.observer,
            permit=self.upgrading.permit or permit,
        )
        upgrade(runner, reapply=reapply)


def _make_store(storage: Storage, project: Project) -> Identity:
    """Make an empty place a store; several processes may do so at once."""
    stray = next((entry for entry in storage.entries("heartbeats") if not is_unfinished(entry.path)), None)
    if stray is not None and read_identity(storage, project.name) is None:
        raise NotAStoreError(storage.uri, f"there is no store.json, but {stray.path} is there")
    return make_identity(storage, project.name)


def _version(stash: Stash) -> int:
    version = stash.head.state.marks.get(Mark.STASH_VERSION)
    if version is None:
        raise NotInitializedError(stash.head.log.uri)
    return version


def initialize_stash(project: Project, stash: Stash) -> None:
    """Seed an empty store at the current version, in one commit."""
    transaction = Transaction(stash.head.registry, stash.view())
    config = stash.head.registry.named("config")
    transaction.insert(config.key_type(name="stash_version"), config.value_type(number=project.current))
    project.initialize(transaction)
    stash.commit(transaction, {Mark.STASH_VERSION: project.current})
