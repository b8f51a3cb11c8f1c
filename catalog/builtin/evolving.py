"""The schemas of shards of builtins: registering one, or looking whether it could be registered.

A shard knows no fence, so whoever registers looks between reading the latest schema and following it whether it still
leads: a newer leader's schema is then either seen, or follows.
"""

from __future__ import annotations

from collections.abc import Callable

from catalog.builtin.declared import Builtin, fingerprint
from catalog.builtin.plan import Change
from catalog.errors import BuiltinOvertakenError, UnfitEvolutionError
from catalog.shard.evolution import Incompatible
from catalog.shard.sequence import Registered
from catalog.shard.shard import Ok, Shard


def evolve(shard: Shard, change: Change, require_lead: Callable[[], None]) -> None:
    """Register the schema of a builtin; halt if somebody else has registered one that it cannot follow."""
    while True:
        latest = shard.latest()
        require_lead()
        if latest is not None and latest.schema == change.builtin.schema:
            return
        require_compatible(latest, change)
        expected = None if latest is None else latest.id
        if isinstance(shard.compare_and_evolve_schema(expected, change.builtin.schema), Ok):
            return


def require_compatible(latest: Registered | None, change: Change) -> None:
    """Refuse what cannot follow: an error of the instruction, unless the schema there is not the recorded one."""
    reason = None if latest is None else latest.migration_to(change.builtin.schema)
    if not isinstance(reason, Incompatible):
        return
    name = str(change.builtin.name)
    if latest is not None and fingerprint(latest.schema) == change.mapped.fingerprint:
        raise UnfitEvolutionError(name, reason.field, reason.why)
    raise BuiltinOvertakenError(name, change.mapped.shard, reason.why)


def adopt(shard: Shard, builtin: Builtin, shard_id: str) -> None:
    """Give a new shard its schema, whoever of this build and generation made it."""
    if not isinstance(shard.compare_and_evolve_schema(None, builtin.schema), Ok):
        raise BuiltinOvertakenError(str(builtin.name), shard_id, "there is another schema already")
