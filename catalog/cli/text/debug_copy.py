"""`catalog debug copy` as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType


def render(data: Mapping[str, Any]) -> Iterator[RenderableType]:
    own = data["copied"]
    how = " and anonymised" if data["anonymised"] else ""
    yield f"{own.source} at ts {own.ts} was copied{how} to {own.target}: {own.rows:,} rows at version {own.version}"
    if own.tables:
        yield f"{_tables(own.tables)} at ts {own.tables_ts} of the tables log came along"
    if own.tables_left_out:
        why = ": values in tables are not anonymised" if data["anonymised"] else ""
        left_out = f"{_tables(own.tables_left_out)} {'was' if own.tables_left_out == 1 else 'were'} left out"
        yield f"{left_out}{why}; the items that name tables are there"


def _tables(count: int) -> str:
    return f"{count:,} table{'' if count == 1 else 's'}"
