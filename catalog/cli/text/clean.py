"""`catalog clean` as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from catalog.cli.commands.clean import Cleaned
from catalog.cli.text.formats import size


def render(data: Cleaned) -> Iterator[RenderableType]:
    verb = "was removed" if data.done else "would be removed"
    yield f"{data.store} {verb}: {data.files:,} files, {size(data.size)}"
    if data.unfenced is not None:
        yield f"its leader could not be fenced, and may leave files behind: {data.unfenced}"
    for path in data.left:
        yield f"left alone, because it is not part of the store: {path}"
