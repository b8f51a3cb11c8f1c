"""`catalog debug generate` as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType


def render(data: Mapping[str, Any]) -> Iterator[RenderableType]:
    made = data["generated"]
    yield f"generated {made.uri} at version {made.version}: {made.total:,} rows"
