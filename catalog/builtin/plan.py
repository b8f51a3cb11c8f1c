"""What is to become of each builtin of a store under a build. Pure: from what is declared and what is stored, data.

Instructions of builds after the one that the store was migrated to, up to this one, count; of several about one
builtin, a replacement wins. A change that none of them is about is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from catalog.builtin.declared import Builtin, BuiltinName, Declared, Instruction, Mechanism
from catalog.errors import BuiltinsTooNewError, UninstructedSchemaError
from catalog.project import Build


@dataclass(frozen=True, slots=True)
class Mapped:
    """Where the data of a builtin are, and of which schema."""

    id: int
    fingerprint: str
    shard: str


@dataclass(frozen=True, slots=True)
class Stored:
    version: Build | None
    """The build that the store was last migrated to; none: no build has finished that yet."""
    begun: Build | None
    """The newest build that has begun to migrate the store, whether it finished or not."""
    builtins: Mapping[BuiltinName, Mapped]
    named: Mapping[BuiltinName, int] = field(default_factory=dict)
    """The ids of those that have no data yet."""

    @property
    def newest(self) -> Build | None:
        return max((build for build in (self.version, self.begun) if build is not None), default=None)


@dataclass(frozen=True, slots=True)
class Change:
    """A builtin that has data."""

    builtin: Builtin
    mapped: Mapped


@dataclass(frozen=True, slots=True)
class Creation:
    """A builtin that has none."""

    builtin: Builtin
    id: int | None
    """None until a leader gives it one."""


@dataclass(frozen=True, slots=True)
class Plan:
    after: Build | None
    upto: Build
    kept: tuple[Change, ...] = ()
    evolved: tuple[Change, ...] = ()
    replaced: tuple[Change, ...] = ()
    created: tuple[Creation, ...] = ()
    given_up: tuple[BuiltinName, ...] = ()
    overtaken_by: Build | None = None
    """A newer build that has migrated the store, or has begun to, and left what this one uses as it was."""

    @property
    def has_work(self) -> bool:
        return bool(self.evolved or self.replaced or self.created or self.given_up)


def plan(declared: Declared, stored: Stored) -> Plan:
    """Raises UninstructedSchemaError, or BuiltinsTooNewError if a newer build has changed what this one uses."""
    newest = stored.newest
    if newest is not None and newest > declared.build:
        return _plan_under_newer(declared, stored, newest)
    selected = select(declared.instructions, stored.version, declared.build)
    kept, evolved, replaced, created = [], [], [], []
    for builtin in declared.builtins:
        mapped = stored.builtins.get(builtin.name)
        if mapped is None:
            created.append(Creation(builtin, stored.named.get(builtin.name)))
            continue
        change = Change(builtin, mapped)
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
    return Plan(
        stored.version,
        declared.build,
        tuple(kept),
        tuple(evolved),
        tuple(replaced),
        tuple(created),
        tuple(given_up),
    )


def select(instructions: Iterable[Instruction], after: Build | None, upto: Build) -> Mapping[BuiltinName, Mechanism]:
    """The mechanism for each builtin that has instructions for builds after one, up to another."""
    found: dict[BuiltinName, Mechanism] = {}
    for one in instructions:
        if (after is None or one.build > after) and one.build <= upto and found.get(one.name) != Mechanism.REPLACEMENT:
            found[one.name] = one.mechanism
    return found


def _plan_under_newer(declared: Declared, stored: Stored, newest: Build) -> Plan:
    """An older build may go on with what a newer one left as it was, and migrates nothing.

    One that has instructions of its own left may not: the newer build would follow them again, and give up data that
    were written meanwhile.
    """
    due = select(declared.instructions, stored.version, declared.build)
    kept = []
    changed = {str(name) for name in due if name in stored.builtins}
    for builtin in declared.builtins:
        mapped = stored.builtins.get(builtin.name)
        if mapped is not None and mapped.fingerprint == builtin.fingerprint:
            kept.append(Change(builtin, mapped))
        else:
            changed.add(str(builtin.name))
    if changed:
        raise BuiltinsTooNewError(str(declared.build), str(newest), tuple(sorted(changed)))
    return Plan(stored.version, declared.build, kept=tuple(kept), overtaken_by=newest)


def _require_unchanged(declared: Declared, stored: Stored, change: Change) -> None:
    own = change.builtin.fingerprint
    if change.mapped.fingerprint != own:
        after = "no build yet" if stored.version is None else str(stored.version)
        name = str(change.builtin.name)
        raise UninstructedSchemaError(name, change.mapped.fingerprint, own, after, str(declared.build))
