"""`catalog ddl list` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.text.formats import utc_ms
from catalog.cli.text.schema_change import position, stage
from catalog.cli.text.table import NONE, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from catalog.cli.commands.ddl_list import ChangesListed
    from catalog.cli.schema_changes import ChangeShown


def render(data: ChangesListed) -> Iterator[RenderableType]:
    if not data.changes:
        yield "no schema changes" if data.everything else "no schema change is under way; --all lists those of before"
        return
    yield table(
        ["id", "status", "submitted", "stage", "statement"],
        rows=[(own.id, own.status, utc_ms(own.submitted_ms), _stage(own), own.statement) for own in data.changes],
    )


def _stage(own: ChangeShown) -> str:
    return NONE if own.is_over or not own.stages else f"{position(own).removeprefix('stage ')}: {stage(own)}"
