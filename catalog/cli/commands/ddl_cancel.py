"""`catalog ddl cancel`: undo a schema change that is not visible yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.schema_changes import ChangeShown
from catalog.cli.store_tables import tables_with_change
from catalog.errors import ChangeStatusError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


def cancel(run: Invocation, *, number: int) -> CommandResult:
    """Undo a change in one commit, whoever carries it out."""
    with tables_with_change(run.target, number) as tables:
        change = tables.change(number)
        if change.is_over:
            raise ChangeStatusError(number, "cancelled", change.status.name)
        tables.cancel(number)
        return CommandResult(ChangeShown.of(tables, tables.change(number)))
