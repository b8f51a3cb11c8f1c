"""`catalog ddl show`: a schema change, once or until it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.schema_changes import ChangeShown, error_of
from catalog.cli.store_tables import tables_to_read
from catalog.errors import UnknownChangeError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


def show(run: Invocation, *, number: int, follow: bool) -> CommandResult:
    """Show a change; with `follow`, show its progress until it is over, paused or held, and fail if it failed."""
    with tables_to_read(run.target) as tables:
        if tables is None:
            raise UnknownChangeError(number)
        change = tables.change(number)
        if follow:
            with run.screen.change_progress(lambda: ChangeShown.of(tables, tables.change(number))):
                change.wait()
        shown = ChangeShown.of(tables, change)
        return CommandResult(shown, error_of(shown) if follow else None)
