"""ADD CONSTRAINT … CHECK."""

from __future__ import annotations

from dataclasses import replace

from catalog.engine.schema_change.operations.context import Planning, free_name, require_free_name, typed
from catalog.engine.schema_change.plan import ANNOUNCED, Plan, PutElement, Stage, StageKind, announce, publish
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableSchema
from catalog.engine.schema_change.statements import CheckDefinition
from catalog.engine.schema_change.types import ColumnType, TypeName


def plan(planning: Planning, table: str, constraint: CheckDefinition) -> Plan:
    schema = planning.table(table)
    return Plan(validated_stages(schema, element(planning, schema, constraint)), (schema.id,))


def element(planning: Planning, schema: TableSchema, constraint: CheckDefinition) -> Element:
    """Return a check over the columns of a table, not yet enforced."""
    name = constraint.name or free_name(schema, f"{schema.name.rpartition('.')[2]}_check")
    require_free_name(schema, name)
    check = typed(schema, constraint.expression, ColumnType(TypeName.BOOLEAN))
    return Element(planning.ids.take(), name, ElementKind.CHECK, (), State.CHECK, ANNOUNCED, check=check)


def validated_stages(schema: TableSchema, constraint: Element) -> tuple[Stage, ...]:
    """Return the stages of a constraint that is enforced first, and validated then."""
    return (
        *announce(constraint.name, PutElement(schema.id, constraint)),
        Stage(StageKind.VALIDATE, f"validate {constraint.name}", element=constraint.id, table=schema.id),
        publish(f"{constraint.name} is public", PutElement(schema.id, replace(constraint, state=State.PUBLIC))),
    )
