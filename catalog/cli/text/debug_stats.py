"""`catalog debug stats` as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.answer import plain
from catalog.cli.commands.debug_stats import Stats
from catalog.cli.text.formats import size
from catalog.cli.text.sparkline import measured
from catalog.cli.text.table import table

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: Stats) -> Iterator[RenderableType]:
    yield f"{data.store} is at version {data.version}, ts {data.ts}; readable from ts {data.frontier}"
    made = table(["collection"], ["rows", "base files", "tail files", "tail rows", "bytes"])
    for own in data.collections:
        counts = (own.rows, own.base_files, own.tail_files, own.tail_rows)
        made.add_row(own.collection, *(f"{count:,}" for count in counts), size(own.size))
    yield made
    rows, bytes_ = sum(own.rows for own in data.collections), sum(own.size for own in data.collections)
    yield f"{rows:,} rows, {size(bytes_)}"
    if data.tables:
        made = table(["table"], ["rows", "indexes", "files", "bytes"])
        for one in data.tables:
            made.add_row(one.name, f"{one.rows:,}", f"{one.indexes:,}", f"{one.files:,}", size(one.size))
        yield made
    yield from measured(data.measures)
    if data.shape is not None:
        yield json.dumps(plain(data.shape))
    if data.page is not None:
        yield f"the page was written to {data.page}"
