"""`catalog create` as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from catalog.cli.commands.create import Created


def render(data: Created) -> Iterator[RenderableType]:
    yield data.summary
    yield from (f"  {file}" for file in data.written)
    yield from (f"  {file} (removed)" for file in data.removed)
    yield "" if data.ready else "\nLeft to do:\n"
    yield data.left
    if not data.ready:
        yield f"then run: {data.then}"
