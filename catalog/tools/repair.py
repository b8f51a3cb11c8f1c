"""Repair of the remains of crashes and edited migrations, without fencing a leader.

First a diagnosis, which writes nothing; then the repair of what was diagnosed and is still so. Runs whose process is
alive are left alone. Each repair is one commit, or one entry set aside; a second repair finds nothing to do.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from catalog.engine.base.fence import Fence
from catalog.engine.log.damaged_entry import DamagedEntry, Remedy, find_damaged, repair_entry
from catalog.engine.log.data_files import file_collection
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, Log, Operation
from catalog.engine.log.replica import newest_state
from catalog.engine.migrate.contradictions import Contradiction, contradictions, mended
from catalog.engine.migrate.executor import mismatches
from catalog.engine.migrate.plan import checksum, migration_of
from catalog.engine.migrate.recorder import MigrationEvent, RunState, close_dead, read_events
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.schema_change.replica import TABLES_COLLECTIONS
from catalog.engine.stash.engine_rows import ENGINE_COLLECTIONS
from catalog.engine.stash.transaction import RowChange
from catalog.engine.storage.base import Storage, open_storage
from catalog.engine.storage.heartbeat import INTERVAL_S, is_leader_alive
from catalog.engine.storage.layout import SHARDS, STASH, TABLES, shard_ids, shard_uri, tables_uri
from catalog.engine.store.leadership import open_system_rows
from catalog.errors import ConflictError


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run of a step that is marked RUNNING."""

    number: int
    """The id of its event."""
    step: str
    fence: Fence
    lives: bool
    """Its process is alive: the run is left alone."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An applied migration whose checksum differs from that of this build."""

    number: int
    """The id of its event."""
    step: str
    recorded: str
    present: str


@dataclass(frozen=True, slots=True)
class DamagedShard:
    """A shard with a damaged entry."""

    id: str
    damaged: DamagedEntry


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that a repair can correct."""

    ts: int | None
    """The newest ts that can be read; none if it is unknown."""
    damaged: DamagedEntry | None = None
    """The oldest damaged entry of the log."""
    leader_lives: bool = False
    """Checked only if something depends on it. An entry that looks torn under a live leader is read a second time."""
    runs: tuple[UnfinishedRun, ...] = ()
    stray_step: int = 0
    """The version of a step that the log marks as running but that has no event; else 0."""
    checksums: tuple[Difference, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    """Rows of the engine that the marks of the log contradict; some of them may be impossible to mend."""
    shards: tuple[DamagedShard, ...] = ()
    """Shards with a damaged entry; for some there may be no remedy."""
    tables: DamagedEntry | None = None
    """The oldest damaged entry of the log of tables; there may be no remedy."""

    @property
    def mendable_tables(self) -> DamagedEntry | None:
        return self.tables if self.tables is not None and self.tables.remedy is not None else None

    @property
    def mendable_shards(self) -> tuple[DamagedShard, ...]:
        return tuple(shard for shard in self.shards if shard.damaged.remedy is not None)

    @property
    def dead(self) -> tuple[UnfinishedRun, ...]:
        return tuple(run for run in self.runs if not run.lives)

    @property
    def is_sound(self) -> bool:
        """True if there is nothing to repair."""
        return not (
            self.damaged
            or self.dead
            or self.stray_step
            or self.checksums
            or self.contradictions
            or self.shards
            or self.tables
        )

    @property
    def mendable_rows(self) -> tuple[Contradiction, ...]:
        return tuple(own for own in self.contradictions if own.is_mendable)


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair."""

    ts: int
    """The newest ts afterwards."""
    kept: str = ""
    """The path of the bytes of the damaged entry of the stash, within the store; empty if there was none."""
    closed: tuple[UnfinishedRun, ...] = ()
    stray_step: int = 0
    recorded: tuple[Difference, ...] = ()
    kept_of_shards: tuple[str, ...] = ()
    rewritten: tuple[Contradiction, ...] = ()
    """Rows of the engine that were written as the log has them."""
    kept_of_tables: str = ""
    """As `kept`, of the log of tables."""


def diagnose(place: StorePlace, *, heartbeat_s: float = INTERVAL_S) -> Diagnosis:
    """Find what can be repaired; raise the error of the log for damage that cannot."""
    place.identity()
    storage, log = place.storage, place.log()
    damaged = _with_marks(find_damaged(open_storage(place.stash_uri, place.options)), ENGINE_COLLECTIONS)
    tables = _damaged_tables(place)
    if damaged is not None and (damaged.obstacle or damaged.version == 0):  # no state can be read before it is whole
        return Diagnosis(None, damaged, tables=tables)
    is_readable = damaged is None or damaged.remedy is Remedy.RETIRE
    state = log.state(log.verify() if is_readable or damaged is None else damaged.version - 1)
    version = state.stash_version
    if version is not None:
        place.project.check_version(version)
    journal = open_system_rows(place.project, log, state.fence, state)
    events = read_events(journal)
    running = [event for event in events if event.state is RunState.RUNNING]
    is_asked = damaged is not None or any(_fence(event) == state.fence for event in running)
    lives = is_asked and state.fence.epoch > 0 and is_leader_alive(storage, state.fence, heartbeat_s)
    return Diagnosis(
        state.version,
        damaged,
        lives,
        tuple(
            UnfinishedRun(event.id, event.value.name, _fence(event), lives and _fence(event) == state.fence)
            for event in running
        ),
        0 if running else state.app_txns.get(AppTxn.RUNNING_STEP, 0),
        tuple(_differences(place, events)),
        tuple(contradictions(state, journal.rows)),
        tuple(_damaged_shards(place, storage)),
        tables,
    )


def repair(
    place: StorePlace,
    diagnosis: Diagnosis,
    *,
    checksums: bool = False,
    accept_loss: bool = False,
    heartbeat_s: float = INTERVAL_S,
) -> Repaired:
    """Repair what was diagnosed; checksums only on request, because the edited migration may be wrong.

    An acknowledged commit that cannot be restored is left out only if its loss is accepted.
    """
    place.identity()
    storage, log, damaged = place.storage, place.log(), diagnosis.damaged
    if damaged is not None:
        if diagnosis.leader_lives:
            time.sleep(heartbeat_s)  # read it again one heartbeat later
        _repair_entry(open_storage(place.stash_uri, place.options), log, damaged, accept_loss=accept_loss)
    for shard in diagnosis.mendable_shards:
        uri = shard_uri(place.uri, shard.id)
        shard_log = DeltaLog(uri, place.options)
        _repair_entry(open_storage(uri, place.options), shard_log, shard.damaged, accept_loss=accept_loss)
    if (of_tables := diagnosis.mendable_tables) is not None:
        tables_storage = open_storage(tables_uri(place.uri), place.options)
        _repair_entry(tables_storage, place.tables_log(), of_tables, accept_loss=accept_loss)
    state = newest_state(log)
    journal = open_system_rows(place.project, log, state.fence, state)
    dead = _still_dead(storage, journal, diagnosis, heartbeat_s)
    closed, stray_step = _close(journal, dead) if dead or diagnosis.stray_step else ((), 0)
    recorded = _record(journal, diagnosis.checksums) if checksums else ()
    rewritten = _rewrite(journal) if diagnosis.mendable_rows else ()
    return Repaired(
        journal.state.version,
        f"{STASH}/{damaged.path}" if damaged else "",
        closed,
        stray_step,
        recorded,
        tuple(f"{SHARDS}/{shard.id}/{shard.damaged.path}" for shard in diagnosis.mendable_shards),
        rewritten,
        "" if of_tables is None else f"{TABLES}/{of_tables.path}",
    )


def _with_marks(
    damaged: DamagedEntry | None,
    collections: frozenset[str],
    changed: str = "the version or the leader of the store",
) -> DamagedEntry | None:
    """Return a damaged entry; later commits cannot do without one that changed rows which the engine goes by."""
    if damaged is None or damaged.remedy is not Remedy.LEAVE_OUT:
        return damaged
    marking = sorted(collections & {file_collection(path) for path in damaged.orphans})
    if not marking:
        return damaged
    obstacle = f"it changed {changed}: rows of its ts are in {', '.join(marking)}"
    return replace(damaged, remedy=None, lost="", obstacle=obstacle)


def _damaged_tables(place: StorePlace) -> DamagedEntry | None:
    """Find a damaged entry of the tables; one that changed a schema or took ids is not left out."""
    found = find_damaged(open_storage(tables_uri(place.uri), place.options))
    return _with_marks(found, TABLES_COLLECTIONS, "a schema, a schema change or an id of tables")


def _repair_entry(storage: Storage, log: Log, damaged: DamagedEntry, *, accept_loss: bool) -> None:
    """Apply the remedy of a damaged entry; states that cannot be read any more are retired by a commit."""
    repair_entry(storage, damaged, log.now_ms(), accept_loss=accept_loss)
    while damaged.remedy is Remedy.RETIRE and (state := newest_state(log)).frontier < damaged.frontier:
        retired = {AppTxn.FRONTIER: damaged.frontier}
        with suppress(ConflictError):
            log.compare_and_append(state, CommitRequest(Operation.RETAIN, uuid.uuid4().hex, app_txns=retired))


def _damaged_shards(place: StorePlace, storage: Storage) -> Iterator[DamagedShard]:
    """Find the shards with a damaged entry."""
    for shard in sorted(shard_ids(storage)):
        if (damaged := find_damaged(open_storage(shard_uri(place.uri, shard), place.options))) is not None:
            yield DamagedShard(shard, damaged)


def _differences(place: StorePlace, events: Sequence[MigrationEvent]) -> list[Difference]:
    return [
        Difference(
            event.id,
            event.value.name,
            event.value.checksum,
            checksum(migration_of(place.project, int(event.value.previous))),
        )
        for event in mismatches(place.project, events)
    ]


def _still_dead(
    storage: Storage, journal: SystemRows, diagnosis: Diagnosis, heartbeat_s: float
) -> tuple[UnfinishedRun, ...]:
    """Return the runs whose process has not become active since the diagnosis."""
    is_asked = any(run.fence == journal.fence for run in diagnosis.dead)
    lives = is_asked and is_leader_alive(storage, journal.fence, heartbeat_s)
    return tuple(run for run in diagnosis.dead if not (lives and run.fence == journal.fence))


def _close(journal: SystemRows, dead: tuple[UnfinishedRun, ...]) -> tuple[tuple[UnfinishedRun, ...], int]:
    """Close runs; return those that were still open or, if none was, the step that was marked without an event."""
    marked = journal.state.app_txns.get(AppTxn.RUNNING_STEP, 0)
    done = close_dead(journal, only=[run.number for run in dead])
    is_stray = not done and marked and not journal.state.app_txns.get(AppTxn.RUNNING_STEP, 0)
    return tuple(run for run in dead if run.number in done), marked if is_stray else 0


def _record(journal: SystemRows, wanted: tuple[Difference, ...]) -> tuple[Difference, ...]:
    """Record the checksums of this build in events, in one commit; events that changed since are left alone."""
    while True:
        present = {event.id: event for event in read_events(journal)}
        due = [one for one in wanted if one.number in present and present[one.number].value.checksum == one.recorded]
        if not due:
            return ()
        try:
            journal.append(Operation.TRANSACTION, [_with_checksum(journal, present[d.number], d) for d in due], {})
        except ConflictError:
            journal.refresh()
        else:
            return tuple(due)


def _rewrite(journal: SystemRows) -> tuple[Contradiction, ...]:
    """Write rows of the engine as the log has them, in one commit; return those that were not so."""
    while True:
        found = tuple(own for own in contradictions(journal.state, journal.rows) if own.is_mendable)
        if not found:
            return ()
        try:
            journal.append(Operation.TRANSACTION, mended(journal), {})
        except ConflictError:
            journal.refresh()
        else:
            return found


def _with_checksum(journal: SystemRows, event: MigrationEvent, difference: Difference) -> RowChange:
    kind = journal.registry.named("migration_event")
    value = kind.value_type()
    value.CopyFrom(event.value)
    value.checksum = difference.present  # type: ignore[attr-defined]
    return journal.change(kind.key_type(id=event.id), value)


def _fence(event: MigrationEvent) -> Fence:
    return Fence(int(event.value.deploy_generation), int(event.value.epoch))
