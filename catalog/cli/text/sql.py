"""`catalog sql` as text: a table of rows, a record for each row where a table is too wide, or CSV."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from csv import writer
from dataclasses import dataclass
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from catalog.cli.answer import plain
from catalog.cli.commands.sql import QueryResult

_READABLE: Final = 16
"""The least width of a column that can still be read."""
_CELL_MAX, _FIELD_MAX = 160, 500
"""The length of a long value in a table, and in a record."""
_WIDE: Final = 1_000_000
_NULL: Final = Text("null", "dim")


def render(data: QueryResult) -> Iterator[RenderableType]:
    if data.rows:
        yield _Grid(data)
    yield counted(data)


def counted(data: QueryResult) -> str:
    """Return the number of rows, and their version and ts."""
    count = f"{len(data.rows):,} rows" if len(data.rows) != 1 else "1 row"
    more = ", and there are more: see --limit" if data.more else ""
    return f"{count} at version {data.version}, ts {data.ts}{more}"


def render_csv(data: QueryResult) -> Iterator[RenderableType]:
    """Write CSV with a heading; null is empty, and nested values are JSON."""
    written = io.StringIO()
    lines = writer(written, lineterminator="\n")
    lines.writerow([column.name for column in data.columns])
    lines.writerows([["" if value is None else _text(value) for value in row] for row in data.rows])
    yield written.getvalue().removesuffix("\n")


@dataclass(frozen=True, slots=True)
class _Grid:
    data: QueryResult

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self._table()
        needed = console.measure(table, options=options.update(max_width=_WIDE)).maximum
        if needed <= options.max_width:
            yield table
        elif options.max_width >= _READABLE * len(self.data.columns):
            yield self._table(_CELL_MAX)
        else:
            yield Group(*self._records(options.max_width))

    def _table(self, cell_max: int = 0) -> Table:
        made = Table(box=SIMPLE_HEAD, pad_edge=False)
        for number, column in enumerate(self.data.columns):
            values = [row[number] for row in self.data.rows if row[number] is not None]
            is_number = bool(values) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
            made.add_column(column.name, justify="right" if is_number else "left", overflow="fold")
        for row in self.data.rows:
            made.add_row(*(_cell(value, cell_max) for value in row))
        return made

    def _records(self, width: int) -> Iterator[RenderableType]:
        """Write one column below the other, with a rule before each row."""
        names = [column.name for column in self.data.columns]
        for number, row in enumerate(self.data.rows, 1):
            yield Text(f"─ {number:,} ".ljust(min(width, 40), "─"), "dim")
            made = Table(box=None, show_header=False, pad_edge=False)
            made.add_column(no_wrap=True)
            made.add_column(overflow="fold")
            for name, value in zip(names, row, strict=True):
                made.add_row(name, _cell(value, _FIELD_MAX))
            yield made


def _cell(value: Any, characters_max: int) -> Text:  # noqa: ANN401 - JSON
    if value is None:
        return _NULL
    text = _text(value)
    return Text(f"{text[:characters_max]}…" if 0 < characters_max < len(text) else text)


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
