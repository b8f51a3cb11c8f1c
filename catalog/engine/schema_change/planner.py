"""The planner: which operation plans which statement."""

from __future__ import annotations

from typing import assert_never

from catalog.engine.schema_change.operations import (
    add_check,
    add_column,
    add_foreign_key,
    add_unique,
    change_primary_key,
    change_type,
    create_index,
    create_table,
    drop_column,
    drop_constraint,
    drop_index,
    drop_table,
    rename_column,
    rename_table,
    set_default,
    set_not_null,
)
from catalog.engine.schema_change.operations.context import Planning
from catalog.engine.schema_change.plan import Plan
from catalog.engine.schema_change.statements import (
    AddColumns,
    AddConstraint,
    ChangeType,
    CheckDefinition,
    CreateIndex,
    CreateTable,
    DropColumns,
    DropConstraint,
    DropIndex,
    DropNotNull,
    DropTable,
    ForeignKeyDefinition,
    PrimaryKeyDefinition,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNotNull,
    Statement,
    UniqueDefinition,
)


def plan_statement(planning: Planning, statement: Statement) -> Plan:  # noqa: C901, PLR0911, PLR0912 - one arm each
    """Return the plan of a statement; raise what is wrong with it before anything is done."""
    match statement:
        case CreateTable():
            return create_table.plan(planning, statement)
        case DropTable():
            return drop_table.plan(planning, statement)
        case RenameTable():
            return rename_table.plan(planning, statement)
        case AddColumns():
            return add_column.plan(planning, statement)
        case DropColumns():
            return drop_column.plan(planning, statement)
        case RenameColumn():
            return rename_column.plan(planning, statement)
        case SetDefault():
            return set_default.plan(planning, statement)
        case SetNotNull():
            return set_not_null.plan(planning, statement)
        case DropNotNull():
            return drop_constraint.plan_nullable(planning, statement)
        case ChangeType():
            return change_type.plan(planning, statement)
        case AddConstraint(table=table, constraint=CheckDefinition() as check):
            return add_check.plan(planning, table, check)
        case AddConstraint(table=table, constraint=UniqueDefinition() as unique):
            return add_unique.plan(planning, table, unique)
        case AddConstraint(table=table, constraint=ForeignKeyDefinition() as key):
            return add_foreign_key.plan(planning, table, key)
        case AddConstraint(table=table, constraint=PrimaryKeyDefinition() as key):
            return change_primary_key.plan(planning, table, key)
        case DropConstraint():
            return drop_constraint.plan(planning, statement)
        case CreateIndex():
            return create_index.plan(planning, statement)
        case DropIndex():
            return drop_index.plan(planning, statement)
        case AddConstraint():
            raise TypeError(f"a constraint of an unknown kind: {statement.constraint}")
        case _:
            assert_never(statement)
