"""`catalog tables` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.text.formats import count, plural, size
from catalog.cli.text.table import NONE, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from catalog.cli.commands.table_show import RowCount
    from catalog.cli.commands.tables import TablesListed


def render(data: TablesListed) -> Iterator[RenderableType]:
    if not data.tables:
        yield f"{data.store} has no tables"
        yield '`catalog ddl run "CREATE TABLE name (id BIGINT, PRIMARY KEY (id))"` creates one'
        return
    made = table(["table"], ["columns", "indexes", "rows", "bytes", "change"])
    for own in data.tables:
        numbers = (str(own.columns), str(own.indexes), row_count(own.rows), size(own.bytes))
        made.add_row(own.name, *numbers, NONE if own.change is None else str(own.change))
    yield made
    yield f"{plural(len(data.tables), 'table')} at ts {data.ts}"


def row_count(rows: RowCount) -> str:
    """Format a number of rows; of a large table with changes on top, only how many are stored is known."""
    return count(rows.number) if rows.is_exact else f"up to {count(rows.number)}"
