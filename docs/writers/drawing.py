"""Pictures as SVG: boxes, words and arrows, for light and dark screens.

A picture is one file for the site and for the code host; a media query selects its colours. Widths of words are
estimated from those of a monospaced font.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from xml.sax.saxutils import escape

STYLE = """
    text { font: 13px ui-sans-serif, system-ui, "Segoe UI", "Liberation Sans", sans-serif; fill: #24292f }
    .name { font: 600 13px ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace }
    .title { font-weight: 600 }
    .quiet { fill: #59636e; font-size: 12px }
    .box { fill: #f6f8fa; stroke: #d0d7de }
    .engine { fill: #ffffff; stroke: #afb8c1 }
    .project { fill: #ddf4ff; stroke: #54aeff }
    .good { fill: #dafbe1; stroke: #4ac26b }
    .bad { fill: #ffebe9; stroke: #ff8182 }
    .line { fill: none; stroke: #59636e; stroke-width: 1.5 }
    .tip { fill: #59636e }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .quiet { fill: #a9b1ba }
      .box { fill: #151b23; stroke: #3d444d }
      .engine { fill: #212830; stroke: #656c76 }
      .project { fill: #0c2d6b; stroke: #388bfd }
      .good { fill: #033a16; stroke: #2ea043 }
      .bad { fill: #3d1216; stroke: #da3633 }
      .line { stroke: #9198a1 }
      .tip { fill: #9198a1 }
    }
"""
NAME_WIDTH = 7.85
"""The width of one letter of a name, in pixels."""
LINE = 18
"""The height of a line of words."""


class Kind(StrEnum):
    BOX = "box"
    ENGINE = "engine"
    PROJECT = "project"
    GOOD = "good"
    BAD = "bad"


class Words(StrEnum):
    NAME = "name"
    TITLE = "title"
    PLAIN = "plain"
    QUIET = "quiet"


@dataclass(slots=True)
class Picture:
    """A picture, drawn from top to bottom; screen readers get `title` and `description`."""

    title: str
    description: str
    width: int
    _drawn: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, width: float, height: float, kind: Kind = Kind.BOX) -> None:
        self._drawn.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>')

    def words(self, x: float, y: float, text: str, kind: Words = Words.PLAIN, anchor: str = "start") -> None:
        """Draw one line of text; `y` is its middle."""
        self._drawn.append(
            f'<text class="{kind}" x="{x:g}" y="{y + 4.5:g}" text-anchor="{anchor}">{escape(text)}</text>'
        )

    def chip(self, x: float, y: float, name: str, kind: Kind) -> float:
        """Draw a name in a box; return its width."""
        width = chip_width(name)
        self.box(x, y, width, 24, kind)
        self.words(x + width / 2, y + 12, name, Words.NAME, "middle")
        return width

    def arrow(self, *points: tuple[float, float]) -> None:
        """Draw an arrow through these points."""
        (x0, y0), (x, y) = points[-2:]
        across, down = (x > x0) - (x < x0), (y > y0) - (y < y0)
        stop = (x - 7 * across, y - 7 * down)
        path = " ".join(f"{at_x:g},{at_y:g}" for at_x, at_y in (*points[:-1], stop))
        self._drawn.append(f'<polyline class="line" points="{path}"/>')
        sides = [(stop[0] + side * down * 4, stop[1] + side * across * 4) for side in (-1, 1)]
        tip = " ".join(f"{at_x:g},{at_y:g}" for at_x, at_y in ((x, y), *sides))
        self._drawn.append(f'<polygon class="tip" points="{tip}"/>')

    def svg(self, height: float) -> str:
        size = f'width="{self.width:g}" height="{height:g}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {height:g}" {size} role="img">',
            f"  <title>{escape(self.title)}</title>",
            f"  <desc>{escape(self.description)}</desc>",
            f"  <style>{STYLE}  </style>",
            *(f"  {drawn}" for drawn in self._drawn),
            "</svg>",
            "",
        ]
        return "\n".join(lines)


def chip_width(name: str) -> float:
    return len(name) * NAME_WIDTH + 18


def chip_lines(names: Sequence[str], width: float, gap: float = 6) -> list[list[str]]:
    """Divide names into lines of this width."""
    lines: list[list[str]] = [[]]
    used = 0.0
    for name in names:
        if lines[-1] and used + chip_width(name) > width:
            lines.append([])
            used = 0.0
        lines[-1].append(name)
        used += chip_width(name) + gap
    return lines
