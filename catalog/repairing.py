"""Mending what a crash or an edited migration left, without fencing anybody.

First a diagnosis, which writes nothing; then the repair of what was diagnosed and is still so. What lives by its
heartbeat is left alone. Each repair is one commit, or one entry set aside, and done again it finds nothing to do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from catalog.engine.events import Event, State, close_dead, read_events
from catalog.engine.journal import Journal
from catalog.engine.plan import checksum, migration_of
from catalog.engine.run import mismatches
from catalog.errors import ConflictError
from catalog.leading import existing, open_journal
from catalog.log.protocol import Fence, Mark, Operation
from catalog.log.quarantine import Torn, find_torn, set_aside
from catalog.log.storage import SHARDS, Storage, open_storage
from catalog.project import Place
from catalog.shard.shard import shard_ids, shard_uri
from catalog.stash.collections import Registry
from catalog.stash.heartbeat import INTERVAL_S, is_led
from catalog.stash.transaction import RowChange


@dataclass(frozen=True, slots=True)
class Run:
    """A step that is said to run."""

    number: int
    """Of its event."""
    step: str
    fence: Fence
    lives: bool
    """Its process shows signs of life: it is left alone."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An applied migration that is not the one of this build."""

    number: int
    """Of its event."""
    step: str
    recorded: str
    present: str


@dataclass(frozen=True, slots=True)
class TornShard:
    """A shard whose newest entry is damaged."""

    id: str
    torn: Torn


@dataclass(frozen=True, slots=True)
class Diagnosis:
    ts: int | None
    """The newest that can be read; none if that is not known."""
    torn: Torn | None = None
    leader_lives: bool = False
    """Looked at only if something depends on it. What looks torn under a live leader is looked at once more."""
    runs: tuple[Run, ...] = ()
    stray_step: int = 0
    """The version that a step leads to which the log says to run, and of which there is no event; else 0."""
    checksums: tuple[Difference, ...] = ()
    shards: tuple[TornShard, ...] = ()
    """Those that were torn; of some it may be that nothing can be set aside."""

    @property
    def mendable_shards(self) -> tuple[TornShard, ...]:
        return tuple(shard for shard in self.shards if not shard.torn.obstacle)

    @property
    def dead(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if not run.lives)

    @property
    def is_sound(self) -> bool:
        """There is nothing to repair."""
        return not (self.torn or self.dead or self.stray_step or self.checksums or self.shards)


@dataclass(frozen=True, slots=True)
class Repaired:
    ts: int
    """The newest afterwards."""
    set_aside: str = ""
    """Where the bytes of the torn entry of the stash are, within the store; empty if there was none."""
    closed: tuple[Run, ...] = ()
    stray_step: int = 0
    recorded: tuple[Difference, ...] = ()
    set_aside_of_shards: tuple[str, ...] = ()


def diagnose(place: Place, *, heartbeat_s: float = INTERVAL_S) -> Diagnosis:
    """Look for what can be mended; raises what the log says of damage that cannot."""
    storage, log = existing(place)
    torn = find_torn(_stash_storage(place))
    if torn is not None and torn.obstacle:
        return Diagnosis(None, torn)
    state = log.state(log.verify() if torn is None else torn.version - 1)
    version = state.marks.get(Mark.STASH_VERSION)
    if version is not None:
        place.project.check_version(version)
    events = read_events(Journal(log, Registry.of(place.project.current_types), state.fence, state))
    running = [event for event in events if event.state is State.RUNNING]
    is_asked = torn is not None or any(_fence(event) == state.fence for event in running)
    lives = is_asked and state.fence.epoch > 0 and is_led(storage, state.fence, heartbeat_s)
    return Diagnosis(
        state.version,
        torn,
        lives,
        tuple(
            Run(event.id, event.value.name, _fence(event), lives and _fence(event) == state.fence) for event in running
        ),
        0 if running else state.marks.get(Mark.RUNNING_STEP, 0),
        tuple(_differences(place, events)),
        tuple(_torn_shards(place, storage)),
    )


def repair(place: Place, diagnosis: Diagnosis, *, checksums: bool = False, heartbeat_s: float = INTERVAL_S) -> Repaired:
    """Mend what was diagnosed; checksums only if asked to, as the edited migration may have been wrong."""
    storage, log = existing(place)
    torn = diagnosis.torn
    if torn is not None:
        if diagnosis.leader_lives:
            time.sleep(heartbeat_s)  # the second look is a heartbeat after the first
        set_aside(_stash_storage(place), torn, log.now_ms())
    for shard in diagnosis.mendable_shards:
        set_aside(_shard_storage(place, shard.id), shard.torn, log.now_ms())
    journal = open_journal(place.project, log, log.state(log.verify()).fence)
    dead = _still_dead(storage, journal, diagnosis, heartbeat_s)
    closed, stray_step = _close(journal, dead) if dead or diagnosis.stray_step else ((), 0)
    recorded = _record(journal, diagnosis.checksums) if checksums else ()
    return Repaired(
        journal.state.version,
        f"stash/{torn.path}" if torn else "",
        closed,
        stray_step,
        recorded,
        tuple(f"{SHARDS}/{shard.id}/{shard.torn.path}" for shard in diagnosis.mendable_shards),
    )


def _torn_shards(place: Place, storage: Storage) -> Iterator[TornShard]:
    """Nobody writes a shard but a live leader, for whom it would be whole by the time that anybody agreed."""
    for shard in sorted(shard_ids(storage)):
        if (torn := find_torn(_shard_storage(place, shard))) is not None:
            yield TornShard(shard, torn)


def _differences(place: Place, events: Sequence[Event]) -> list[Difference]:
    return [
        Difference(
            event.id,
            event.value.name,
            event.value.checksum,
            checksum(migration_of(place.project, int(event.value.previous))),
        )
        for event in mismatches(place.project, events)
    ]


def _still_dead(storage: Storage, journal: Journal, diagnosis: Diagnosis, heartbeat_s: float) -> tuple[Run, ...]:
    """Those that have not come back to life since they were diagnosed."""
    is_asked = any(run.fence == journal.fence for run in diagnosis.dead)
    lives = is_asked and is_led(storage, journal.fence, heartbeat_s)
    return tuple(run for run in diagnosis.dead if not (lives and run.fence == journal.fence))


def _close(journal: Journal, dead: tuple[Run, ...]) -> tuple[tuple[Run, ...], int]:
    """Close runs, and answer which were still open; or, if none is, the step that nevertheless was said to run."""
    marked = journal.state.marks.get(Mark.RUNNING_STEP, 0)
    done = close_dead(journal, only=[run.number for run in dead])
    is_stray = not done and marked and not journal.state.marks.get(Mark.RUNNING_STEP, 0)
    return tuple(run for run in dead if run.number in done), marked if is_stray else 0


def _record(journal: Journal, wanted: tuple[Difference, ...]) -> tuple[Difference, ...]:
    """Have events say the checksums of this build, in one commit; those that changed since stay as they are."""
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


def _with_checksum(journal: Journal, event: Event, difference: Difference) -> RowChange:
    kind = journal.registry.named("migration_event")
    value = kind.value_type()
    value.CopyFrom(event.value)
    value.checksum = difference.present  # type: ignore[attr-defined]
    return journal.change(kind.key_type(id=event.id), value)


def _fence(event: Event) -> Fence:
    return Fence(int(event.value.deploy_generation), int(event.value.epoch))


def _shard_storage(place: Place, shard: str) -> Storage:
    return open_storage(shard_uri(place.uri, shard), place.options)


def _stash_storage(place: Place) -> Storage:
    """Where the log's own files are."""
    return open_storage(f"{place.uri.rstrip('/')}/stash", place.options)
