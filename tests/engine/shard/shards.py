"""Shards for tests, and short words for what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from catalog.engine.base.fence import Fence
from catalog.engine.log.protocol import FaultHook, no_fault
from catalog.engine.shard.reader import ShardSnapshot
from catalog.engine.shard.schema import DIFF, Column, Schema, SchemaId
from catalog.engine.shard.shard import Ok, Shard
from tests.engine.log.places import Place

FENCE = Fence(1, 1)
ID = Column(0, "id", pa.int64(), nullable=False)
NAME = Column(1, "name", pa.string())
SIZE = Column(2, "size", pa.int64())
FIRST = Schema.of(ID, NAME, SIZE)


def made(place: Place, schema: Schema | None = FIRST, reached: FaultHook = no_fault) -> Shard:
    shard = Shard.create(place.open(), FENCE)
    if schema is not None:
        assert shard.compare_and_evolve_schema(None, schema) == Ok(SchemaId(0))
    return Shard.open(place.open(reached), FENCE)


def evolve(shard: Shard, schema: Schema) -> None:
    latest = shard.latest()
    expected = None if latest is None else latest.id
    assert shard.compare_and_evolve_schema(expected, schema) == Ok(SchemaId(0 if expected is None else expected + 1))


def table(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    fields = [pa.field(column.name, column.type, column.nullable) for column in schema.columns]
    return pa.Table.from_pylist(list(rows), schema=pa.schema(fields))


def append(shard: Shard, schema: Schema, *rows: tuple[Any, ...], diff: int = 1) -> int:
    """Rows as tuples in the order of the schema's columns."""
    names = [column.name for column in schema.columns]
    return shard.append(schema, table(schema, [dict(zip(names, row, strict=True)) for row in rows]), [diff] * len(rows))


def rows(found: ShardSnapshot | pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples, each as often as its diff says; negative ones are not rows."""
    own = found.table() if isinstance(found, ShardSnapshot) else found
    assert own.schema.names[-1] == DIFF
    assert all(row[DIFF] > 0 for row in own.to_pylist())
    return [tuple(row.values())[:-1] for row in own.to_pylist() for _ in range(row[DIFF])]


def live_rows(shard: Shard, schema: Schema, as_of: int | None = None) -> list[tuple[Any, ...]]:
    return rows(shard.reader(schema).snapshot(as_of))
