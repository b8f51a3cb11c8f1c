"""`catalog debug compact` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.commands.debug_compact import Compacted

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: Compacted) -> Iterator[RenderableType]:
    if data.files_after == data.files_before:
        yield f"nothing to do: {data.store} has {data.files_before:,} files"
    else:
        yield f"{data.files_before:,} files became {data.files_after:,}: {', '.join(data.collections)}"
