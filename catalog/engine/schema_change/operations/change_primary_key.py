"""ADD PRIMARY KEY: rows and indexes are made anew by the new key, beside the old ones, and swap."""

from __future__ import annotations

from dataclasses import replace

from catalog.engine.schema_change.operations import set_not_null
from catalog.engine.schema_change.operations.context import Planning, key_columns, require_free_name
from catalog.engine.schema_change.operations.create_index import build_stages, complete
from catalog.engine.schema_change.plan import (
    ANNOUNCED,
    DropColumn,
    DropElement,
    Edit,
    Plan,
    PutElement,
    Stage,
    StageKind,
    announce,
    publish,
)
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableSchema
from catalog.engine.schema_change.statements import PrimaryKeyDefinition
from catalog.errors.tables import NeededElsewhereError, RefusedChangeError


def plan(planning: Planning, table: str, constraint: PrimaryKeyDefinition) -> Plan:
    schema = planning.table(table)
    old = schema.primary
    columns = key_columns(schema, constraint.columns, "a primary key")
    numbers = tuple(column.id for column in columns)
    if computed := [column.name for column in columns if column.computed is not None]:
        raise RefusedChangeError(
            schema.name, f"{', '.join(computed)} is computed, and part of the primary key", "leave it out of the key"
        )
    if numbers == old.columns:
        return Plan((), (), (f"{schema.name} has this primary key already",))
    keys = [
        f"{key.name} of {child.name}" for child, key in planning.referring(schema.id) if key.target_element == old.id
    ]
    if keys:
        raise NeededElsewhereError(schema.name, old.name, tuple(keys))
    name = constraint.name or f"{schema.name.rpartition('.')[2]}_primary_key"
    require_free_name(schema, name, besides=[old.id])
    checked, evidence = _checked_stages(planning, schema, numbers)
    primary = Element(
        planning.ids.take(), f"_{name}", ElementKind.PRIMARY, numbers, State.DELETE, ANNOUNCED, hidden=True
    )
    indexes = {
        element.id: _by(planning, element, primary) for element in schema.elements if element.kind is ElementKind.INDEX
    }
    made = [primary, *indexes.values()]
    stages = [
        *checked,
        *announce(f"the primary key {name}", *(PutElement(schema.id, element) for element in made)),
        *(Stage(StageKind.BUILD, f"build {element.name}", element=element.id, table=schema.id) for element in made),
    ]
    swap: list[Edit] = [DropElement(schema.id, number) for number in (old.id, *indexes, *(e.id for e in evidence))]
    swap.append(PutElement(schema.id, replace(primary, name=name, state=State.PUBLIC, built=True, hidden=False)))
    for element in schema.elements:
        if element.kind is ElementKind.INDEX:
            new = indexes[element.id]
            swap.append(
                PutElement(
                    schema.id, replace(new, name=element.name, state=State.PUBLIC, built=True, hidden=element.hidden)
                )
            )
        elif element.support in indexes:
            swap.append(PutElement(schema.id, replace(element, support=indexes[element.support].id)))
        elif element.kind is ElementKind.NOT_NULL and element.columns[0] in numbers:
            swap.append(DropElement(schema.id, element.id))
    swap += [DropColumn(schema.id, column.id) for column in schema.key_columns() if column.hidden]
    stages.append(publish(f"{name} is the primary key", *swap))
    return Plan(tuple(stages), (schema.id,))


def _checked_stages(
    planning: Planning, schema: TableSchema, numbers: tuple[int, ...]
) -> tuple[list[Stage], list[Element]]:
    """Return the stages after which no two rows can have one key, nor a NULL in it; and the elements that see to it."""
    columns = schema.key_columns(replace(schema.primary, columns=numbers))
    nulls = [
        replace(set_not_null.element(planning, schema, column, State.CHECK), hidden=True, name=f"_{column.name}_key")
        for column in columns
        if column.id not in schema.primary.columns
    ]
    index = Element(planning.ids.take(), "_key_index", ElementKind.INDEX, numbers, State.DELETE, ANNOUNCED, hidden=True)
    unique = Element(
        planning.ids.take(),
        "_key_unique",
        ElementKind.UNIQUE,
        numbers,
        State.CHECK,
        ANNOUNCED,
        support=index.id,
        hidden=True,
    )
    constraints = [*nulls, unique]
    stages = [
        *build_stages(schema, index),
        *announce(
            "that the key is unique and not NULL",
            PutElement(schema.id, complete(index)),
            *(PutElement(schema.id, element) for element in constraints),
        ),
        *(
            Stage(StageKind.VALIDATE, f"validate {element.name}", element=element.id, table=schema.id)
            for element in constraints
        ),
    ]
    return stages, [index, *constraints]


def _by(planning: Planning, index: Element, primary: Element) -> Element:
    """Return an index whose entries lead to rows by the new key."""
    number = planning.ids.take()
    return replace(
        index,
        id=number,
        name=f"_{index.name}_{number}",
        state=State.DELETE,
        since=ANNOUNCED,
        built=False,
        hidden=True,
        support=primary.id,
    )
