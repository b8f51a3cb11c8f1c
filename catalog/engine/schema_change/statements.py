"""Statements that define tables, as plain values: the edge reads SQL into them, operations plan them.

Names are as written; expressions are raw, because only the schema that a statement meets tells their types.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.engine.schema_change.expressions import RawExpression
from catalog.engine.schema_change.types import ColumnType


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: str
    type: ColumnType
    not_null: bool = False
    default: RawExpression | None = None
    generated: RawExpression | None = None
    """Computed from other columns at every write, and never set."""
    fill: RawExpression | None = None
    """Computed once, for the rows that are there when the column is added."""


@dataclass(frozen=True, slots=True)
class PrimaryKeyDefinition:
    columns: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class UniqueDefinition:
    columns: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    expression: RawExpression
    name: str = ""


@dataclass(frozen=True, slots=True)
class ForeignKeyDefinition:
    columns: tuple[str, ...]
    target: str
    target_columns: tuple[str, ...] = ()
    """Empty: the primary key of the target."""
    name: str = ""


ConstraintDefinition = PrimaryKeyDefinition | UniqueDefinition | CheckDefinition | ForeignKeyDefinition


@dataclass(frozen=True, slots=True)
class CreateTable:
    table: str
    columns: tuple[ColumnDefinition, ...]
    constraints: tuple[ConstraintDefinition, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    table: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    table: str
    to: str


@dataclass(frozen=True, slots=True)
class AddColumns:
    table: str
    columns: tuple[ColumnDefinition, ...]
    constraints: tuple[ConstraintDefinition, ...] = ()
    """Those that stand behind a column, such as `b BIGINT UNIQUE`."""


@dataclass(frozen=True, slots=True)
class DropColumns:
    table: str
    columns: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    table: str
    column: str
    to: str


@dataclass(frozen=True, slots=True)
class SetDefault:
    table: str
    column: str
    default: RawExpression | None
    """None drops the default."""


@dataclass(frozen=True, slots=True)
class SetNotNull:
    table: str
    column: str


@dataclass(frozen=True, slots=True)
class DropNotNull:
    table: str
    column: str


@dataclass(frozen=True, slots=True)
class ChangeType:
    table: str
    column: str
    type: ColumnType
    using: RawExpression | None = None


@dataclass(frozen=True, slots=True)
class AddConstraint:
    table: str
    constraint: ConstraintDefinition


@dataclass(frozen=True, slots=True)
class DropConstraint:
    table: str
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex:
    table: str
    name: str
    columns: tuple[str, ...]
    stored: tuple[str, ...] = ()
    unique: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    table: str
    name: str
    if_exists: bool = False


Statement = (
    CreateTable
    | DropTable
    | RenameTable
    | AddColumns
    | DropColumns
    | RenameColumn
    | SetDefault
    | SetNotNull
    | DropNotNull
    | ChangeType
    | AddConstraint
    | DropConstraint
    | CreateIndex
    | DropIndex
)
