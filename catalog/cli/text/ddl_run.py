"""`catalog ddl run` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.text.schema_change import block, stage_lines, status

if TYPE_CHECKING:
    from catalog.cli.commands.ddl_run import PlannedChange
    from catalog.cli.schema_changes import ChangeShown


def render(shown: ChangeShown) -> Iterator[str]:
    """Render a change that was left as it is."""
    yield from block(shown)


def render_result(shown: ChangeShown) -> Iterator[str]:
    """Render the end of a change; why it failed, and what to do, is told as its error."""
    if shown.failure is not None:
        yield f"{shown.id}  {shown.statement}   {status(shown)}"
    else:
        yield from block(shown)


def render_detached(shown: ChangeShown) -> Iterator[str]:
    yield f"{shown.id}  {shown.statement}   {status(shown)}"
    yield f"the next leader of the store carries it out, or `catalog ddl resume {shown.id}` does"
    yield f"`catalog ddl show {shown.id} --follow` follows it, `catalog ddl cancel {shown.id}` undoes it"


def render_plan(planned: PlannedChange) -> Iterator[str]:
    if planned.stages:
        yield f"{planned.statement} has these stages; nothing was written"
        yield from stage_lines(planned.stages)
    else:
        yield f"nothing to do: {planned.statement}"
    yield from planned.notes
