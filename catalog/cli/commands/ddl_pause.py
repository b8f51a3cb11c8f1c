"""`catalog ddl pause`: stop a schema change after its present step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.schema_changes import ChangeShown
from catalog.cli.store_tables import tables_with_change

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


def pause(run: Invocation, *, number: int) -> CommandResult:
    """Pause a change; its process stops after the step that it is in."""
    with tables_with_change(run.target, number) as tables:
        tables.pause(number)
        return CommandResult(ChangeShown.of(tables, tables.change(number)))
