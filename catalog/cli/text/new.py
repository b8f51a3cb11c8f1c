"""`catalog new` as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from catalog.cli.commands.new import ProjectCreated


def render(data: ProjectCreated) -> Iterator[RenderableType]:
    yield f"created the project {data.name} in {data.folder}"
    yield from (f"  {file}" for file in data.written)
    yield f"\n{data.left}\n\nnext, in that folder:"
    yield from (f"  {command}" for command in data.then)
    yield "see README.md for more"
