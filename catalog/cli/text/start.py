"""`catalog start` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.commands.start import Started
from catalog.cli.screen import Sentence

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: Started) -> Iterator[RenderableType]:
    if data.backup is not None:
        yield Sentence(f"copied to {data.backup.target} first: {data.backup.rows:,} rows")
    if data.steps:
        from catalog.cli.text.apply import steps_table  # noqa: PLC0415 - most starts take no step

        yield steps_table(data.steps)
    if data.mode == "read-only" and data.version_before not in {None, data.version}:
        yield Sentence(
            f"{data.store} can be upgraded from version {data.version_before} to {data.version}; it was left as it is"
        )
        return
    if data.version_before is None:
        happened = "initialised at"
    elif data.steps:
        happened = f"upgraded from version {data.version_before} to"
    else:
        happened = "up to date at"
    yield Sentence(
        f"{data.store} is {happened} version {data.version}"
        f" (generation {data.deploy_generation}, epoch {data.epoch}, ts {data.ts}, {data.seconds:.1f} s)"
    )
