"""The schemas of shards of builtins: registering one, or looking whether it could be registered.

A shard knows no fence, so a process checks between reading the latest schema and registering the next that it still
leads: a newer leader's schema is then either seen, or follows.
"""

from __future__ import annotations

from collections.abc import Callable

from catalog.engine.builtins.declaration import Builtin, fingerprint
from catalog.engine.builtins.plan import ExistingBuiltin
from catalog.engine.shard.schema_registry import RegisteredSchema
from catalog.engine.shard.schema_rules import Incompatible
from catalog.engine.shard.shard import Ok, Shard
from catalog.errors import BuiltinOvertakenError, UnfitEvolutionError


def evolve(shard: Shard, change: ExistingBuiltin, require_lead: Callable[[], None]) -> None:
    """Register the schema of a builtin; raise if another process has registered one that it cannot follow."""
    while True:
        latest = shard.latest()
        require_lead()
        if latest is not None and latest.schema == change.builtin.schema:
            return
        require_compatible(latest, change)
        expected = None if latest is None else latest.id
        if isinstance(shard.compare_and_evolve_schema(expected, change.builtin.schema), Ok):
            return


def require_compatible(latest: RegisteredSchema | None, change: ExistingBuiltin) -> None:
    """Refuse what cannot follow: an error of the instruction, unless the schema there is not the recorded one."""
    reason = None if latest is None else latest.migration_to(change.builtin.schema)
    if not isinstance(reason, Incompatible):
        return
    name = str(change.builtin.name)
    if latest is not None and fingerprint(latest.schema) == change.mapped.fingerprint:
        raise UnfitEvolutionError(name, reason.field, reason.why)
    raise BuiltinOvertakenError(name, change.mapped.shard, reason.why)


def adopt(shard: Shard, builtin: Builtin, shard_id: str) -> None:
    """Register the schema of a new shard, made by any process of this build and generation."""
    if not isinstance(shard.compare_and_evolve_schema(None, builtin.schema), Ok):
        raise BuiltinOvertakenError(str(builtin.name), shard_id, "there is another schema already")
