"""Tables that several commands have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.table import Table

NONE: Final = "-"
"""Stands where there is nothing to show."""
_GAP: Final = "   "


class TextTable:
    """A table with columns of text and, after them, columns of numbers."""

    def __init__(self, names: Sequence[str], numbers: Sequence[str] = ()) -> None:
        self._names, self._numbers = tuple(names), tuple(numbers)
        self._rows: list[tuple[str, ...]] = []

    def add_row(self, *cells: str) -> None:
        self._rows.append(cells)

    def plain(self, width_max: int) -> str | None:
        """Return the table as rich prints it into a file; none if a line must be broken, or has other characters."""
        lines = [(*self._names, *self._numbers), *self._rows]
        if not all(cell.isascii() and cell.isprintable() for line in lines for cell in line):
            return None
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        whole = sum(widths) + len(_GAP) * (len(widths) - 1)
        if whole + 2 > width_max:
            return None
        head, *rows = (f" {_GAP.join(self._aligned(line, widths))} \n" for line in lines)
        edge = " " * (whole + 2) + "\n"
        return "".join([edge, head, f" {'─' * whole} \n", *rows, edge])

    def _aligned(self, line: tuple[str, ...], widths: list[int]) -> Iterable[str]:
        texts = len(self._names)
        for place, (cell, width) in enumerate(zip(line, widths, strict=True)):
            yield cell.ljust(width) if place < texts else cell.rjust(width)

    def __rich__(self) -> Table:
        """Return the table in rich's terms, for a terminal."""
        from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - into a file it is only text
        from rich.table import Column, Table  # noqa: PLC0415

        made = Table(*(Column(name, overflow="fold") for name in self._names), box=SIMPLE_HEAD, pad_edge=False)
        for name in self._numbers:
            made.add_column(name, justify="right")
        for row in self._rows:
            made.add_row(*row)
        return made


def table(names: Sequence[str], numbers: Sequence[str] = (), rows: Iterable[Sequence[object]] = ()) -> TextTable:
    """Make a table with columns of text and, after them, columns of numbers."""
    made = TextTable(names, numbers)
    for row in rows:
        made.add_row(*map(str, row))
    return made
