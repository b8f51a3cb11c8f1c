"""ADD CONSTRAINT … UNIQUE."""

from __future__ import annotations

from catalog.engine.schema_change.operations.context import Planning, free_name, key_columns, require_free_name
from catalog.engine.schema_change.operations.create_index import unique_stages
from catalog.engine.schema_change.plan import ANNOUNCED, Plan, Stage
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableSchema
from catalog.engine.schema_change.statements import UniqueDefinition


def plan(planning: Planning, table: str, constraint: UniqueDefinition) -> Plan:
    schema = planning.table(table)
    return Plan(stages(planning, schema, constraint), (schema.id,))


def stages(planning: Planning, schema: TableSchema, constraint: UniqueDefinition) -> tuple[Stage, ...]:
    columns = key_columns(schema, constraint.columns, "a unique constraint")
    name = constraint.name or free_name(schema, "_".join([*(column.name for column in columns), "unique"]))
    require_free_name(schema, name)
    numbers = tuple(column.id for column in columns)
    index = Element(planning.ids.take(), name, ElementKind.INDEX, numbers, State.DELETE, ANNOUNCED)
    return unique_stages(planning, schema, name, index)
