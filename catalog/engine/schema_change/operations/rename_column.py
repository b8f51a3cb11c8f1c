"""RENAME COLUMN: only the name changes; everything else goes by the id."""

from __future__ import annotations

from dataclasses import replace

from catalog.engine.schema_change.operations.context import Planning, require_free_column
from catalog.engine.schema_change.plan import Plan, PutColumn, publish
from catalog.engine.schema_change.statements import RenameColumn


def plan(planning: Planning, statement: RenameColumn) -> Plan:
    schema = planning.table(statement.table)
    column = schema.column(statement.column)
    if column.name.lower() != statement.to.lower():
        require_free_column(schema, statement.to)
    edit = PutColumn(schema.id, replace(column, name=statement.to))
    return Plan((publish(f"{column.name} is called {statement.to}", edit),), (schema.id,))
