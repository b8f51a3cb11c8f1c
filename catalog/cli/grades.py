"""What was examined, for people: a mark, what was found, and what to do. Builds it; `render` prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from catalog.cli.answers import Examinations

_STYLES: Final = {"ok": "green", "warning": "yellow", "problem": "bold red", "skipped": "dim"}


def examinations(data: Examinations) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 2))
    for _ in range(2):
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for line in data.lines:
        told = f"{line.found}\nnext: {line.next}" if line.next else line.found
        grid.add_row(Text(line.grade, style=_STYLES[line.grade]), line.name, told)
    yield grid
    counts = Counter(line.grade for line in data.lines)
    said = [f"{counts[grade]} {grade}{'' if counts[grade] == 1 else 's'}" for grade in ("problem", "warning")]
    where = f"this machine and {data.store}" if data.store else "this machine; no store was examined"
    if not counts["problem"] and not counts["warning"]:
        yield f"nothing is wrong with {where}"
    else:
        yield f"{' and '.join(own for own in said if not own.startswith('0'))}: {where}"
