"""`catalog debug epoch` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.commands.debug_epoch import Epoch

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: Epoch) -> Iterator[RenderableType]:
    signs = {"beating": "it may still be running", "released": "it has ended", "none": "it shows no sign of life"}
    yield f"generation {data.deploy_generation}, epoch {data.epoch}"
    yield f"led by {data.holder or 'no process yet'}: {signs[data.sign]}"
