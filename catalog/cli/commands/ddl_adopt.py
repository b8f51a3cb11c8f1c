"""`catalog ddl adopt`: carry out the schema changes that nobody carries out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.schema_changes import ChangeShown, carried_out, left_changes
from catalog.cli.store_tables import tables_to_read, tables_to_write
from catalog.errors import CatalogError, ChangeLeftError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class Adopted:
    store: str
    changes: tuple[ChangeShown, ...]
    """As this process left them."""
    others: tuple[ChangeShown, ...]
    """The changes that other processes carry out."""


def adopt(run: Invocation) -> CommandResult:
    """Carry out one change after the other, until none is left; the first failure is the error of the command."""
    with tables_to_read(run.target) as found:
        if found is None or not found.changes():
            return CommandResult(Adopted(run.target.place.uri, (), ()))
    done: list[ChangeShown] = []
    error: CatalogError | None = None
    with tables_to_write(run.target) as tables:
        left, others = left_changes(run, tables)
        while left:
            result = carried_out(run, tables, left[0].id)
            done.append(result.data)
            error = error or result.error
            if isinstance(result.error, ChangeLeftError):
                break
            left, others = left_changes(run, tables)
        living = tuple(ChangeShown.of(tables, change) for change in others)
    return CommandResult(Adopted(run.target.place.uri, tuple(done), living), error)
