"""The builtins of this repository's catalog, how data of earlier builds become theirs, and what their rows follow from.

Whoever changes a schema here adds an instruction to `MIGRATIONS` for the coming build. Instructions are never removed,
and never added to a build after a later one was released.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pyarrow as pa

from catalog.builtin import measures
from catalog.builtin.columns import Row
from catalog.builtin.declared import Builtin, BuiltinName, Declared, Instruction
from catalog.builtin.deriving import Derivation
from catalog.objects import OBJECT_TYPE_TABLE, AuditEventType, MigrationState, ObjectType
from catalog.project import Build
from catalog.shard.schema import Column, Schema
from catalog.version import BUILD

_TIME = pa.timestamp("us", tz="UTC")


def _table(name: str, *columns: Column) -> Builtin:
    return Builtin(BuiltinName("catalog", OBJECT_TYPE_TABLE, name), Schema.of(*columns))


MIGRATION_HISTORY: Final = _table(
    "migration_history",
    Column(0, "event_id", pa.int64(), nullable=False),
    Column(1, "version", pa.int64(), nullable=False),
    Column(2, "previous", pa.int64(), nullable=False),
    Column(3, "name", pa.string(), nullable=False),
    Column(4, "state", pa.string(), nullable=False),
    Column(5, "build", pa.string(), nullable=False),
    Column(6, "deploy_generation", pa.int64(), nullable=False),
    Column(7, "epoch", pa.int64(), nullable=False),
    Column(8, "started_at", _TIME, nullable=False),
    Column(9, "completed_at", _TIME),
    Column(10, "rows_before", pa.int64()),
    Column(11, "rows_after", pa.int64()),
    Column(12, "bytes_before", pa.int64()),
    Column(13, "bytes_after", pa.int64()),
    Column(14, "error", pa.string()),
)
"""Every run of a step, as `migration_event` has it."""

AUDIT_EVENTS: Final = _table(
    "audit_events",
    Column(0, "event_id", pa.int64(), nullable=False),
    Column(1, "occurred_at", _TIME),
    Column(2, "event_type", pa.string(), nullable=False),
    Column(3, "object_type", pa.string(), nullable=False),
    Column(4, "object_id", pa.string(), nullable=False),
    Column(5, "object_name", pa.string(), nullable=False),
    Column(6, "actor", pa.string(), nullable=False),
    Column(7, "reason", pa.string()),
)
"""Who did what, as `audit_log` has it."""

OBJECT_DEPENDENCIES: Final = _table(
    "object_dependencies",
    Column(0, "object_type", pa.string(), nullable=False),
    Column(1, "object_id", pa.string(), nullable=False),
    Column(2, "needs_object_type", pa.string(), nullable=False),
    Column(3, "needs_object_id", pa.string(), nullable=False),
)
"""Which object cannot be without which: what it is in, its owner, the roles that it is a member of."""

STORE_METRICS: Final = Builtin(BuiltinName("catalog", OBJECT_TYPE_TABLE, "store_metrics"), measures.SCHEMA)
"""Rows and bytes of each collection over time; written by upgrades and maintenance, never by ordinary commits."""

MIGRATIONS: Final[tuple[Instruction, ...]] = ()
"""`Instruction(Build(0, 3), AUDIT_EVENTS.name, Mechanism.EVOLUTION)`, and so on, in the order of builds."""

_NEEDED: Final = {
    "role": (("role", "member_of"),),
    "database": (("role", "owner_id"),),
    "schema": (("database", "database_id"), ("role", "owner_id")),
    "item": (("schema", "schema_id"), ("role", "owner_id")),
    "cluster": (("role", "owner_id"),),
    "cluster_replica": (("cluster", "cluster_id"), ("role", "owner_id")),
}
"""Of each type of object, which field names what it needs."""


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
    """The form that the audit log has: a role is "s2", "u1000" or "p"."""
    if isinstance(identity, int):
        return str(identity)
    kind = identity.WhichOneof("value") or ""
    return kind[:1] + ("" if kind == "public" else str(getattr(identity, kind, "")))


def _word(enum: Any, number: int) -> str:  # noqa: ANN401 - of the generated code
    """The name of a number without the name of its enum; the number itself, if a newer build gave it a meaning."""
    prefix = next(iter(enum.keys())).removesuffix("UNSPECIFIED")
    return enum.Name(number).removeprefix(prefix).lower() if number in enum.values() else str(number)


def _present(value: Any, name: str) -> int | None:  # noqa: ANN401 - as above
    return int(getattr(value, name)) if value.HasField(name) else None


def _microseconds(value: Any, name: str) -> int | None:  # noqa: ANN401 - as above
    found = _present(value, name)
    return None if found is None else found * 1000


DECLARED: Final = Declared(
    Build.parse(BUILD),
    (MIGRATION_HISTORY, AUDIT_EVENTS, OBJECT_DEPENDENCIES, STORE_METRICS),
    MIGRATIONS,
    {
        MIGRATION_HISTORY.name: Derivation({"migration_event": _migration_history}),
        AUDIT_EVENTS.name: Derivation({"audit_log": _audit_events}),
        OBJECT_DEPENDENCIES.name: Derivation({name: partial(_object_dependencies, name) for name in _NEEDED}),
    },
    STORE_METRICS.name,
)
