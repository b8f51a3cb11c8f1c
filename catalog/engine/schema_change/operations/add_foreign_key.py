"""ADD CONSTRAINT … FOREIGN KEY: rows that are referred to stay."""

from __future__ import annotations

from dataclasses import replace

from catalog.engine.schema_change.operations.context import (
    Planning,
    free_name,
    index_over,
    key_columns,
    require_free_name,
)
from catalog.engine.schema_change.operations.create_index import build_stages, complete, public
from catalog.engine.schema_change.plan import (
    ANNOUNCED,
    Bump,
    Edit,
    Plan,
    PutElement,
    Stage,
    StageKind,
    announce,
    publish,
)
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableColumn, TableSchema
from catalog.engine.schema_change.statements import ForeignKeyDefinition
from catalog.errors.tables import RefusedChangeError


def plan(planning: Planning, table: str, constraint: ForeignKeyDefinition) -> Plan:
    schema = planning.table(table)
    parent = planning.table(constraint.target)
    return Plan(stages(planning, schema, parent, constraint), tuple(dict.fromkeys((schema.id, parent.id))))


def stages(
    planning: Planning, schema: TableSchema, parent: TableSchema, constraint: ForeignKeyDefinition
) -> tuple[Stage, ...]:
    columns = key_columns(schema, constraint.columns, "a foreign key")
    target = _target(schema, columns, parent, constraint.target_columns)
    name = constraint.name or free_name(schema, "_".join([*(column.name for column in columns), "key"]))
    require_free_name(schema, name)
    numbers = tuple(column.id for column in columns)
    index, before, done = index_over(schema, numbers), tuple[Stage, ...](), list[Edit]()
    if index is None:
        index = Element(planning.ids.take(), name, ElementKind.INDEX, numbers, State.DELETE, ANNOUNCED, hidden=True)
        before = build_stages(schema, index)
        done = [PutElement(schema.id, public(index))]
    key = foreign_key(planning, name, numbers, index.id, parent.id, target.id)
    bump = () if parent.id == schema.id else (Bump(parent.id),)
    built = () if not done else (PutElement(schema.id, complete(index)),)
    return (
        *before,
        *announce(name, *built, PutElement(schema.id, key), *bump),
        Stage(StageKind.VALIDATE, f"validate {name}", element=key.id, table=schema.id),
        publish(f"{name} is public", *done, PutElement(schema.id, replace(key, state=State.PUBLIC))),
    )


def initial_elements(
    planning: Planning, schema: TableSchema, parent: TableSchema, constraint: ForeignKeyDefinition
) -> tuple[Element, Element]:
    """Return the index and the foreign key of a table that has no rows yet."""
    columns = key_columns(schema, constraint.columns, "a foreign key")
    target = _target(schema, columns, parent, constraint.target_columns)
    name = constraint.name or free_name(schema, "_".join([*(column.name for column in columns), "key"]))
    require_free_name(schema, name)
    numbers = tuple(column.id for column in columns)
    index = public(Element(planning.ids.take(), name, ElementKind.INDEX, numbers, hidden=True))
    key = foreign_key(planning, name, numbers, index.id, parent.id, target.id)
    return index, replace(key, state=State.PUBLIC, since=1)


def foreign_key(
    planning: Planning, name: str, columns: tuple[int, ...], index: int, table: int, target: int
) -> Element:
    return Element(
        planning.ids.take(),
        name,
        ElementKind.FOREIGN_KEY,
        columns,
        State.CHECK,
        ANNOUNCED,
        support=index,
        target=table,
        target_element=target,
    )


def _target(
    schema: TableSchema, columns: tuple[TableColumn, ...], parent: TableSchema, names: tuple[str, ...]
) -> Element:
    """Return the primary key, or the index of a unique constraint, that a foreign key refers to."""
    wanted = tuple(parent.column(name).id for name in names) or parent.primary.columns
    element: Element | None = parent.primary if wanted == parent.primary.columns else None
    for unique in parent.elements:
        if unique.kind is ElementKind.UNIQUE and unique.state is State.PUBLIC and unique.columns == wanted:
            element = element or parent.element_by_id(unique.support)
    if element is None:
        shown = ", ".join(names)
        raise RefusedChangeError(
            schema.name, f"{shown} of {parent.name} is not unique", "add a unique constraint there first"
        )
    types = [parent_column.type for parent_column in parent.key_columns(replace(element, columns=wanted))]
    own = [column.type for column in columns]
    if own != types:
        found, needed = (", ".join(kind.text for kind in kinds) for kinds in (own, types))
        raise RefusedChangeError(
            schema.name,
            f"its columns are {found}, those of {parent.name} {needed}",
            "change the type of one side first",
        )
    return element
