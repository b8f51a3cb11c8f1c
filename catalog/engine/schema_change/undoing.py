"""The undo of a schema change: tables, rows and names are as before, whatever stage it had come to.

A change that names no table is undone in one commit. One that does is stopped first, so that no owner can finish it
while its item is taken back; a process that dies in between leaves it paused, to be resumed or cancelled again.
"""

from __future__ import annotations

from collections.abc import Iterable

from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.names import Names
from catalog.engine.schema_change.plan import ItemChange
from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.steps import (
    ChangeStatus,
    Owned,
    StoppedByOthersError,
    change_row,
    stop_draft,
    undo_draft,
)
from catalog.engine.schema_change.store import Draft, TablesStore
from catalog.engine.schema_change.stored_plan import stages_of
from catalog.errors.tables import ChangeOvertakenError


def undo_change(
    store: TablesStore,
    names: Names,
    number: int,
    status: ChangeStatus,
    *,
    failure: pb.Failure | None = None,
    owner: Owned | None = None,
) -> None:
    """Undo a change, and record how it ended; refused once it is visible, or if its owner is overtaken."""
    stopped: list[Owned] = []
    items: list[ItemChange] = []

    def stop_or_undo(replica: TablesReplica) -> Draft:
        items[:] = _items(change_row(replica, number))
        if not items:
            return undo_draft(replica, number, status, failure=failure, owner=owner)
        following, known = stop_draft(replica, number, owner)
        stopped[:] = [known]
        return following

    store.commit(stop_or_undo)
    if items:
        take_back(names, items)
        try:
            store.commit(lambda r: undo_draft(r, number, status, failure=failure, owner=stopped[0], is_stopped=True))
        except StoppedByOthersError as error:  # it was resumed in between
            raise ChangeOvertakenError(number, change_row(store.replica, number).owner or "nobody") from error
        take_back(names, items)  # a late owner may have changed it meanwhile; from here on such a one sees the end


def take_back(names: Names, items: Iterable[ItemChange]) -> None:
    """Take back what a change did to items of the catalog, the last first; doing it twice is doing it once."""
    for item in reversed([*items]):
        names.undo(item)


def _items(row: pb.SchemaChangeValue) -> list[ItemChange]:
    """Return the changes of items that a change may have made by now."""
    return [stage.item for stage in stages_of(row)[: row.stage + 1] if stage.item is not None]
