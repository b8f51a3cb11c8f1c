"""The page of a store's statistics: rows, files and bytes of each collection, now and over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from catalog.cli.commands.debug_stats import Stats
from catalog.cli.html.charts import ONLY, BarChart, Quantity, Trend, side_by_side, trend
from catalog.cli.html.page import Redact, Stamp, render
from catalog.cli.text.formats import brief_count, count, size

if TYPE_CHECKING:
    from catalog.engine.builtins.store_metrics import StoreMetric
    from catalog.tools.generator.shape import CollectionShape


Measurements = dict[datetime, tuple[int, int]]
"""Rows and bytes of a collection, by when they were measured."""


@dataclass(frozen=True, slots=True)
class CollectionTrends:
    """A collection over time, or all of them together."""

    name: str
    rows: Trend
    bytes: Trend
    points: tuple[tuple[datetime, int, int], ...]
    """The points of both trends, for a table: time, rows, bytes."""


@dataclass(frozen=True, slots=True)
class ShapeRow:
    name: str
    own: CollectionShape


def stats_page(stats: Stats, stamp: Stamp, redact: Redact) -> str:
    lines = stats.collections
    trends = tuple(_trends(stats.measures))
    return render(
        "stats.html",
        redact,
        stats=stats,
        lines=lines,
        rows=sum(own.rows for own in lines),
        files=sum(own.base_files + own.tail_files for own in lines),
        bytes=sum(own.size for own in lines),
        charts=tuple(_charts(stats)),
        total=trends[0] if trends else None,
        trends=trends[1:],
        shape=_shape(stats),
        stamp=stamp,
    )


def _charts(stats: Stats) -> Iterator[BarChart]:
    rows = [Quantity(own.collection, (own.rows,), brief_count(own.rows)) for own in stats.collections]
    sizes = [Quantity(own.collection, (own.size,), size(own.size)) for own in stats.collections]
    if rows:
        yield side_by_side("rows-now", "Rows", (ONLY,), rows)
        yield side_by_side("bytes-now", "Bytes", (ONLY,), sizes)


def _shape(stats: Stats) -> tuple[ShapeRow, ...]:
    return () if stats.shape is None else tuple(ShapeRow(*own) for own in sorted(stats.shape.collections.items()))


def _trends(measures: Sequence[StoreMetric]) -> Iterator[CollectionTrends]:
    """All collections together, then each; the largest of the last measurement first."""
    if not measures:
        return
    by_name: dict[str, Measurements] = defaultdict(dict)
    for own in measures:
        by_name[own.collection][own.measured_at] = own.rows, own.bytes
    times = sorted({own.measured_at for own in measures})
    span = times[0], times[-1]
    filled = {name: _filled(measured, times) for name, measured in by_name.items()}
    together = {}
    for at in times:
        there = [own[at] for own in filled.values() if at in own]
        together[at] = sum(rows for rows, _ in there), sum(own for _, own in there)
    yield _over_time("all collections", together, span, "all")
    order = sorted(filled, key=lambda name: (-filled[name][span[1]][1], name))
    for number, name in enumerate(order, 1):
        yield _over_time(name, filled[name], span, f"collection-{number}")


def _filled(measured: Measurements, times: Sequence[datetime]) -> Measurements:
    """A collection that is not measured with the others any more holds nothing."""
    began = min(measured)
    return {at: measured.get(at, (0, 0)) for at in times if at >= began}


def _over_time(name: str, measured: Measurements, span: tuple[datetime, datetime], id_: str) -> CollectionTrends:
    points = tuple((at, *own) for at, own in sorted(measured.items()))
    return CollectionTrends(
        name,
        trend(f"{id_}-rows", f"Rows of {name} over time", [(at, rows) for at, rows, _ in points], span, count),
        trend(f"{id_}-bytes", f"Bytes of {name} over time", [(at, own) for at, _, own in points], span, size),
        points,
    )
