"""DROP COLUMN: its id is never used again; its bytes go when a row is next written."""

from __future__ import annotations

from catalog.engine.schema_change.operations.context import Planning
from catalog.engine.schema_change.plan import DropColumn, DropElement, Edit, Plan, publish
from catalog.engine.schema_change.schema import ElementKind, TableColumn, TableSchema
from catalog.engine.schema_change.statements import DropColumns
from catalog.errors.tables import NeededElsewhereError, RefusedChangeError, UnknownColumnError


def plan(planning: Planning, statement: DropColumns) -> Plan:
    schema = planning.table(statement.table)
    edits: list[Edit] = []
    dropped: list[TableColumn] = []
    for name in dict.fromkeys(statement.columns):
        try:
            column = schema.column(name)
        except UnknownColumnError:
            if statement.if_exists:
                continue
            raise
        _require_unneeded(schema, column)
        dropped.append(column)
        edits.append(DropColumn(schema.id, column.id))
        edits += [
            DropElement(schema.id, element.id)
            for element in schema.elements
            if element.kind is ElementKind.NOT_NULL and element.columns == (column.id,)
        ]
    if not dropped:
        return Plan((), (), (f"{schema.name} has none of these columns",))
    if not [column for column in schema.readable if column not in dropped and not column.hidden]:
        raise RefusedChangeError(schema.name, "it would have no column left", "drop the table instead")
    text = f"{', '.join(column.name for column in dropped)} is gone"
    return Plan((publish(text, *edits),), (schema.id,))


def _require_unneeded(schema: TableSchema, column: TableColumn) -> None:
    if needing := tuple(dict.fromkeys(schema.needing(column.id))):
        raise NeededElsewhereError(schema.name, column.name, needing)
