"""`catalog ddl resume`: carry on a schema change that was paused, is held, or was left by its process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.schema_changes import carried_out, left_changes
from catalog.cli.store_tables import tables_with_change
from catalog.engine.schema_change.steps import RUN, ChangeStatus
from catalog.errors import ChangeStatusError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


def resume(run: Invocation, *, number: int) -> CommandResult:
    """Carry a change on in this process."""
    with tables_with_change(run.target, number) as tables:
        change = tables.change(number)
        if change.status not in {*RUN, ChangeStatus.PENDING}:
            tables.resume(number, detach=True)
        elif not left_changes(run, tables, {number})[0]:
            raise ChangeStatusError(number, "resumed", f"{change.status.name}, carried out by {change.owner}")
        return carried_out(run, tables, number)
