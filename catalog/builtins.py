"""The builtins of this repository's catalog, and how data of earlier builds become theirs.

Whoever changes a schema here adds an instruction to `MIGRATIONS` for the coming build. Instructions are never removed,
and never added to a build after a later one was released.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from catalog.builtin.declared import Builtin, BuiltinName, Declared, Instruction
from catalog.objects import OBJECT_TYPE_TABLE
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
"""Every run of a step, as `migration_event` has it, and kept when the stash no longer does."""

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
"""Which object cannot be without which."""

STORE_METRICS: Final = _table(
    "store_metrics",
    Column(0, "measured_at", _TIME, nullable=False),
    Column(1, "collection", pa.string(), nullable=False),
    Column(2, "rows", pa.int64(), nullable=False),
    Column(3, "bytes", pa.int64(), nullable=False),
)
"""Rows and bytes of each collection over time; written by upgrades and maintenance, never by ordinary commits."""

MIGRATIONS: Final[tuple[Instruction, ...]] = ()
"""`Instruction(Build(0, 3), AUDIT_EVENTS.name, Mechanism.EVOLUTION)`, and so on, in the order of builds."""

DECLARED: Final = Declared(
    Build.parse(BUILD), (MIGRATION_HISTORY, AUDIT_EVENTS, OBJECT_DEPENDENCIES, STORE_METRICS), MIGRATIONS
)
