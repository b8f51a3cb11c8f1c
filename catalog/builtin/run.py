"""The protocol by which the builtins of a store are migrated to those of a build.

Read-only, it writes its own replacement shards and their entries, and nothing that another build would meet. As leader
it registers schemas, records all in one commit of the stash, and clears away what is no longer used. Stopped anywhere,
it is run again from the start; run by several processes of one build and generation, it ends the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from catalog.builtin.declared import Builtin, BuiltinName, Declared
from catalog.builtin.entries import Entries, Entry, Logs
from catalog.builtin.evolving import adopt, evolve, require_compatible
from catalog.builtin.plan import Change, Mapped, Plan, plan
from catalog.builtin.records import Fact, Records
from catalog.errors import (
    BuiltinOvertakenError,
    BuiltinsTooNewError,
    NoStoreError,
    ShardFinalizedError,
    TransactionConflictError,
    UnmigratedBuiltinsError,
)
from catalog.log.protocol import Fence
from catalog.shard.schema import Schema
from catalog.shard.shard import Shard, is_shard_id, new_shard_id
from catalog.stash.stash import Stash
from catalog.stash.transaction import Transaction

_FINALIZED_AT_ONCE = 32
"""So many shards keep a start waiting at most; the next one goes on."""


@dataclass(frozen=True, slots=True)
class Used:
    """A builtin as a process uses it."""

    id: int | None
    shard: str | None
    """None in a process that only reads, until a leader has made a new builtin: it is empty."""
    schema: Schema
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Outcome:
    plan: Plan
    used: Mapping[BuiltinName, Used]


@dataclass(frozen=True, slots=True)
class Process:
    """Who migrates what."""

    declared: Declared
    stash: Stash
    logs: Logs
    generation: int
    """The deploy generation under which this process leads, or is to lead."""
    new_id: Callable[[], str] = field(default=new_shard_id)

    @property
    def fence(self) -> Fence:
        return self.stash.head.fence or Fence(self.generation, 0)

    @property
    def entries(self) -> Entries:
        return Entries(self.logs, self.fence)

    def begin(self) -> Records:
        """The newest rows; raises FencedError if this process led and does no more."""
        self.stash.refresh()
        return Records(Transaction(self.stash.head.registry, self.stash.view()))

    def commit(self, records: Records) -> None:
        self.stash.commit(records.tx)

    def require_lead(self) -> None:
        self.stash.refresh()

    def shard(self, shard_id: str) -> Shard:
        return Shard.open(self.logs(shard_id), self.fence)

    def made_shard(self, shard_id: str) -> Shard:
        """The shard, made if there is none: whatever names it was there first, so that it is never lost."""
        return Shard.create(self.logs(shard_id), self.fence)


def look(process: Process) -> Outcome:
    """What would become of the builtins under this build; raises whatever keeps it from leading, and writes nothing."""
    return _seen(process, lambda _, planned: Outcome(planned, _untouched(process, planned)))


def join(process: Process) -> Outcome:
    """Use what a leader has migrated; raises UnmigratedBuiltinsError if none of this build has."""
    outcome = look(process)
    if outcome.plan.has_work:
        after = "" if outcome.plan.after is None else str(outcome.plan.after)
        raise UnmigratedBuiltinsError(process.stash.head.log.uri, str(outcome.plan.upto), after)
    return outcome


def find(process: Process) -> Outcome:
    """Use what is there with the schemas that it has, whatever this build says; migrates and refuses nothing."""
    stored = process.begin().stored(process.declared)
    used: dict[BuiltinName, Used] = {}
    for name, mapped in stored.builtins.items():
        with suppress(NoStoreError, ShardFinalizedError):  # for a check of the store to tell
            latest = process.shard(mapped.shard).latest()
            if latest is not None:
                used[name] = Used(mapped.id, mapped.shard, latest.schema, mapped.fingerprint)
    return Outcome(Plan(stored.version, process.declared.build), used)


def run_read_only(process: Process) -> Outcome:
    """Find or make what this build uses before it leads; schemas that are to evolve are only looked at."""
    return _seen(process, lambda records, planned: _looked_at(process, planned, frozenset(records.unfinalized())))


def run_leader(process: Process) -> Outcome:
    """Migrate the store. The stash leads already; raises FencedError as soon as another does."""
    while True:
        try:
            _announce(process)
            outcome, spent = _migrated(process)
            clean(process, spent)
            _finish(process, outcome.plan)
        except TransactionConflictError:
            continue
        except (BuiltinOvertakenError, ShardFinalizedError):
            process.require_lead()
            raise
        return outcome


def clean(process: Process, spent: frozenset[Entry] = frozenset()) -> None:
    """Finalise what is given up, some shards at a time. Entries go before the shards they name, records after them."""
    condemned = frozenset(process.begin().unfinalized())
    process.entries.delete(lambda entry: entry in spent or entry.shard in condemned)
    finalized = sorted(filter(is_shard_id, condemned))[:_FINALIZED_AT_ONCE]
    for shard_id in finalized:
        process.made_shard(shard_id).finalize()
    if finalized:
        records = process.begin()
        records.forget(finalized)
        process.commit(records)


def _seen(process: Process, use: Callable[[Records, Plan], Outcome]) -> Outcome:
    """What comes of the newest plan, made again if a leader was quicker."""
    gone: set[str] = set()
    while True:
        records = process.begin()
        planned = plan(process.declared, records.stored(process.declared))
        try:
            return use(records, planned)
        except ShardFinalizedError as error:  # another shard has taken its place, or none has
            if error.uri in gone:
                raise
            gone.add(error.uri)


def _untouched(process: Process, planned: Plan) -> dict[BuiltinName, Used]:
    """What this build uses without writing anything: what stays as it is, and what could evolve."""
    used = _kept(process, planned)
    for change in planned.evolved:
        require_compatible(process.shard(change.mapped.shard).latest(), change)
        used[change.builtin.name] = _used(change.builtin, change.mapped.id, change.mapped.shard)
    return used


def _looked_at(process: Process, planned: Plan, condemned: frozenset[str]) -> Outcome:
    used = _untouched(process, planned)
    used |= _replacements(process, {change.mapped.id: change.builtin for change in planned.replaced}, condemned)
    for creation in planned.created:
        used[creation.builtin.name] = _used(creation.builtin, creation.id, None)
    return Outcome(planned, used)


def _announce(process: Process) -> None:
    """Tell lower builds to stay away from what is about to change, and give new builtins their ids."""
    records = process.begin()
    stored = records.stored(process.declared)
    planned = plan(process.declared, stored)
    if planned.has_work and stored.begun != process.declared.build:
        records.set_fact(Fact.BEGUN, process.declared.build)
    records.name(creation.builtin.name for creation in planned.created if creation.id is None)
    process.commit(records)


def _migrated(process: Process) -> tuple[Outcome, frozenset[Entry]]:
    """All up to the commit of the new mapping; with it, the entries that are spent from then on."""
    records = process.begin()
    planned = plan(process.declared, records.stored(process.declared))
    condemned = frozenset(records.unfinalized())
    used = _kept(process, planned)
    new = {creation.id: creation.builtin for creation in planned.created if creation.id is not None}
    new |= {change.mapped.id: change.builtin for change in planned.replaced}
    used |= _replacements(process, new, condemned)
    for change in planned.evolved:
        evolve(process.shard(change.mapped.shard), change, process.require_lead)
        used[change.builtin.name] = _used(change.builtin, change.mapped.id, change.mapped.shard)
    earlier = tuple(one for one in process.entries.read() if one.is_earlier_than(process.declared.build, process.fence))
    _record(records, planned, used, earlier)
    process.commit(records)
    return Outcome(planned, used), frozenset(earlier)


def _record(records: Records, planned: Plan, used: Mapping[BuiltinName, Used], earlier: tuple[Entry, ...]) -> None:
    """The new mapping, and whatever is no longer used by it."""
    condemned: dict[str, str] = {}
    for name, own in used.items():
        if own.id is not None and own.shard is not None:
            records.map(name, Mapped(own.id, own.fingerprint, own.shard))
    for change in planned.replaced:
        if used[change.builtin.name].shard != change.mapped.shard:
            condemned[change.mapped.shard] = f"{change.builtin.name} was replaced by build {planned.upto}"
    for name in planned.given_up:
        if (shard := records.unmap(name)) is not None:
            condemned[shard] = f"{name} was given up by build {planned.upto}"
    for entry in earlier:
        if records.shard_of(entry.id) != entry.shard:
            condemned.setdefault(entry.shard, f"made for build {entry.build}, generation {entry.generation}")
    records.condemn(condemned)


def _finish(process: Process, planned: Plan) -> None:
    """Last of all: from now on this is the build that the store was migrated to."""
    if planned.overtaken_by is None and planned.after != planned.upto:
        records = process.begin()
        records.set_fact(Fact.VERSION, planned.upto)
        process.commit(records)


def _kept(process: Process, planned: Plan) -> dict[BuiltinName, Used]:
    """What stays as it is. A newer build that has begun may have registered schemas before it recorded them."""
    if planned.overtaken_by is not None:
        ahead = [str(change.builtin.name) for change in planned.kept if not _is_latest(process, change)]
        if ahead:
            raise BuiltinsTooNewError(str(planned.upto), str(planned.overtaken_by), tuple(ahead))
    return {
        change.builtin.name: _used(change.builtin, change.mapped.id, change.mapped.shard) for change in planned.kept
    }


def _is_latest(process: Process, change: Change) -> bool:
    latest = process.shard(change.mapped.shard).latest()
    return latest is not None and latest.schema == change.builtin.schema


def _replacements(
    process: Process, builtins: Mapping[int, Builtin], condemned: frozenset[str]
) -> dict[BuiltinName, Used]:
    """New shards by the ids of their builtins, each with its schema: those that are there already, or new ones."""
    own = process.entries.own(builtins, process.declared.build, condemned, process.new_id)
    for id_, builtin in builtins.items():
        adopt(process.made_shard(own[id_]), builtin, own[id_])
    return {builtin.name: _used(builtin, id_, own[id_]) for id_, builtin in builtins.items()}


def _used(builtin: Builtin, id_: int | None, shard: str | None) -> Used:
    return Used(id_, shard, builtin.schema, builtin.fingerprint)
