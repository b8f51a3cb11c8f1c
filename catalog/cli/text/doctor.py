"""`catalog doctor` as text: for each check its grade, what was found, and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from catalog.cli.commands.doctor import DoctorResult

_STYLES: Final = {"ok": "green", "warning": "yellow", "problem": "bold red", "skipped": "dim"}


def render(data: DoctorResult) -> Iterator[RenderableType]:
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
