"""The builtins of this repository's catalog: their schemas, the instructions that migrate them, and their derivations.

A change of a schema needs an instruction in `MIGRATIONS` for the coming build. Instructions are never removed, and
never added to a build after a later one was released.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from catalog.authoring import (
    BuildVersion,
    Builtin,
    BuiltinName,
    Column,
    Declaration,
    Derivation,
    Instruction,
    Row,
    Schema,
    store_metrics,
)
from catalog.objects import OBJECT_TYPE_TABLE, AuditEventType, MigrationState, ObjectType
from catalog.version import BUILD

_TIME: Final = "timestamp[us, tz=UTC]"


def _table(name: str, *columns: Column) -> Builtin:
    return Builtin(BuiltinName("catalog", OBJECT_TYPE_TABLE, name), Schema.of(*columns))


MIGRATION_HISTORY: Final = _table(
    "migration_history",
    Column(0, "event_id", "int64", nullable=False),
    Column(1, "version", "int64", nullable=False),
    Column(2, "previous", "int64", nullable=False),
    Column(3, "name", "string", nullable=False),
    Column(4, "state", "string", nullable=False),
    Column(5, "build", "string", nullable=False),
    Column(6, "deploy_generation", "int64", nullable=False),
    Column(7, "epoch", "int64", nullable=False),
    Column(8, "started_at", _TIME, nullable=False),
    Column(9, "completed_at", _TIME),
    Column(10, "rows_before", "int64"),
    Column(11, "rows_after", "int64"),
    Column(12, "bytes_before", "int64"),
    Column(13, "bytes_after", "int64"),
    Column(14, "error", "string"),
)
"""Every run of a step, from `migration_event`."""

AUDIT_EVENTS: Final = _table(
    "audit_events",
    Column(0, "event_id", "int64", nullable=False),
    Column(1, "occurred_at", _TIME),
    Column(2, "event_type", "string", nullable=False),
    Column(3, "object_type", "string", nullable=False),
    Column(4, "object_id", "string", nullable=False),
    Column(5, "object_name", "string", nullable=False),
    Column(6, "actor", "string", nullable=False),
    Column(7, "reason", "string"),
)
"""Actions of users, from `audit_log`."""

OBJECT_DEPENDENCIES: Final = _table(
    "object_dependencies",
    Column(0, "object_type", "string", nullable=False),
    Column(1, "object_id", "string", nullable=False),
    Column(2, "needs_object_type", "string", nullable=False),
    Column(3, "needs_object_id", "string", nullable=False),
)
"""The objects that each object needs: its container, its owner, the roles that it is a member of."""

STORE_METRICS: Final = Builtin(BuiltinName("catalog", OBJECT_TYPE_TABLE, "store_metrics"), store_metrics.SCHEMA)
"""Rows and bytes of each collection over time; written by upgrades and maintenance, never by ordinary commits."""

MIGRATIONS: Final[tuple[Instruction, ...]] = ()
"""`Instruction(BuildVersion(0, 3), AUDIT_EVENTS.name, Mechanism.EVOLUTION)`, and so on, in the order of builds."""

_NEEDED: Final = {
    "role": (("role", "member_of"),),
    "database": (("role", "owner_id"),),
    "schema": (("database", "database_id"), ("role", "owner_id")),
    "item": (("schema", "schema_id"), ("role", "owner_id")),
    "cluster": (("role", "owner_id"),),
    "cluster_replica": (("cluster", "cluster_id"), ("role", "owner_id")),
}
"""The fields of each type of object that name an object it needs."""


def _migration_history(key: Any, value: Any) -> Iterator[Row]:  # noqa: ANN401 - messages of the stash
    counts = (_present(value, name) for name in ("rows_before", "rows_after", "bytes_before", "bytes_after"))
    yield (
        key.id,
        value.version,
        value.previous,
        value.name,
        _word(MigrationState, value.state),
        value.build,
        value.deploy_generation,
        value.epoch,
        value.started_ms * 1000,
        _microseconds(value, "completed_ms"),
        *counts,
        value.error or None,
    )


def _audit_events(key: Any, value: Any) -> Iterator[Row]:  # noqa: ANN401 - as above
    yield (
        key.id,
        _microseconds(value, "occurred_at_ms"),
        _word(AuditEventType, value.event_type),
        _word(ObjectType, value.object_type),
        value.object_id,
        value.object_name,
        value.actor,
        value.reason or None,
    )


def _object_dependencies(name: str, key: Any, value: Any) -> Iterator[Row]:  # noqa: ANN401 - as above
    own = name, _id(key.id)
    for target, field in _NEEDED[name]:
        if field == "member_of":
            yield from ((*own, target, _id(role)) for role in value.member_of)
        elif field != "database_id" or value.HasField(field):
            yield (*own, target, _id(getattr(value, field)))


def _id(identity: Any) -> str:  # noqa: ANN401 - a number, or the id of a role
    """Return an id in the form of the audit log: a role is "s2", "u1000" or "p"."""
    if isinstance(identity, int):
        return str(identity)
    kind = identity.WhichOneof("value") or ""
    return kind[:1] + ("" if kind == "public" else str(getattr(identity, kind, "")))


def _word(enum: Any, number: int) -> str:  # noqa: ANN401 - of the generated code
    """Return the name of an enum value without its prefix, or the number if this build has no name for it."""
    prefix = next(iter(enum.keys())).removesuffix("UNSPECIFIED")
    return enum.Name(number).removeprefix(prefix).lower() if number in enum.values() else str(number)


def _present(value: Any, name: str) -> int | None:  # noqa: ANN401 - as above
    return int(getattr(value, name)) if value.HasField(name) else None


def _microseconds(value: Any, name: str) -> int | None:  # noqa: ANN401 - as above
    found = _present(value, name)
    return None if found is None else found * 1000


DECLARED: Final = Declaration(
    BuildVersion.parse(BUILD),
    (MIGRATION_HISTORY, AUDIT_EVENTS, OBJECT_DEPENDENCIES, STORE_METRICS),
    MIGRATIONS,
    {
        MIGRATION_HISTORY.name: Derivation({"migration_event": _migration_history}),
        AUDIT_EVENTS.name: Derivation({"audit_log": _audit_events}),
        OBJECT_DEPENDENCIES.name: Derivation({name: partial(_object_dependencies, name) for name in _NEEDED}),
    },
    STORE_METRICS.name,
)
