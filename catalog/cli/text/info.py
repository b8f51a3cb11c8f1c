"""`catalog info` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.commands.info import Info
from catalog.cli.text.formats import size, utc_ms
from catalog.cli.text.table import NONE, table

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: Info) -> Iterator[RenderableType]:
    yield f"{data.store} is at version {data.version}, ts {data.ts}" + (_pending(data.pending))
    yield f"last led by {data.holder or 'no process yet'} (generation {data.deploy_generation}, epoch {data.epoch})"
    yield f"this build is {data.build}: versions {data.build_minimum} to {data.build_version}"
    if data.copy_of:
        yield f"a copy of {data.copy_of}"
    names = ["version", "step", "state", "checksum", "from", "started", "completed"]
    made = table(names, ["rows", "bytes"])
    for line in data.versions:
        made.add_row(
            str(line.version),
            line.name or NONE,
            line.state or NONE,
            line.checksum or NONE,
            NONE if line.previous is None else str(line.previous),
            NONE if line.started_ms is None else utc_ms(line.started_ms),
            NONE if line.completed_ms is None else utc_ms(line.completed_ms),
            NONE if line.rows_after is None else f"{line.rows_after:,}",
            NONE if line.bytes_after is None else size(line.bytes_after),
        )
    yield made
    for line in data.versions:
        if line.error:
            yield f"{line.name} failed: {line.error}"


def _pending(count: int) -> str:
    return "" if not count else "; 1 migration is pending" if count == 1 else f"; {count} migrations are pending"
