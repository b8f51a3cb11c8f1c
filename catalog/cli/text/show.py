"""`catalog show` as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from catalog.cli.commands.show import RowsResult
from catalog.cli.text.nested_lines import compact, nested


def render(data: RowsResult) -> Iterator[RenderableType]:
    for row in data.rows:
        yield compact(row.key)
        yield from (f"  {line}" for line in nested(row.value))
    count = f"{len(data.rows):,} rows" if len(data.rows) != 1 else "1 row"
    more = ", and there are more: see --limit" if data.more else ""
    yield f"{count} of {data.collection} at version {data.version}, ts {data.ts}{more}"
