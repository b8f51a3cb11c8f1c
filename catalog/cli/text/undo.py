"""`catalog undo` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.commands.undo import Undone

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: Undone) -> Iterator[RenderableType]:
    if not data.steps:
        yield f"nothing to do: {data.store} is at version {data.version}"
        return
    if data.done:
        yield f"undone: {', '.join(data.steps)}; {data.store} is at version {data.version} again"
    else:
        yield f"{data.store} will go back from version {data.version_before} to {data.version}: {', '.join(data.steps)}"
