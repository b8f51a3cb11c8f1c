"""How large the collections of a store are over time: measured by upgrades and maintenance, never by commits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from catalog.builtin.columns import moment, rows_table
from catalog.shard.schema import Column, Schema
from catalog.shard.shard import Shard
from catalog.stash.stash import Stash

SCHEMA = Schema.of(
    Column(0, "measured_at", pa.timestamp("us", tz="UTC"), nullable=False),
    Column(1, "collection", pa.string(), nullable=False),
    Column(2, "rows", pa.int64(), nullable=False),
    Column(3, "bytes", pa.int64(), nullable=False),
)


@dataclass(frozen=True, slots=True)
class Measure:
    measured_at: datetime
    collection: str
    rows: int
    bytes: int


def measure(stash: Stash, shard: Shard) -> None:
    """Record the rows and bytes of every collection as the stash shows them."""
    from catalog.engine.parts import live_rows  # noqa: PLC0415 - upgrades and maintenance alone

    files, log = stash.view().state.files.values(), stash.head.log
    now_us = log.now_ms() * 1000
    names = sorted({file.collection for file in files})
    own = {name: [file for file in files if file.collection == name] for name in names}
    rows = [(now_us, name, live_rows(log, own[name]), sum(file.size for file in own[name])) for name in names]
    shard.append(SCHEMA, rows_table(SCHEMA, rows))


def read_measures(shard: Shard) -> tuple[Measure, ...]:
    """All that were recorded, the oldest first."""
    rows = shard.reader(SCHEMA).snapshot().table()
    times = rows["measured_at"].cast(pa.int64()).to_pylist()
    others = (rows[name].to_pylist() for name in ("collection", "rows", "bytes"))
    return tuple(Measure(moment(at), *rest) for at, *rest in zip(times, *others, strict=True))
