"""The sizes of collections over time, as a sparkline each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from catalog.cli.text.formats import size

if TYPE_CHECKING:
    from catalog.engine.builtins.store_metrics import StoreMetric

_LEVELS = "▁▂▃▄▅▆▇█"
_WIDTH = 24


def measured(measures: Sequence[StoreMetric]) -> Iterator[RenderableType]:
    """Draw the rows and bytes of each collection from the first measurement to the last."""
    times = sorted({own.measured_at for own in measures})
    if len(times) < 2:  # noqa: PLR2004 - one point is no line
        return
    yield f"measured {len(times)} times, from {times[0]:%Y-%m-%d %H:%M} to {times[-1]:%Y-%m-%d %H:%M} UTC"
    made = Table("collection", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in ("rows then", "now", "", "bytes then", "now", ""):
        made.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name in sorted({own.collection for own in measures}):
        found = {own.measured_at: own for own in measures if own.collection == name}
        rows = [found[time].rows if time in found else 0 for time in times]
        sizes = [found[time].bytes if time in found else 0 for time in times]
        counts = f"{rows[0]:,}", f"{rows[-1]:,}", sparkline(rows)
        made.add_row(name, *counts, size(sizes[0]), size(sizes[-1]), sparkline(sizes))
    yield made


def sparkline(values: Sequence[int], width: int = _WIDTH) -> str:
    """Draw numbers as columns; if there are too many, the greatest of each interval."""
    count = min(width, len(values))
    bounds = [len(values) * place // count for place in range(count + 1)] if count else []
    drawn = [max(values[start:end]) for start, end in pairwise(bounds)]
    low, span = min(drawn, default=0), max(drawn, default=0) - min(drawn, default=0)
    return "".join(_LEVELS[(value - low) * (len(_LEVELS) - 1) // span if span else 0] for value in drawn)
