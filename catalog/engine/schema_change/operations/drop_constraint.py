"""DROP CONSTRAINT, and ALTER COLUMN … DROP NOT NULL."""

from __future__ import annotations

from catalog.engine.schema_change.operations.context import Planning
from catalog.engine.schema_change.plan import DropElement, Plan, publish
from catalog.engine.schema_change.schema import Element, ElementKind, TableSchema
from catalog.engine.schema_change.statements import DropConstraint, DropNotNull
from catalog.errors.tables import NeededElsewhereError, RefusedChangeError, UnknownElementError


def plan(planning: Planning, statement: DropConstraint) -> Plan:
    schema = planning.table(statement.table)
    try:
        element = schema.element(statement.name)
    except UnknownElementError:
        if statement.if_exists:
            return Plan((), (), (f"{schema.name} has no {statement.name}",))
        raise
    if element.kind is ElementKind.PRIMARY:
        raise RefusedChangeError(
            schema.name, f"{element.name} is the primary key", "give the table another one: ADD PRIMARY KEY (…)"
        )
    if element.kind is ElementKind.INDEX:
        raise RefusedChangeError(
            schema.name, f"{element.name} is an index", f"DROP INDEX {element.name} ON {schema.name}"
        )
    return removal(planning, schema, element)


def plan_nullable(planning: Planning, statement: DropNotNull) -> Plan:
    schema = planning.table(statement.table)
    column = schema.column(statement.column)
    if column.id in schema.primary.columns:
        raise NeededElsewhereError(schema.name, f"NOT NULL of {column.name}", (schema.primary.name,))
    own = [e for e in schema.elements if e.kind is ElementKind.NOT_NULL and e.columns == (column.id,)]
    if not own:
        return Plan((), (), (f"{column.name} may be NULL already",))
    edits = (DropElement(schema.id, element.id) for element in own)
    return Plan((publish(f"{column.name} may be NULL", *edits),), (schema.id,))


def removal(planning: Planning, schema: TableSchema, element: Element) -> Plan:
    """Return the plan that removes a constraint, with an index that served it alone."""
    gone = [element.id]
    support = schema.element_by_id(element.support)
    if support is not None and support.hidden and not _serves_others(schema, support, element):
        gone.append(support.id)
        needing = [
            f"{key.name} of {child.name}"
            for child, key in planning.referring(schema.id)
            if key.target_element == support.id and key.id != element.id
        ]
        if needing:
            raise NeededElsewhereError(schema.name, element.name, tuple(needing))
    edits = (DropElement(schema.id, number) for number in gone)
    return Plan((publish(f"{element.name} is gone", *edits),), (schema.id,))


def _serves_others(schema: TableSchema, support: Element, besides: Element) -> bool:
    return any(e.support == support.id and e.id != besides.id for e in schema.elements)
