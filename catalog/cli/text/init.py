"""`catalog init` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.commands.init import InitResult
from catalog.cli.text.table import table

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: InitResult) -> Iterator[RenderableType]:
    if data.done:
        yield f"{data.store} is initialised at version {data.version}"
    elif data.exists:
        yield f"nothing to do: {data.store} exists at version {data.version}"
        return
    else:
        yield f"{data.store} would be initialised at version {data.version}; nothing was written"
    yield table(["collection"], ["rows"], ((name, f"{rows:,}") for name, rows in data.rows.items() if rows))
