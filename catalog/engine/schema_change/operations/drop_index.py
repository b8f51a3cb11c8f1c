"""DROP INDEX."""

from __future__ import annotations

from catalog.engine.schema_change.operations.context import Planning
from catalog.engine.schema_change.operations.drop_constraint import removal
from catalog.engine.schema_change.plan import DropElement, Plan, publish
from catalog.engine.schema_change.schema import ElementKind
from catalog.engine.schema_change.statements import DropIndex
from catalog.errors.tables import NeededElsewhereError, RefusedChangeError, UnknownElementError


def plan(planning: Planning, statement: DropIndex) -> Plan:
    schema = planning.table(statement.table)
    try:
        element = schema.element(statement.name)
    except UnknownElementError:
        if statement.if_exists:
            return Plan((), (), (f"{schema.name} has no {statement.name}",))
        raise
    if element.kind is ElementKind.UNIQUE:
        return removal(planning, schema, element)
    if element.kind is not ElementKind.INDEX:
        raise RefusedChangeError(
            schema.name,
            f"{element.name} is no index",
            f"ALTER TABLE {schema.name} DROP CONSTRAINT {element.name}",
        )
    if needing := tuple(other.name for other in schema.elements if other.support == element.id):
        raise NeededElsewhereError(schema.name, element.name, needing)
    return Plan((publish(f"{element.name} is gone", DropElement(schema.id, element.id)),), (schema.id,))
