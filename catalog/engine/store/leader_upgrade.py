"""The upgrade of a store by its leader: validate, preflight, take over, upgrade, migrate the builtins.

`lead_upgraded` is the one path of `open_catalog`, `catalog start` and `catalog apply`; `catalog debug upgrade-check`
runs its stages on a scratch copy. Everything that can be refused is refused before the present leader is fenced.
A store that is up to date imports neither the migration engine nor pyspark.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.engine.base.fence import Fence
from catalog.engine.base.gate_loader import gate_name
from catalog.engine.base.project import Project
from catalog.engine.base.raised_text import error_text
from catalog.engine.builtins.mapping_rows import COLLECTIONS
from catalog.engine.builtins.migrate import attach, inspect, run_leader
from catalog.engine.builtins.tables import BuiltinTables, open_builtins
from catalog.engine.log.place import StorePlace, stash_version
from catalog.engine.log.protocol import AppTxn, Log
from catalog.engine.log.replica import newest_state
from catalog.engine.spark.session_start import SessionStart
from catalog.engine.stash.engine_rows import NOT_PROTECTED
from catalog.engine.stash.recorded_types import record_rows, require_types
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.replica import StashReplica
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.engine.storage.heartbeat import Heartbeat
from catalog.engine.store.catalog import Mode
from catalog.engine.store.leadership import LeadershipOptions, open_system_rows, own_stash, start_heartbeat, take_lead
from catalog.engine.store.probed_place import PROBED, probe_mark
from catalog.engine.store.upgrade_session import UpgradeSession
from catalog.errors import (
    BuiltinsTooNewError,
    CatalogError,
    ConstraintError,
    InitializationFailedError,
    UninstructedSchemaError,
    UnmigratedBuiltinsError,
    VersionChangedError,
)
from catalog.events import BuiltinsMigrated, Closed, Initialized, Observer, Opening, Ready, ignore, opening

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from catalog.engine.migrate.plan import StepPlan
    from catalog.engine.migrate.step_runner import StepRunner

_COMPARED_AT_START_MAX = 100_000
"""Rows of the stash that a start compares with a builtin; more are left to maintenance."""


@dataclass(frozen=True, slots=True)
class UpgradeOptions:
    """The way in which a store of an older version is upgraded."""

    spark: SparkSession | str | None = None
    """A session, or the address of a master or of a Connect server; none: this machine."""
    reapply: bool = False
    """Apply steps again that were undone."""
    observer: Observer = ignore
    """Receives every event."""
    permit: Callable[[StepPlan], None] | None = None
    """Called before a step and while it runs; raises to stop it."""
    class_archive: str | Path | None = None
    """The folder of the archive of Java's classes, or `off`; none: that of the user's cache."""
    until: int | None = None
    """The version to stop at; none: that of this build. The builtins are migrated at the version of this build only."""

    def session_start(self) -> SessionStart:
        """Return the start of the session for the steps; not begun yet."""
        return SessionStart(self.spark, self.class_archive, observer=self.observer)

    def target(self, place: StorePlace) -> int:
        return place.project.current if self.until is None else self.until


@dataclass(frozen=True, slots=True)
class UpgradedStore:
    """A store that this process leads and has upgraded."""

    stash: Stash
    """With the types of this build; at an earlier version only engine collections can be read with them."""
    version_before: int | None
    """None: the store was empty, and was initialised."""
    builtins: BuiltinTables | None
    heartbeat: Heartbeat


def lead_upgraded(
    place: StorePlace, leadership: LeadershipOptions, options: UpgradeOptions, *, is_probed: bool = False
) -> UpgradedStore:
    """Lead a store and bring it to a version: at that of this build, members can join when this returns."""
    store, session = place.identity().id, UpgradeSession(place, options.target(place), options.session_start())
    stash, fence = _take_over(place, leadership, options, session, is_probed=is_probed)
    heartbeat = start_heartbeat(place.storage, fence, leadership, store)
    try:
        before = stash.state.stash_version
        stash = _upgrade_stash(place, stash, fence, options, session.start)
        builtins = migrate_builtins(place, stash, options.observer, measure=before != place.project.current)
        stash.maintain()
    except BaseException:
        heartbeat.stop()
        raise
    return UpgradedStore(stash, before, builtins, heartbeat)


def apply_migrations(place: StorePlace, leadership: LeadershipOptions, options: UpgradeOptions) -> tuple[int, int]:
    """Upgrade an existing store and release it again; return its version before and after.

    The present leader is fenced only if there is something to do. Emits Ready only if members can join afterwards.
    """
    place.identity()
    project, state, observer = place.project, place.state(), options.observer
    before = after = stash_version(state, place.uri)
    require_types(project, load_view(BaseFileCache(place.log()), state))
    begun = Opening(place.uri, project.name, Mode.LEADER, str(project.build), project.current)
    with opening(observer, begun) as elapsed_s:
        obstacle = find_builtins_error(place)
        if options.target(place) > before or (options.target(place) == before and obstacle is not None):
            led = lead_upgraded(place, leadership, options)
            led.heartbeat.stop()
            state, obstacle = led.stash.state, None
            before, after = led.version_before or before, stash_version(state, place.uri)
        if after == project.current and obstacle is None:
            fence = state.fence.generation, state.fence.epoch
            observer(Ready(place.uri, Mode.LEADER, after, *fence, state.version, elapsed_s()))
        observer(Closed(after))
    return before, after


def find_builtins_error(place: StorePlace) -> CatalogError | None:
    """Return the error with which the builtins keep members of this build from joining; none if nothing does.

    Also none if the store is at another version: it is to be upgraded first.
    """
    log, project = place.log(), place.project
    state = newest_state(log)
    if stash_version(state, place.uri) != project.current:
        return None
    view = load_view(BaseFileCache(log), state, COLLECTIONS)  # no other rows are read
    registry = Registry.of(project.current_types)
    stash = Stash(StashReplica(log, state, registry, project.constraints, view, row_version=project.current))
    try:
        open_builtins(place, stash, None, attach)
    except (BuiltinsTooNewError, UninstructedSchemaError, UnmigratedBuiltinsError) as error:
        return error
    return None


def open_stash(place: StorePlace, log: Log, observer: Observer = ignore) -> Stash:
    """Open the stash with the types of this build; at an earlier version only engine collections can be read so."""
    stash = Stash.open(log, Registry.of(place.project.current_types), place.project.constraints)
    stash.observer = observer
    version = stash.state.stash_version
    if version is None:
        stash.replica.row_version = place.project.current
    else:
        require_types(place.project, stash.view())
    return stash


def step_runner(
    place: StorePlace, log: Log, fence: Fence, options: UpgradeOptions, start: SessionStart | None = None
) -> StepRunner:
    """Return the runner of the steps of a store that this process leads; without a start that was begun, Spark starts
    when a step needs it.
    """
    from catalog.engine.migrate.step_runner import StepRunner, permit  # noqa: PLC0415 - an up-to-date store needs none
    from catalog.engine.spark.jobs import SparkJobs  # noqa: PLC0415

    return StepRunner(
        open_system_rows(place.project, log, fence),
        place.project,
        (place.uri, place.options),
        SparkJobs((start or options.session_start()).session),
        options.observer,
        permit=options.permit or permit,
    )


def run_steps(
    place: StorePlace, log: Log, fence: Fence, options: UpgradeOptions, start: SessionStart | None = None
) -> None:
    """Run the steps that are due, each in a commit of its own."""
    from catalog.engine.migrate.executor import upgrade  # noqa: PLC0415 - as above

    upgrade(step_runner(place, log, fence, options, start), options.until, reapply=options.reapply)


def migrate_builtins(
    place: StorePlace, stash: Stash, observer: Observer = ignore, *, measure: bool = False
) -> BuiltinTables | None:
    """Migrate the builtins as leader; return none if there are none, or the store is at an earlier version."""
    began = time.perf_counter()
    if stash.state.stash_version != place.project.current:
        return None
    tables = open_builtins(place, stash, None, run_leader)
    if tables is None:
        return None
    plan = tables.outcome.plan
    if plan.has_work:
        counts = len(plan.evolved), len(plan.replaced), len(plan.created)
        observer(BuiltinsMigrated(str(plan.upto), *counts, time.perf_counter() - began))
    tables.follow(_COMPARED_AT_START_MAX)
    if measure:
        tables.measure()
    stash.on_cleaned = tables.maintain
    return tables


def initialize_stash(project: Project, stash: Stash, probed: str | None = None) -> None:
    """Seed an empty store at the version of this build, in one commit, with the record that its place was probed."""
    transaction = Transaction(stash.registry, stash.view(), NOT_PROTECTED)
    config = stash.registry.named("config")
    transaction.insert(config.key_type(name="stash_version"), config.value_type(number=project.current))
    for row in record_rows(project, project.current):
        transaction.insert(*row)
    if probed is not None:
        transaction.insert(config.key_type(name=PROBED), config.value_type(text=probed))
    transaction.protected = stash.protected
    try:
        project.initialize(transaction)
    except Exception as error:
        raise _initialization_failed(stash, error) from error
    try:
        stash.commit(transaction, {AppTxn.STASH_VERSION: project.current})
    except ConstraintError as error:
        raise _initialization_failed(stash, error) from error


def _initialization_failed(stash: Stash, error: Exception) -> InitializationFailedError:
    return InitializationFailedError(
        stash.log.uri.removesuffix("/stash"), error_text(error, innermost=True), gate_name()
    )


def _take_over(
    place: StorePlace,
    leadership: LeadershipOptions,
    options: UpgradeOptions,
    session: UpgradeSession,
    *,
    is_probed: bool,
) -> tuple[Stash, Fence]:
    """Take the lead, after checking everything that can be checked before the present leader is fenced.

    Spark starts meanwhile, if a step needs it.
    """
    log = place.log()
    try:
        while True:
            stash = open_stash(place, log, options.observer)
            session.foresee(stash.state, leadership.deploy_generation)
            _require_upgradable(place, stash, options)
            _require_migratable_builtins(place, stash, leadership, options)
            try:
                fence = take_lead(stash, place, leadership, options.observer, session, is_probed=is_probed)
            except VersionChangedError as changed:  # another leader initialised or upgraded it meanwhile
                place.project.check_version(changed.after)
            else:
                return stash, fence
    except BaseException:
        session.start.cancel()
        raise


def _require_upgradable(place: StorePlace, stash: Stash, options: UpgradeOptions) -> None:
    """Refuse steps that differ from those applied, that were undone, or that lack room, Java or pyspark."""
    project, version = place.project, stash.state.stash_version
    if options.target(place) == project.current:
        project.require_frozen_types()
    if version is None or version >= options.target(place):
        return
    from catalog.engine.migrate.executor import require_not_undone, validate  # noqa: PLC0415
    from catalog.engine.migrate.preflight import preflight  # noqa: PLC0415 - as above

    rows = open_system_rows(project, stash.log, stash.state.fence)
    validate(project, rows)
    if not options.reapply:
        require_not_undone(rows, project)
    has_session = options.spark is not None
    preflight(project, place.uri, stash.state, version, has_session=has_session, until=options.until)


def _require_migratable_builtins(
    place: StorePlace, stash: Stash, leadership: LeadershipOptions, options: UpgradeOptions
) -> None:
    """Refuse builtins that this build can neither use nor migrate."""
    project, version = place.project, stash.state.stash_version
    if version is None or version < project.first_proto or options.target(place) != project.current:
        return
    own = stash if version == project.current else own_stash(project, stash.log)
    open_builtins(place, own, leadership.deploy_generation, inspect)


def _upgrade_stash(
    place: StorePlace, stash: Stash, fence: Fence, options: UpgradeOptions, start: SessionStart
) -> Stash:
    """Initialise or upgrade the rows; return the stash to go on with."""
    version, log = stash.state.stash_version, stash.log
    if version is None:
        initialize_stash(place.project, stash, probe_mark(place.storage, place.project))
        options.observer(Initialized(place.project.current))
    elif version < options.target(place):
        run_steps(place, log, fence, options, start)
        stash = open_stash(place, log, options.observer)
        stash.resume(fence)
    elif stash.state.app_txns.get(AppTxn.RUNNING_STEP, 0):
        from catalog.engine.migrate.recorder import close_dead  # noqa: PLC0415 - seldom needed

        # A process died in the middle of a step. Its run is closed, or nothing would ever be vacuumed again.
        close_dead(open_system_rows(place.project, log, fence))
        stash.refresh()
    return stash
