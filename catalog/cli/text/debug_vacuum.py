"""`catalog debug vacuum` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.commands.debug_vacuum import Vacuumed
from catalog.cli.text.formats import size

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: Vacuumed) -> Iterator[RenderableType]:
    verb = "deleted" if data.done else "would be deleted"
    yield f"{data.files:,} files with {size(data.size)} {verb}; {data.store} is readable from ts {data.frontier}"
