"""`catalog debug edit` as text."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import ndiff

from rich.console import RenderableType

from catalog.cli.commands.debug_edit import Edited
from catalog.cli.text.nested_lines import compact, nested
from catalog.tools.edit import RowEdit


def render(data: Edited) -> Iterator[RenderableType]:
    if data.ts is None:
        yield f"nothing to do: {data.collection} {compact(data.key)} has this value already"
    else:
        verb = "deleted" if data.after is None else "written"
        yield f"{data.collection} {compact(data.key)} was {verb} at ts {data.ts}"


def render_plan(data: RowEdit) -> Iterator[RenderableType]:
    """A change before it is made: what goes, and what comes."""
    yield f"{data.collection} {compact(data.key)}, version {data.version}, ts {data.ts}"
    before, after = list(nested(data.before)), [] if data.after is None else list(nested(data.after))
    for line in ndiff(before, after):
        if not line.startswith("?"):
            yield line
