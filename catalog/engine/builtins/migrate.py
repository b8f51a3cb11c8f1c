"""The protocol by which the builtins of a store are migrated to those of a build.

Read-only, it writes its own replacement shards and their entries, and nothing that another build would meet. As leader
it registers schemas, records all in one commit of the stash, and clears away what is no longer used. Stopped anywhere,
it is run again from the start; run by several processes of one build and generation, it ends the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from catalog.engine.base.fence import Fence
from catalog.engine.builtins.declaration import Builtin, BuiltinName, Declaration
from catalog.engine.builtins.mapping_rows import ConfigKey, MappingRows
from catalog.engine.builtins.plan import BuiltinPlan, ExistingBuiltin, StoredBuiltin, plan
from catalog.engine.builtins.replacement_shards import Logs, ReplacementShard, ReplacementShards
from catalog.engine.shard.schema import Schema
from catalog.engine.stash.engine_rows import NOT_PROTECTED
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.engine.storage.layout import is_shard_id, new_shard_id
from catalog.errors import (
    BuiltinOvertakenError,
    BuiltinsTooNewError,
    NoStoreError,
    ShardFinalizedError,
    TransactionConflictError,
    UnmigratedBuiltinsError,
)

if TYPE_CHECKING:
    from catalog.engine.shard.shard import Shard

_FINALIZED_AT_ONCE = 32
"""The number of shards that one start finalises at most; the next start continues."""


@dataclass(frozen=True, slots=True)
class ResolvedBuiltin:
    """A builtin as this process uses it."""

    id: int | None
    shard: str | None
    """None in a process that only reads, until a leader creates the builtin: it is empty."""
    schema: Schema
    fingerprint: str


@dataclass(frozen=True, slots=True)
class BuiltinMigrationResult:
    """The plan of a migration, and the builtins that the process uses from then on."""

    plan: BuiltinPlan
    used: Mapping[BuiltinName, ResolvedBuiltin]


@dataclass(frozen=True, slots=True)
class BuiltinMigrator:
    """The process that migrates, and the builtins that it declares."""

    declared: Declaration
    stash: Stash
    logs: Logs
    generation: int
    """The deploy generation under which this process leads, or will lead."""
    new_id: Callable[[], str] = field(default=new_shard_id)

    @property
    def fence(self) -> Fence:
        return self.stash.fence or Fence(self.generation, 0)

    @property
    def entries(self) -> ReplacementShards:
        return ReplacementShards(self.logs, self.fence)

    def begin(self) -> MappingRows:
        """Read the newest rows; raise FencedError if this process has lost the lead."""
        self.stash.refresh()
        return MappingRows(Transaction(self.stash.registry, self.stash.view(), NOT_PROTECTED))

    def commit(self, records: MappingRows) -> None:
        self.stash.commit(records.tx)

    def require_lead(self) -> None:
        self.stash.refresh()

    def mark(self, ts: int | None) -> str:
        """Return what a leader of this build and generation records when nothing is to be cleared at a ts."""
        return f"{self.declared.build} {self.fence.generation} {ts}"

    def shard(self, shard_id: str) -> Shard:
        from catalog.engine.shard.shard import Shard  # noqa: PLC0415 - most starts open none

        return Shard.open(self.logs(shard_id), self.fence)

    def made_shard(self, shard_id: str) -> Shard:
        """Open a shard, or create it: the row that names it was written before, so that it is never lost."""
        from catalog.engine.shard.shard import Shard  # noqa: PLC0415 - as above

        return Shard.create(self.logs(shard_id), self.fence)


def inspect(process: BuiltinMigrator) -> BuiltinMigrationResult:
    """Plan the migration to this build; raise the error that keeps it from leading. Write nothing."""
    return _seen(process, lambda _, planned: BuiltinMigrationResult(planned, _untouched(process, planned)))


def attach(process: BuiltinMigrator) -> BuiltinMigrationResult:
    """Use the builtins that a leader of this build has migrated; raise UnmigratedBuiltinsError if none has."""
    outcome = inspect(process)
    if outcome.plan.has_work:
        after = "" if outcome.plan.after is None else str(outcome.plan.after)
        raise UnmigratedBuiltinsError(process.stash.log.uri, str(outcome.plan.upto), after)
    return outcome


def attach_as_found(process: BuiltinMigrator) -> BuiltinMigrationResult:
    """Use the stored builtins with their stored schemas; migrate nothing and refuse nothing."""
    stored = process.begin().stored(process.declared)
    used: dict[BuiltinName, ResolvedBuiltin] = {}
    for name, mapped in stored.builtins.items():
        with suppress(NoStoreError, ShardFinalizedError):  # fsck reports it
            latest = process.shard(mapped.shard).latest()
            if latest is not None:
                used[name] = ResolvedBuiltin(mapped.id, mapped.shard, latest.schema, mapped.fingerprint)
    return BuiltinMigrationResult(BuiltinPlan(stored.version, process.declared.build), used)


def run_read_only(process: BuiltinMigrator) -> BuiltinMigrationResult:
    """Find or create the shards that this build uses before it leads; schemas to be evolved are only compared."""
    return _seen(process, lambda records, planned: _looked_at(process, planned, frozenset(records.unfinalized())))


def run_leader(process: BuiltinMigrator) -> BuiltinMigrationResult:
    """Migrate the builtins as leader; raise FencedError as soon as another process leads."""
    while True:
        try:
            if (settled := _settled(process)) is not None:
                return settled
            _announce(process)
            outcome, spent = _migrated(process)
            cleared = finalize_unused(process, spent)
            _finish(process, outcome.plan, cleared)
        except TransactionConflictError:
            continue
        except (BuiltinOvertakenError, ShardFinalizedError):
            process.require_lead()
            raise
        return outcome


def finalize_unused(process: BuiltinMigrator, spent: frozenset[ReplacementShard] = frozenset()) -> str | None:
    """Finalise unused shards, some at a time: first entries that name them are deleted, then shards, then rows.

    Return the mark that no entry is left to be cleared; none if one is.
    """
    condemned = frozenset(process.begin().unfinalized())
    ts, left = process.entries.delete(lambda entry: entry in spent or entry.shard in condemned)
    finalized = sorted(filter(is_shard_id, condemned))[:_FINALIZED_AT_ONCE]
    for shard_id in finalized:
        process.made_shard(shard_id).finalize()
    if finalized:
        records = process.begin()
        records.forget(finalized)
        process.commit(records)
    is_earlier = any(entry.is_earlier_than(process.declared.build, process.fence) for entry in left)
    return None if is_earlier else process.mark(ts)


def _settled(process: BuiltinMigrator) -> BuiltinMigrationResult | None:
    """Return the result if the rows of the stash show that there is nothing to do: no shard is read then."""
    records = process.begin()
    planned = plan(process.declared, records.stored(process.declared))
    is_done = planned.overtaken_by is None and planned.after == planned.upto and not planned.has_work
    if not is_done or records.unfinalized() or records.cleared() != process.mark(process.entries.ts()):
        return None
    return BuiltinMigrationResult(planned, _kept(process, planned))


def _seen(
    process: BuiltinMigrator, use: Callable[[MappingRows, BuiltinPlan], BuiltinMigrationResult]
) -> BuiltinMigrationResult:
    """Apply a function to the newest plan; plan again if a leader finalised a shard meanwhile."""
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


def _untouched(process: BuiltinMigrator, planned: BuiltinPlan) -> dict[BuiltinName, ResolvedBuiltin]:
    """Return the builtins that need no new shard: those that stay as they are, and those that can evolve."""
    used = _kept(process, planned)
    for change in planned.evolved:
        from catalog.engine.builtins.schema_evolution import require_compatible  # noqa: PLC0415 - as above

        require_compatible(process.shard(change.mapped.shard).latest(), change)
        used[change.builtin.name] = _used(change.builtin, change.mapped.id, change.mapped.shard)
    return used


def _looked_at(process: BuiltinMigrator, planned: BuiltinPlan, condemned: frozenset[str]) -> BuiltinMigrationResult:
    used = _untouched(process, planned)
    used |= _replacements(process, {change.mapped.id: change.builtin for change in planned.replaced}, condemned)
    for creation in planned.created:
        used[creation.builtin.name] = _used(creation.builtin, creation.id, None)
    return BuiltinMigrationResult(planned, used)


def _announce(process: BuiltinMigrator) -> None:
    """Record that this build begins, so that older builds stop, and give new builtins their ids."""
    records = process.begin()
    stored = records.stored(process.declared)
    planned = plan(process.declared, stored)
    if planned.has_work and stored.begun != process.declared.build:
        records.set_fact(ConfigKey.BEGUN, process.declared.build)
    records.name(creation.builtin.name for creation in planned.created if creation.id is None)
    process.commit(records)


def _migrated(process: BuiltinMigrator) -> tuple[BuiltinMigrationResult, frozenset[ReplacementShard]]:
    """Migrate up to the commit of the new mapping; return the result and the entries that are spent."""
    records = process.begin()
    planned = plan(process.declared, records.stored(process.declared))
    condemned = frozenset(records.unfinalized())
    used = _kept(process, planned)
    new = {creation.id: creation.builtin for creation in planned.created if creation.id is not None}
    new |= {change.mapped.id: change.builtin for change in planned.replaced}
    used |= _replacements(process, new, condemned)
    for change in planned.evolved:
        from catalog.engine.builtins.schema_evolution import evolve  # noqa: PLC0415 - as above

        evolve(process.shard(change.mapped.shard), change, process.require_lead)
        used[change.builtin.name] = _used(change.builtin, change.mapped.id, change.mapped.shard)
    earlier = tuple(one for one in process.entries.read() if one.is_earlier_than(process.declared.build, process.fence))
    _record(records, planned, used, earlier)
    process.commit(records)
    return BuiltinMigrationResult(planned, used), frozenset(earlier)


def _record(
    records: MappingRows,
    planned: BuiltinPlan,
    used: Mapping[BuiltinName, ResolvedBuiltin],
    earlier: tuple[ReplacementShard, ...],
) -> None:
    """Write the new mapping, and mark the shards that it no longer uses."""
    condemned: dict[str, str] = {}
    for name, own in used.items():
        if own.id is not None and own.shard is not None:
            records.map(name, StoredBuiltin(own.id, own.fingerprint, own.shard))
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


def _finish(process: BuiltinMigrator, planned: BuiltinPlan, cleared: str | None) -> None:
    """Record, last of all, that the store was migrated to this build, and that no entry is left to be cleared."""
    if planned.overtaken_by is not None:
        return
    records = process.begin()
    if planned.after != planned.upto:
        records.set_fact(ConfigKey.VERSION, planned.upto)
    if cleared is not None and records.cleared() != cleared:
        records.set_cleared(cleared)
    process.commit(records)


def _kept(process: BuiltinMigrator, planned: BuiltinPlan) -> dict[BuiltinName, ResolvedBuiltin]:
    """Return the builtins that stay as they are.

    A newer build that has begun may have registered schemas that it has not recorded yet.
    """
    if planned.overtaken_by is not None:
        ahead = [str(change.builtin.name) for change in planned.kept if not _is_latest(process, change)]
        if ahead:
            raise BuiltinsTooNewError(str(planned.upto), str(planned.overtaken_by), tuple(ahead))
    return {
        change.builtin.name: _used(change.builtin, change.mapped.id, change.mapped.shard) for change in planned.kept
    }


def _is_latest(process: BuiltinMigrator, change: ExistingBuiltin) -> bool:
    latest = process.shard(change.mapped.shard).latest()
    return latest is not None and latest.schema == change.builtin.schema


def _replacements(
    process: BuiltinMigrator, builtins: Mapping[int, Builtin], condemned: frozenset[str]
) -> dict[BuiltinName, ResolvedBuiltin]:
    """Find or create a shard with its schema for each builtin, by id."""
    if not builtins:
        return {}
    from catalog.engine.builtins.schema_evolution import adopt  # noqa: PLC0415 - as above

    own = process.entries.own(builtins, process.declared.build, condemned, process.new_id)
    for id_, builtin in builtins.items():
        adopt(process.made_shard(own[id_]), builtin, own[id_])
    return {builtin.name: _used(builtin, id_, own[id_]) for id_, builtin in builtins.items()}


def _used(builtin: Builtin, id_: int | None, shard: str | None) -> ResolvedBuiltin:
    return ResolvedBuiltin(id_, shard, builtin.schema, builtin.fingerprint)
