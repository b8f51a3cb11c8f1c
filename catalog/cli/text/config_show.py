"""`catalog config show` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.commands.config_show import ConfigListing
from catalog.cli.text.table import NONE, table

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: ConfigListing) -> Iterator[RenderableType]:
    rows = ((own.name, NONE if own.value is None else own.value, own.source) for own in data.settings)
    yield table(["setting", "value", "source"], rows=rows)
