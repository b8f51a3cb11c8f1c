"""CREATE [UNIQUE] INDEX, and the indexes that constraints are judged by."""

from __future__ import annotations

from dataclasses import replace

from catalog.engine.schema_change.operations.context import Planning, key_columns, require_free_name
from catalog.engine.schema_change.plan import ANNOUNCED, Plan, PutElement, Stage, StageKind, announce, publish
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableSchema
from catalog.engine.schema_change.statements import CreateIndex
from catalog.errors.tables import NameTakenError


def plan(planning: Planning, statement: CreateIndex) -> Plan:
    schema = planning.table(statement.table)
    try:
        require_free_name(schema, statement.name)
    except NameTakenError:
        if statement.if_not_exists:
            return Plan((), (), (f"{schema.name} already has {statement.name}",))
        raise
    columns = tuple(column.id for column in key_columns(schema, statement.columns, "an index"))
    stored = tuple(schema.column(name).id for name in statement.stored)
    index = Element(
        planning.ids.take(), statement.name, ElementKind.INDEX, columns, State.DELETE, ANNOUNCED, stored=stored
    )
    if statement.unique:
        return Plan(unique_stages(planning, schema, statement.name, index), (schema.id,))
    done = publish(f"{index.name} is public", PutElement(schema.id, public(index)))
    return Plan((*build_stages(schema, index), done), (schema.id,))


def build_stages(schema: TableSchema, index: Element) -> tuple[Stage, ...]:
    """Return the stages after which an index has an entry for every row, and every writer maintains it."""
    build = Stage(StageKind.BUILD, f"build {index.name}", element=index.id, table=schema.id)
    return (*announce(index.name, PutElement(schema.id, index)), build)


def public(index: Element) -> Element:
    """Return an index that is complete, and answers."""
    return _with(index, State.PUBLIC)


def complete(index: Element) -> Element:
    """Return an index that is complete, and serves as evidence only."""
    return _with(index, State.WRITE)


def _with(index: Element, state: State) -> Element:
    return replace(index, state=state, built=True)


def unique_stages(planning: Planning, schema: TableSchema, name: str, index: Element) -> tuple[Stage, ...]:
    """Return the stages of a unique index: its evidence is complete before it is enforced."""
    hidden = replace(index, hidden=True)
    unique = Element(
        planning.ids.take(), name, ElementKind.UNIQUE, index.columns, State.CHECK, ANNOUNCED, support=index.id
    )
    return (
        *build_stages(schema, hidden),
        *announce(f"that {name} is unique", PutElement(schema.id, complete(hidden)), PutElement(schema.id, unique)),
        Stage(StageKind.VALIDATE, f"validate {name}", element=unique.id, table=schema.id),
        publish(
            f"{name} is public",
            PutElement(schema.id, public(hidden)),
            PutElement(schema.id, replace(unique, state=State.PUBLIC)),
        ),
    )
