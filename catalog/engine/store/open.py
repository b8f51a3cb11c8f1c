"""Opening a store: as leader, member, read-only, savepoint or for debugging.

Refuses a store that this build cannot serve before its leader is fenced, upgrades an older one, returns a `Catalog`.
A store that is up to date starts no JVM and imports no pyspark.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from catalog.engine.builtins.migrate import attach, attach_as_found, run_leader, run_read_only
from catalog.engine.builtins.tables import open_builtins
from catalog.engine.log.place import StorePlace, stash_version
from catalog.engine.stash.constraint_fit import require_fit
from catalog.engine.stash.registry import Registry
from catalog.engine.storage.base import Storage
from catalog.engine.storage.heartbeat import was_led
from catalog.engine.storage.identity import is_unfinished, make_identity, read_identity, settle_identity
from catalog.engine.storage.write_probe import is_probe, require_exclusive
from catalog.engine.store.catalog import Catalog, Mode
from catalog.engine.store.leader_upgrade import UpgradeOptions, lead_upgraded, open_stash, run_steps
from catalog.engine.store.leadership import LeadershipOptions, own_stash, require_messages
from catalog.engine.store.probed_place import require_probed
from catalog.engine.store.upgrade_session import needs_spark
from catalog.errors import FencedError, LostStashError, NoStoreError, NotAStoreError, UpgradeNeededError
from catalog.events import Opening, Ready, ignore, opening, safe_observer


def open_store(
    place: StorePlace, mode: Mode, leadership: LeadershipOptions, options: UpgradeOptions | None = None
) -> Catalog:
    """Open a store in a mode, and emit Ready when it can be used."""
    wanted, project = options or UpgradeOptions(), place.project
    if wanted.observer is not ignore:
        wanted = replace(wanted, observer=safe_observer(wanted.observer))
    begun = Opening(place.uri, project.name, mode, str(project.build), project.current)
    with opening(wanted.observer, begun) as elapsed_s:
        match mode:
            case Mode.LEADER:
                catalog = _lead(place, leadership, wanted)
            case Mode.MEMBER:
                catalog = _join(place, leadership, wanted)
            case Mode.DEBUG:
                catalog = _debug(place, leadership, wanted)
            case _:
                catalog = _read(place, mode, leadership, wanted)
        fence = catalog.deploy_generation, catalog.epoch
        wanted.observer(Ready(place.uri, mode, catalog.version, *fence, catalog.ts, elapsed_s()))
        return catalog


def _lead(place: StorePlace, leadership: LeadershipOptions, options: UpgradeOptions) -> Catalog:
    place.project.require_frozen_types()
    require_fit(Registry.of(place.project.current_types), place.project.constraints)
    is_probed = _make_store(place)
    led = lead_upgraded(place, leadership, options, is_probed=is_probed)
    return Catalog(
        led.stash,
        Mode.LEADER,
        place,
        builtins=led.builtins,
        heartbeat=led.heartbeat,
        observer=options.observer,
    )


def _join(place: StorePlace, leadership: LeadershipOptions, options: UpgradeOptions) -> Catalog:
    """Join the present leader; the next one, if it takes over meanwhile."""
    place.identity()
    while True:
        try:
            return _join_once(place, leadership, options)
        except FencedError:
            continue


def _join_once(place: StorePlace, leadership: LeadershipOptions, options: UpgradeOptions) -> Catalog:
    stash = open_stash(place, place.log(), options.observer)
    version = stash_version(stash.state, place.uri)
    if version < place.project.current:
        raise UpgradeNeededError(stash.log.uri, version, place.project.current)
    place.project.require_frozen_types()
    require_probed(place.storage, place.project, stash.view())
    settle_identity(place.storage)
    stash.join()
    builtins = open_builtins(place, stash, leadership.deploy_generation, attach)
    return Catalog(stash, Mode.MEMBER, place, builtins=builtins, observer=options.observer)


def _debug(place: StorePlace, leadership: LeadershipOptions, options: UpgradeOptions) -> Catalog:
    place.identity()
    stash = own_stash(place.project, place.log())
    require_messages(place.project, stash)
    builtins = open_builtins(place, stash, leadership.deploy_generation, attach_as_found)
    return Catalog(stash, Mode.DEBUG, place, builtins=builtins, observer=options.observer)


def _read(place: StorePlace, mode: Mode, leadership: LeadershipOptions, options: UpgradeOptions) -> Catalog:
    """Serve the store itself read-only; an older one, and any savepoint, from an upgraded scratch copy."""
    place.identity()
    stash = open_stash(place, place.log(), options.observer)
    version = stash_version(stash.state, place.uri)
    if mode is Mode.READ_ONLY and version == place.project.current:
        builtins = open_builtins(place, stash, leadership.deploy_generation, run_read_only)
        return Catalog(stash, mode, place, builtins=builtins, observer=options.observer)
    import tempfile  # noqa: PLC0415 - most openings copy nothing
    from pathlib import Path  # noqa: PLC0415

    from catalog.engine.base.scratch_folder import scratch_folder  # noqa: PLC0415
    from catalog.engine.store.scratch_copy import scratch_copy  # noqa: PLC0415

    start = options.session_start()
    if version < place.project.current and needs_spark(place.project, stash.state, place.project.current):
        start.begin()
    scratch, is_savepoint = scratch_folder(Path(tempfile.gettempdir()), f"catalog-{mode}-copy-"), mode is Mode.SAVEPOINT
    try:
        fence = stash.state.fence
        copy = scratch_copy(
            place, stash.log, stash.state, scratch.path, with_shards=is_savepoint, with_tables=is_savepoint
        )
        log = copy.log()
        if version < place.project.current:
            run_steps(copy, log, fence, replace(options, reapply=True), start)  # the store itself stays as it is
        own = open_stash(copy, log, options.observer)
        if is_savepoint:
            own.resume(fence)
        shards, use = (copy, run_leader) if is_savepoint else (place, run_read_only)
        return Catalog(
            own,
            mode,
            copy,
            builtins=open_builtins(shards, own, leadership.deploy_generation, use),
            tables_at=copy if is_savepoint else place,
            scratch=scratch,
            copied_ts=stash.ts,
            rebuild=None if is_savepoint else lambda: _read(place, mode, leadership, options),
            observer=options.observer,
        )
    except BaseException:
        start.cancel()
        scratch.close()
        raise


def _make_store(place: StorePlace) -> bool:
    """Make an empty place a store with a log, after probing it; tell if it was probed. Several processes may do so."""
    storage, log = place.storage, place.log()
    identity, is_new = read_identity(storage, place.project.name), False
    if identity is None:
        _require_no_remains(storage, place)
        require_exclusive(storage)
        identity, is_new = make_identity(storage, place.project.name), True
    else:
        settle_identity(storage)
    try:
        log.verify()
    except NoStoreError as error:
        if was_led(storage, identity.id):
            raise LostStashError(storage.uri) from error
        if not is_new:
            require_exclusive(storage)  # the process that made it stopped before there was a log
        if log.create(uuid.uuid4().hex) and read_identity(storage, place.project.name) is None:
            raise NotAStoreError(storage.uri, "it was removed while it was being opened") from error
        return True
    return is_new


def _require_no_remains(storage: Storage, place: StorePlace) -> None:
    """Refuse a place that holds files, unless another process has just made it a store."""
    paths = (entry.path for entry in storage.entries("heartbeats"))
    stray = next((path for path in paths if not (is_unfinished(path) or is_probe(path))), None)
    if stray is not None and read_identity(storage, place.project.name) is None:
        raise NotAStoreError(storage.uri, f"there is no store.json, but {stray} is there")
