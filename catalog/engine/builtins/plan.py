"""The plan of a migration of builtins. Pure: computed from the declared and the stored builtins.

Instructions of builds after the one that the store was migrated to, up to this one, count; of several about one
builtin, a replacement wins. A change that none of them is about is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from catalog.engine.base.project import BuildVersion
from catalog.engine.builtins.declaration import Builtin, BuiltinName, Declaration, Instruction, Mechanism
from catalog.errors import BuiltinsTooNewError, UninstructedSchemaError


@dataclass(frozen=True, slots=True)
class StoredBuiltin:
    """The shard of a builtin, and the fingerprint of its schema."""

    id: int
    fingerprint: str
    shard: str


@dataclass(frozen=True, slots=True)
class StoredBuiltins:
    """The builtins of a store, and the builds that migrated them."""

    version: BuildVersion | None
    """The build to which the store was last migrated; none if no migration has finished yet."""
    begun: BuildVersion | None
    """The newest build that began to migrate the store, finished or not."""
    builtins: Mapping[BuiltinName, StoredBuiltin]
    named: Mapping[BuiltinName, int] = field(default_factory=dict)
    """The ids of builtins that have no shard yet."""

    @property
    def newest(self) -> BuildVersion | None:
        return max((build for build in (self.version, self.begun) if build is not None), default=None)


@dataclass(frozen=True, slots=True)
class ExistingBuiltin:
    """A builtin that has a shard."""

    builtin: Builtin
    mapped: StoredBuiltin


@dataclass(frozen=True, slots=True)
class NewBuiltin:
    """A builtin that has no shard."""

    builtin: Builtin
    id: int | None
    """None until a leader assigns one."""


@dataclass(frozen=True, slots=True)
class BuiltinPlan:
    """The changes that a migration makes."""

    after: BuildVersion | None
    upto: BuildVersion
    kept: tuple[ExistingBuiltin, ...] = ()
    evolved: tuple[ExistingBuiltin, ...] = ()
    replaced: tuple[ExistingBuiltin, ...] = ()
    created: tuple[NewBuiltin, ...] = ()
    given_up: tuple[BuiltinName, ...] = ()
    overtaken_by: BuildVersion | None = None
    """A newer build that migrated the store, or began to, without changing the builtins of this build."""

    @property
    def has_work(self) -> bool:
        return bool(self.evolved or self.replaced or self.created or self.given_up)


def plan(declared: Declaration, stored: StoredBuiltins) -> BuiltinPlan:
    """Plan; raise UninstructedSchemaError, or BuiltinsTooNewError if a newer build has changed a builtin."""
    newest = stored.newest
    if newest is not None and newest > declared.build:
        return _plan_under_newer(declared, stored, newest)
    selected = select(declared.instructions, stored.version, declared.build)
    kept, evolved, replaced, created = [], [], [], []
    for builtin in declared.builtins:
        mapped = stored.builtins.get(builtin.name)
        if mapped is None:
            created.append(NewBuiltin(builtin, stored.named.get(builtin.name)))
            continue
        change = ExistingBuiltin(builtin, mapped)
        match selected.get(builtin.name):
            case Mechanism.REPLACEMENT:
                replaced.append(change)
            case Mechanism.EVOLUTION:
                evolved.append(change)
            case None:
                _require_unchanged(declared, stored, change)
                kept.append(change)
    present = {builtin.name for builtin in declared.builtins}
    given_up = [
        name
        for name, mechanism in selected.items()
        if mechanism is Mechanism.REPLACEMENT and name not in present and name in {**stored.builtins, **stored.named}
    ]
    return BuiltinPlan(
        stored.version,
        declared.build,
        tuple(kept),
        tuple(evolved),
        tuple(replaced),
        tuple(created),
        tuple(given_up),
    )


def select(
    instructions: Iterable[Instruction], after: BuildVersion | None, upto: BuildVersion
) -> Mapping[BuiltinName, Mechanism]:
    """Return the mechanism of each builtin that has instructions for builds after one, up to another."""
    found: dict[BuiltinName, Mechanism] = {}
    for one in instructions:
        if (after is None or one.build > after) and one.build <= upto and found.get(one.name) != Mechanism.REPLACEMENT:
            found[one.name] = one.mechanism
    return found


def _plan_under_newer(declared: Declaration, stored: StoredBuiltins, newest: BuildVersion) -> BuiltinPlan:
    """Plan no work: an older build may go on with the builtins that a newer one did not change.

    One that has instructions of its own left may not: the newer build would follow them again, and give up data that
    were written meanwhile.
    """
    due = select(declared.instructions, stored.version, declared.build)
    kept = []
    changed = {str(name) for name in due if name in stored.builtins}
    for builtin in declared.builtins:
        mapped = stored.builtins.get(builtin.name)
        if mapped is not None and mapped.fingerprint == builtin.fingerprint:
            kept.append(ExistingBuiltin(builtin, mapped))
        else:
            changed.add(str(builtin.name))
    if changed:
        raise BuiltinsTooNewError(str(declared.build), str(newest), tuple(sorted(changed)))
    return BuiltinPlan(stored.version, declared.build, kept=tuple(kept), overtaken_by=newest)


def _require_unchanged(declared: Declaration, stored: StoredBuiltins, change: ExistingBuiltin) -> None:
    own = change.builtin.fingerprint
    if change.mapped.fingerprint != own:
        after = "no build yet" if stored.version is None else str(stored.version)
        name = str(change.builtin.name)
        raise UninstructedSchemaError(name, change.mapped.fingerprint, own, after, str(declared.build))
