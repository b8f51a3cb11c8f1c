"""`catalog abort` as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from catalog.cli.commands.abort import Aborted


def render(data: Aborted) -> Iterator[RenderableType]:
    if not data.steps:
        yield f"nothing to do: no migration is running in {data.store}"
        return
    if data.done:
        yield f"aborted: {', '.join(data.steps)}; its process can no longer write"
    else:
        yield f"running in {data.store}: {', '.join(data.steps)}"
