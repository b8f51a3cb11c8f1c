"""ADD COLUMN: with a constant default nothing is written; a fill or a computed column gives every row its value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from catalog.engine.schema_change.evaluation import evaluate_row
from catalog.engine.schema_change.expressions import Expression, is_constant
from catalog.engine.schema_change.operations import add_check, add_foreign_key, add_unique, set_not_null
from catalog.engine.schema_change.operations.add_check import validated_stages
from catalog.engine.schema_change.operations.context import Planning, require_free_column, typed
from catalog.engine.schema_change.operations.set_default import write_default
from catalog.engine.schema_change.plan import (
    ANNOUNCED,
    Edit,
    Plan,
    PutColumn,
    PutElement,
    Stage,
    StageKind,
    announce,
    publish,
)
from catalog.engine.schema_change.schema import State, TableColumn, TableSchema
from catalog.engine.schema_change.statements import (
    AddColumns,
    CheckDefinition,
    ColumnDefinition,
    ForeignKeyDefinition,
    UniqueDefinition,
)
from catalog.engine.schema_change.types import Value
from catalog.errors.tables import RefusedChangeError


@dataclass(slots=True)
class _Added:
    """The parts of a statement that adds columns."""

    instant: list[Edit] = field(default_factory=list)
    filled: list[TableColumn] = field(default_factory=list)
    not_null: list[TableColumn] = field(default_factory=list)
    """Filled columns that must hold a value in every row."""
    needs_empty: bool = False


def plan(planning: Planning, statement: AddColumns) -> Plan:
    schema = planning.table(statement.table)
    added, after = _Added(), schema
    for definition in statement.columns:
        require_free_column(after, definition.name)
        column = _column(planning, after, definition, added)
        after = after.with_columns([column])
    public = replace(after, columns=tuple(replace(column, state=State.PUBLIC) for column in after.columns))
    constrained = bool(statement.constraints or added.filled)
    stages, tables = list(_stages(schema, added, early=not constrained)), {schema.id: None}
    for column in added.not_null:
        stages += validated_stages(schema, set_not_null.element(planning, public, column, State.CHECK))
    for constraint in statement.constraints:
        match constraint:
            case UniqueDefinition():
                stages += add_unique.stages(planning, public, constraint)
            case CheckDefinition():
                stages += validated_stages(schema, add_check.element(planning, public, constraint))
            case ForeignKeyDefinition():
                parent = planning.table(constraint.target)
                tables[parent.id] = None
                stages += add_foreign_key.stages(planning, public, parent, constraint)
            case _:
                raise RefusedChangeError(
                    schema.name, "a new column cannot be the primary key at once", "add the column, then the key"
                )
    if constrained:
        stages.append(publish("the new columns are public", *_public(schema, added)))
    return Plan(_visible_last(stages), tuple(tables))


def _public(schema: TableSchema, added: _Added) -> Iterator[Edit]:
    for edit in added.instant:
        if isinstance(edit, PutColumn):
            yield edit
    for column in added.filled:
        yield PutColumn(schema.id, replace(column, state=State.PUBLIC, up=None))


def _column(planning: Planning, schema: TableSchema, definition: ColumnDefinition, added: _Added) -> TableColumn:
    """Return a new column, and note how it comes about."""
    kind, number = definition.type, schema.next_column
    default = write_default(definition.default, kind)
    source = definition.generated or definition.fill
    if source is not None:
        expression = typed(schema, source, kind)
        computed = expression if definition.generated is not None else None
        column = TableColumn(
            number, definition.name, kind, State.DELETE, ANNOUNCED, None, default, computed, up=expression
        )
        added.filled.append(column)
        if definition.not_null:
            added.not_null.append(column)
        return column
    column = TableColumn(number, definition.name, kind, State.PUBLIC, ANNOUNCED, _initial(default), default)
    added.instant.append(PutColumn(schema.id, column))
    if definition.not_null:
        element = set_not_null.element(planning, schema, column, State.PUBLIC)
        added.instant.append(PutElement(schema.id, element))
        if column.initial_default is None:
            if planning.has_rows(schema):
                raise RefusedChangeError(
                    schema.name,
                    f"{definition.name} is NOT NULL and has no default, and the table has rows",
                    "give it a default or a fill (USING …), or add it without NOT NULL first",
                )
            added.needs_empty = True
    return column


def _initial(default: Expression | None) -> Value:
    """Return the value of the rows that are there; a default that asks for the time gives them none."""
    return None if default is None or not is_constant(default) else evaluate_row(default, {})


def _stages(schema: TableSchema, added: _Added, *, early: bool) -> Iterator[Stage]:
    """Yield the stages that give rows the new columns; they are public at once only if nothing else can fail."""
    if added.instant:
        edits = added.instant if early else [_unpublished(edit) for edit in added.instant]
        text, empty = "the new columns are written", added.needs_empty
        yield Stage(StageKind.EDIT, text, tuple(edits), table=schema.id, needs_empty=empty)
    if added.filled:
        names = ", ".join(column.name for column in added.filled)
        yield from announce(names, *(PutColumn(schema.id, column) for column in added.filled))
        yield Stage(StageKind.REORGANISE, f"fill {names}", table=schema.id)


def _unpublished(edit: Edit) -> Edit:
    if not isinstance(edit, PutColumn):
        return edit
    return PutColumn(edit.table, replace(edit.column, state=State.WRITE))


def _visible_last(stages: list[Stage]) -> tuple[Stage, ...]:
    """Return stages of one statement, which is undone as a whole until its last one is committed."""
    last = len(stages) - 1
    return tuple(replace(stage, is_visible=at == last) for at, stage in enumerate(stages))
