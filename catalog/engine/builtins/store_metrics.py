"""The sizes of a store's collections over time, measured by upgrades and maintenance, never by commits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from catalog.engine.base.lazy_arrow import pa
from catalog.engine.shard.row_table import moment, rows_table
from catalog.engine.shard.schema import Column, Schema

if TYPE_CHECKING:
    from catalog.engine.shard.shard import Shard
    from catalog.engine.stash.stash import Stash

SCHEMA = Schema.of(
    Column(0, "measured_at", "timestamp[us, tz=UTC]", nullable=False),
    Column(1, "collection", "string", nullable=False),
    Column(2, "rows", "int64", nullable=False),
    Column(3, "bytes", "int64", nullable=False),
)


@dataclass(frozen=True, slots=True)
class StoreMetric:
    measured_at: datetime
    collection: str
    rows: int
    bytes: int


def measure(stash: Stash, shard: Shard) -> None:
    """Record the rows and bytes of every collection as the stash shows them."""
    from catalog.engine.stash.view import live_rows  # noqa: PLC0415 - upgrades and maintenance alone

    files, log = stash.view().state.files.values(), stash.log
    now_us = log.now_ms() * 1000
    names = sorted({file.collection for file in files})
    own = {name: [file for file in files if file.collection == name] for name in names}
    rows = [(now_us, name, live_rows(log, own[name]), sum(file.size for file in own[name])) for name in names]
    shard.append(SCHEMA, rows_table(SCHEMA, rows))


def read_measures(shard: Shard) -> tuple[StoreMetric, ...]:
    """Read all measurements, the oldest first."""
    rows = shard.reader(SCHEMA).snapshot().table()
    times = rows["measured_at"].cast(pa.int64()).to_pylist()
    others = (rows[name].to_pylist() for name in ("collection", "rows", "bytes"))
    return tuple(StoreMetric(moment(at), *rest) for at, *rest in zip(times, *others, strict=True))
