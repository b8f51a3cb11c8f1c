"""`catalog debug copy` as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType


def render(data: Mapping[str, Any]) -> Iterator[RenderableType]:
    own = data["copied"]
    how = " and anonymised" if data["anonymised"] else ""
    yield f"{own.source} at ts {own.ts} was copied{how} to {own.target}: {own.rows:,} rows at version {own.version}"
