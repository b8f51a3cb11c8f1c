"""`catalog debug delete`: delete a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.commands.debug_edit import write
from catalog.cli.store_reader import parse_key
from catalog.tools.edit import plan_delete

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


def delete(run: Invocation, *, collection: str, key: str, protected: bool, yes: bool) -> CommandResult:
    """Show the row, ask for confirmation, and delete it."""
    return write(run, plan_delete(run.target.place, collection, parse_key(key), protected=protected), yes=yes)
