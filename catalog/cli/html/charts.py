"""Charts as geometry that templates draw as SVG, each with the same content as text.

Widths and heights are in percent, so that a chart is as wide as its place while its texts keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from catalog.cli.text.formats import count, plural, utc

_BARS_MAX = 12
"""The number of bars of a chart, the largest ones; tables have the rest."""
_DOTS_MAX = 40
"""Trends with more points are drawn without dots."""
_DATES_ABOVE_S = 2 * 24 * 3600
"""A longer span is labelled with days alone."""
_TIMES_FROM = 10
"""Growth above this factor is not written in percent."""
_LABEL_CHARACTERS_MAX = 20
"""The length of a label that fits beside two sizes on a narrow screen; tables have the whole name."""
_TEXT_PX, _BAR_PX, _SPACE_PX, _GAP_PX = 18, 7, 3, 14
_STEPS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""The values at which an axis may end, times a power of ten."""


class Tone(StrEnum):
    STRONG = "strong"
    QUIET = "quiet"


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    tone: Tone


BEFORE, AFTER = Series("before", Tone.QUIET), Series("after", Tone.STRONG)
ONLY = Series("", Tone.STRONG)
"""Of a chart that needs no legend."""


@dataclass(frozen=True, slots=True)
class Bar:
    tone: Tone
    y: int
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class BarRow:
    label: str
    told: str
    y: int
    """The base line of its texts; bars are below."""
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class BarChart:
    id: str
    title: str
    series: tuple[Series, ...]
    rows: tuple[BarRow, ...]
    more: str
    """A note about the bars that are not drawn; empty if all are."""
    bar_px: int = _BAR_PX

    @property
    def height_px(self) -> int:
        return max((bar.y + _BAR_PX for row in self.rows for bar in row.bars), default=0) + 1

    @property
    def legend(self) -> tuple[Series, ...]:
        return tuple(own for own in self.series if own.name)

    @property
    def summary(self) -> str:
        names = f"{' and '.join(own.name for own in self.legend)}. " if self.legend else ""
        return names + "; ".join(f"{row.label}: {row.told}" for row in self.rows)


@dataclass(frozen=True, slots=True)
class Quantity:
    """The content of one row of a chart: a number for each series."""

    label: str
    values: tuple[float, ...]
    told: str


def side_by_side(id_: str, title: str, series: Sequence[Series], shown: Sequence[Quantity]) -> BarChart:
    """A bar per series, each from the left; the largest first."""
    drawn = sorted(shown, key=lambda own: -max(own.values))[:_BARS_MAX]
    longest = max((value for own in drawn for value in own.values), default=0) or 1
    rows, y = [], 0
    for own in drawn:
        tops = [y + _TEXT_PX + number * (_BAR_PX + _SPACE_PX) for number in range(len(series))]
        drawn_bars = zip(series, own.values, tops, strict=True)
        bars = tuple(Bar(kind.tone, top, 0.0, _percent(value, longest)) for kind, value, top in drawn_bars)
        rows.append(BarRow(_short(own.label), own.told, y + _TEXT_PX - 5, bars))
        y = tops[-1] + _BAR_PX + _GAP_PX
    return BarChart(id_, title, tuple(series), tuple(rows), _more(shown))


def end_to_end(id_: str, title: str, series: Sequence[Series], shown: Sequence[Quantity]) -> BarChart:
    """One bar that is made of a part per series, in the order given."""
    longest = max((sum(own.values) for own in shown), default=0) or 1
    rows = []
    for number, own in enumerate(shown):
        y, start, bars = number * (_TEXT_PX + _BAR_PX + _GAP_PX), 0.0, []
        for kind, value in zip(series, own.values, strict=True):
            bars.append(Bar(kind.tone, y + _TEXT_PX, start, _percent(value, longest)))
            start += bars[-1].width
        rows.append(BarRow(_short(own.label), own.told, y + _TEXT_PX - 5, tuple(bars)))
    return BarChart(id_, title, tuple(series), tuple(rows), "")


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    told: str


@dataclass(frozen=True, slots=True)
class Trend:
    """A quantity over time, above a zero line."""

    id: str
    title: str
    dots: tuple[Dot, ...]
    line: str
    area: str
    """Both as the `d` of a path in a square of 100."""
    top: str
    """The value at the upper end of the axis."""
    first: str
    last: str
    """The two ends of the axis of time."""
    latest: str
    change: str
    """Since the first; empty where that says nothing."""

    @property
    def has_dots(self) -> bool:
        return len(self.dots) <= _DOTS_MAX

    @property
    def summary(self) -> str:
        if len(self.dots) == 1:
            return f"Measured once, {self.dots[0].told}"
        change = f" ({self.change})" if self.change else ""
        return f"{plural(len(self.dots), 'measurement')}: {self.dots[0].told}, to {self.dots[-1].told}{change}"


def trend(
    id_: str,
    title: str,
    points: Sequence[tuple[datetime, int]],
    span: tuple[datetime, datetime],
    tell: Callable[[int], str] = count,
) -> Trend:
    """At least one point, in the order of time, within a span that charts side by side share."""
    began, ended = span
    seconds = (ended - began).total_seconds()
    top = _axis_end(max(value for _, value in points))
    dots = tuple(
        Dot(
            round(100 * (at - began).total_seconds() / seconds, 3) if seconds else 100.0,
            round(100 - 100 * value / top, 3),
            f"{utc(at)}: {tell(value)}",
        )
        for at, value in points
    )
    line = "M" + "L".join(f"{dot.x:g} {dot.y:g}" for dot in dots)
    area = f"{line}L{dots[-1].x:g} 100L{dots[0].x:g} 100Z"
    first, last = points[0][1], points[-1][1]
    change = _grown(first, last) if len(points) > 1 else ""
    characters = len("2026-11-17") if seconds > _DATES_ABOVE_S else len("2026-11-17 03:04")
    ends = utc(began)[:characters], utc(ended)[:characters]
    return Trend(id_, title, dots, line, area, tell(top), *ends, tell(last), change)


def part_told(part: str, whole: str) -> str:
    return whole if part == whole else f"{part} of {whole}"


def _percent(value: float, whole: float) -> float:
    return round(100 * value / whole, 3)


def _grown(first: int, last: int) -> str:
    if first == last:
        return "unchanged"
    if not first:
        return ""
    return (
        f"{last / first:,.0f}-fold"
        if last >= _TIMES_FROM * first
        else f"{(last - first) / first:+.1%}".replace("%", " %")
    )


def _axis_end(highest: int) -> int:
    """The next number above that reads well."""
    if highest <= 1:
        return 1
    power = int("1" + "0" * (len(str(highest)) - 1))
    return next(math.ceil(step * power) for step in _STEPS if step * power >= highest)


def _short(label: str) -> str:
    return label if len(label) <= _LABEL_CHARACTERS_MAX else f"{label[: _LABEL_CHARACTERS_MAX - 1]}…"


def _more(shown: Sequence[Quantity]) -> str:
    left = len(shown) - _BARS_MAX
    return f"and {plural(left, 'smaller one')}" if left > 0 else ""
