"""CREATE TABLE: its schema, then its item, then it takes rows."""

from __future__ import annotations

from dataclasses import replace

from catalog.engine.schema_change.expressions import resolve
from catalog.engine.schema_change.operations import add_foreign_key, set_not_null
from catalog.engine.schema_change.operations.context import Planning, free_name, key_columns, require_free_name
from catalog.engine.schema_change.operations.create_index import public
from catalog.engine.schema_change.operations.set_default import write_default
from catalog.engine.schema_change.plan import (
    ItemChange,
    ItemVerb,
    Plan,
    PutState,
    PutTable,
    Stage,
    StageKind,
    publish,
)
from catalog.engine.schema_change.schema import (
    Element,
    ElementKind,
    State,
    TableColumn,
    TableSchema,
    TableState,
    row_column,
)
from catalog.engine.schema_change.statements import (
    CheckDefinition,
    ConstraintDefinition,
    CreateTable,
    ForeignKeyDefinition,
    PrimaryKeyDefinition,
    UniqueDefinition,
)
from catalog.engine.schema_change.types import ColumnType, TypeName
from catalog.errors.tables import NameTakenError, RefusedChangeError, TableExistsError


def plan(planning: Planning, statement: CreateTable) -> Plan:
    if planning.table_ids(statement.table) is not None:
        if statement.if_not_exists:
            return Plan((), (), (f"there is already a table {statement.table}",))
        raise TableExistsError(statement.table)
    schema, tables = _schema(planning, statement)
    item = ItemChange(ItemVerb.INSERT, schema.id, schema.name)
    return Plan(
        (
            Stage(StageKind.EDIT, f"{schema.name} is made, and refuses rows", (PutTable(schema.id, schema),)),
            Stage(StageKind.ITEM, f"add the item {schema.name}", table=schema.id, item=item),
            publish(f"{schema.name} takes rows", PutState(schema.id, TableState.PUBLIC)),
        ),
        tables,
    )


def _schema(planning: Planning, statement: CreateTable) -> tuple[TableSchema, tuple[int, ...]]:
    keys = [own for own in statement.constraints if isinstance(own, PrimaryKeyDefinition)]
    if len(keys) > 1:
        raise RefusedChangeError(statement.table, "it has two primary keys", "name one, over all its columns")
    schema = TableSchema(planning.new_table, planning.canonical(statement.table), TableState.CREATED, (), ())
    if not keys:
        schema = schema.with_columns([row_column()])
    for definition in statement.columns:
        if any(column.name.lower() == definition.name.lower() for column in schema.columns):
            raise NameTakenError(schema.name, definition.name)
        default = write_default(definition.default, definition.type)
        column = TableColumn(schema.next_column, definition.name, definition.type, write_default=default)
        schema = schema.with_columns([column])
    schema = _with_primary(planning, schema, keys[0] if keys else None)
    schema = _with_computed(schema, statement)
    for definition in statement.columns:
        column = schema.column(definition.name)
        if definition.not_null and column.id not in schema.primary.columns:
            element = replace(set_not_null.element(planning, schema, column, State.PUBLIC), since=1)
            schema = schema.with_elements([element])
    tables = [schema.id]
    for constraint in statement.constraints:
        schema, other = _with_constraint(planning, schema, constraint)
        tables += [other] * (other not in {0, *tables})
    return schema, tuple(tables)


def _with_primary(planning: Planning, schema: TableSchema, key: PrimaryKeyDefinition | None) -> TableSchema:
    if key is None:
        columns: tuple[int, ...] = (schema.columns[0].id,)
        return schema.with_elements(
            [Element(planning.ids.take(), "_row_key", ElementKind.PRIMARY, columns, hidden=True)]
        )
    columns = tuple(column.id for column in key_columns(schema, key.columns, "a primary key"))
    name = key.name or f"{schema.name.rpartition('.')[2]}_primary_key"
    return schema.with_elements([Element(planning.ids.take(), name, ElementKind.PRIMARY, columns)])


def _with_computed(schema: TableSchema, statement: CreateTable) -> TableSchema:
    plain = {d.name: schema.by_name[d.name] for d in statement.columns if d.generated is None}
    for definition in statement.columns:
        if definition.generated is not None:
            column = schema.column(definition.name)
            if column.id in schema.primary.columns:
                raise RefusedChangeError(
                    schema.name, f"{column.name} is computed, and part of the primary key", "leave it out of the key"
                )
            computed = resolve(definition.generated, plain, wanted=column.type)
            schema = schema.with_columns([replace(column, computed=computed)])
    return schema


def _with_constraint(
    planning: Planning, schema: TableSchema, constraint: ConstraintDefinition
) -> tuple[TableSchema, int]:
    """Return a schema with a constraint that no row violates yet, and the other table that it concerns; 0 if none."""
    match constraint:
        case PrimaryKeyDefinition():
            return schema, 0
        case CheckDefinition():
            name = constraint.name or free_name(schema, f"{schema.name.rpartition('.')[2]}_check")
            require_free_name(schema, name)
            check = resolve(constraint.expression, schema.by_name, wanted=ColumnType(TypeName.BOOLEAN))
            return schema.with_elements([Element(planning.ids.take(), name, ElementKind.CHECK, check=check)]), 0
        case UniqueDefinition():
            columns = key_columns(schema, constraint.columns, "a unique constraint")
            numbers = tuple(column.id for column in columns)
            name = constraint.name or free_name(schema, "_".join([*(column.name for column in columns), "unique"]))
            require_free_name(schema, name)
            index = public(Element(planning.ids.take(), name, ElementKind.INDEX, numbers, hidden=True))
            unique = Element(planning.ids.take(), name, ElementKind.UNIQUE, numbers, support=index.id)
            return schema.with_elements([index, unique]), 0
        case ForeignKeyDefinition():
            own = planning.canonical(constraint.target) == schema.name
            parent = replace(schema, state=TableState.PUBLIC) if own else planning.table(constraint.target)
            elements = add_foreign_key.initial_elements(planning, schema, parent, constraint)
            return schema.with_elements(elements), parent.id
