"""ALTER TABLE … RENAME TO: the item changes its name; rows and schema go by ids."""

from __future__ import annotations

from catalog.engine.schema_change.operations.context import Planning
from catalog.engine.schema_change.plan import ItemChange, ItemVerb, Plan, PutName, Stage, StageKind, publish
from catalog.engine.schema_change.statements import RenameTable
from catalog.errors.tables import TableExistsError


def plan(planning: Planning, statement: RenameTable) -> Plan:
    schema = planning.table(statement.table)
    within = "" if "." in statement.to else schema.name.rpartition(".")[0]
    to = planning.canonical(f"{within}.{statement.to}" if within else statement.to)
    if planning.table_ids(to) is not None:
        raise TableExistsError(to)
    item = ItemChange(ItemVerb.RENAME, schema.id, to, was=schema.name)
    rename = Stage(StageKind.ITEM, f"rename the item {schema.name} to {to}", table=schema.id, item=item)
    return Plan((rename, publish(f"the table is called {to}", PutName(schema.id, to))), (schema.id,))
