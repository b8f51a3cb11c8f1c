"""`catalog ddl list`: the schema changes that are not over, or all that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.schema_changes import ChangeShown
from catalog.cli.store_tables import tables_to_read

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class ChangesListed:
    store: str
    everything: bool
    """True if changes that are over are listed too."""
    changes: tuple[ChangeShown, ...]


def list(run: Invocation, *, everything: bool) -> CommandResult:  # noqa: A001 - the name of the command
    """List changes, the oldest first."""
    with tables_to_read(run.target) as tables:
        found = () if tables is None else tables.changes(ended=everything)
        shown = tuple(ChangeShown.of(tables, change) for change in found if tables is not None)
    return CommandResult(ChangesListed(run.target.place.uri, everything, shown))
