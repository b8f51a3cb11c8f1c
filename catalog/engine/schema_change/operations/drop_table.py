"""DROP TABLE: it refuses rows, then its item goes, then its rows and its schema."""

from __future__ import annotations

from catalog.engine.schema_change.operations.context import Planning
from catalog.engine.schema_change.plan import (
    ItemChange,
    ItemVerb,
    Plan,
    PutState,
    RemoveTable,
    Stage,
    StageKind,
    publish,
)
from catalog.engine.schema_change.schema import TableState
from catalog.engine.schema_change.statements import DropTable
from catalog.errors.tables import NeededElsewhereError, UnknownTableError


def plan(planning: Planning, statement: DropTable) -> Plan:
    try:
        schema = planning.table(statement.table)
    except UnknownTableError:
        if statement.if_exists:
            return Plan((), (), (f"there is no table {statement.table}",))
        raise
    needing = [f"{key.name} of {child.name}" for child, key in planning.referring(schema.id) if child.id != schema.id]
    if needing:
        raise NeededElsewhereError(schema.name, "the table", tuple(needing))
    item = ItemChange(ItemVerb.DELETE, schema.id, schema.name)
    return Plan(
        (
            Stage(StageKind.EDIT, f"{schema.name} refuses rows", (PutState(schema.id, TableState.CREATED),)),
            Stage(StageKind.ITEM, f"remove the item {schema.name}", table=schema.id, item=item, is_visible=True),
            publish(f"the rows of {schema.name} are gone", RemoveTable(schema.id)),
        ),
        (schema.id,),
    )
