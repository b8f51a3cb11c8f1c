"""ALTER COLUMN … SET NOT NULL."""

from __future__ import annotations

from catalog.engine.schema_change.operations.add_check import validated_stages
from catalog.engine.schema_change.operations.context import Planning, free_name
from catalog.engine.schema_change.plan import ANNOUNCED, Plan
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableColumn, TableSchema
from catalog.engine.schema_change.statements import SetNotNull


def plan(planning: Planning, statement: SetNotNull) -> Plan:
    schema = planning.table(statement.table)
    column = schema.column(statement.column)
    if is_not_null(schema, column):
        return Plan((), (), (f"{column.name} is NOT NULL already",))
    return Plan(validated_stages(schema, element(planning, schema, column, State.CHECK)), (schema.id,))


def is_not_null(schema: TableSchema, column: TableColumn) -> bool:
    own = (e for e in schema.elements if e.kind is ElementKind.NOT_NULL and e.columns == (column.id,))
    return any(own) or column.id in schema.primary.columns


def element(planning: Planning, schema: TableSchema, column: TableColumn, state: State) -> Element:
    """Return the constraint that a column is not NULL."""
    name = free_name(schema, f"{column.name}_not_null")
    return Element(planning.ids.take(), name, ElementKind.NOT_NULL, (column.id,), state, ANNOUNCED)
