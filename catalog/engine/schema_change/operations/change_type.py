"""ALTER COLUMN … TYPE: widening changes the type alone; any other change fills a new column, and swaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from catalog.engine.schema_change.evaluation import evaluate_row
from catalog.engine.schema_change.expressions import (
    Call,
    ColumnRef,
    Expression,
    Function,
    Literal,
    Name,
    RawCall,
    RawExpression,
    RawLiteral,
    columns_of,
    resolve,
)
from catalog.engine.schema_change.operations.context import Planning, typed
from catalog.engine.schema_change.operations.create_index import build_stages, complete, public
from catalog.engine.schema_change.plan import (
    ANNOUNCED,
    DropColumn,
    DropElement,
    Edit,
    Plan,
    PutColumn,
    PutElement,
    Stage,
    StageKind,
    announce,
    publish,
)
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableColumn, TableSchema
from catalog.engine.schema_change.statements import ChangeType
from catalog.engine.schema_change.types import ColumnType, TypeName
from catalog.errors.tables import NeededElsewhereError, RefusedChangeError


def plan(planning: Planning, statement: ChangeType) -> Plan:
    schema = planning.table(statement.table)
    column = schema.column(statement.column)
    if statement.type == column.type and statement.using is None:
        return Plan((), (), (f"{column.name} is {column.type.text} already",))
    if column.type.widens_to(statement.type) and statement.using is None:
        return _widened(planning, schema, column, statement)
    _require_free(planning, schema, column)
    up = _up(schema, column, statement)
    number = schema.next_column
    new = TableColumn(
        number,
        f"_{column.name}_{number}",
        statement.type,
        State.DELETE,
        ANNOUNCED,
        replaces=column.id,
        up=up,
        hidden=True,
    )
    stages: list[Stage] = [
        *announce(f"{column.name} as {statement.type.text}", PutColumn(schema.id, new)),
        Stage(StageKind.REORGANISE, f"fill {column.name} as {statement.type.text}", table=schema.id),
    ]
    after = schema.with_columns([replace(new, state=State.WRITE)])
    swap: list[Edit] = []
    for element in schema.elements:
        made, edits = _again(planning, after, element, column, number)
        stages += made
        swap += edits
    default = None if column.write_default is None else _cast(column.write_default, statement)
    final = replace(new, name=column.name, state=State.PUBLIC, hidden=column.hidden, write_default=default)
    swap += [DropColumn(schema.id, column.id), PutColumn(schema.id, final)]
    stages.append(publish(f"{column.name} is {statement.type.text}", *swap))
    return Plan(tuple(stages), (schema.id,))


def _widened(planning: Planning, schema: TableSchema, column: TableColumn, statement: ChangeType) -> Plan:
    """Return the plan of a type whose values have the same bytes; both sides of a foreign key have one type."""
    keys = [
        f"{key.name} of {child.name}" for child, key in planning.referring(schema.id) if _refers(schema, key, column)
    ]
    keys += [e.name for e in schema.elements if e.kind is ElementKind.FOREIGN_KEY and column.id in e.columns]
    if keys:
        raise NeededElsewhereError(schema.name, f"the type of {column.name}", tuple(keys))
    used = [e.name for e in schema.elements if e.check is not None and column.id in columns_of(e.check)]
    used += [c.name for c in schema.columns if c.computed is not None and column.id in columns_of(c.computed)]
    if used:
        raise NeededElsewhereError(schema.name, f"the type of {column.name}", tuple(used))
    default = None if column.write_default is None else _cast(column.write_default, statement)
    edit = PutColumn(schema.id, replace(column, type=statement.type, write_default=default))
    return Plan((publish(f"{column.name} is {statement.type.text}", edit),), (schema.id,))


def _refers(schema: TableSchema, key: Element, column: TableColumn) -> bool:
    target = schema.element_by_id(key.target_element)
    return target is not None and column.id in target.columns


def _require_free(planning: Planning, schema: TableSchema, column: TableColumn) -> None:
    """Refuse a column that a key is over: keys are bytes, and other tables refer to them."""
    if column.id in schema.primary.columns:
        raise RefusedChangeError(
            schema.name,
            f"{column.name} is part of the primary key",
            "add a column of the new type with a fill (USING …), then give the table a primary key over it",
        )
    keys = [e.name for e in schema.elements if e.kind is ElementKind.FOREIGN_KEY and column.id in e.columns]
    keys += [
        f"{key.name} of {child.name}" for child, key in planning.referring(schema.id) if _refers(schema, key, column)
    ]
    computed = [c.name for c in schema.columns if c.computed is not None and column.id in columns_of(c.computed)]
    if keys or computed:
        raise NeededElsewhereError(schema.name, column.name, (*keys, *computed))
    if column.computed is not None:
        raise RefusedChangeError(schema.name, f"{column.name} is computed", "drop it, and add it with the new type")


def _up(schema: TableSchema, column: TableColumn, statement: ChangeType) -> Expression:
    """Return the new value of a row, from its old one."""
    if statement.using is None:
        return Call(Function.CAST, (ColumnRef(column.id, column.type),), statement.type)
    up = typed(schema, statement.using, statement.type)
    if others := columns_of(up) - {column.id}:
        names = ", ".join(schema.names[number] for number in sorted(others))
        raise RefusedChangeError(schema.name, f"USING of {column.name} names {names}", "name the column itself alone")
    return up


def _cast(default: Expression, statement: ChangeType) -> Expression:
    cast = Call(Function.CAST, (default,), statement.type)
    evaluate_row(cast, {})  # a default that cannot be cast is refused before anything is done
    return cast


def _again(
    planning: Planning, schema: TableSchema, element: Element, column: TableColumn, number: int
) -> tuple[list[Stage], list[Edit]]:
    """Return the stages that make an element anew over the new column, and the edits of the swap."""
    uses = {*element.columns, *element.stored, *(columns_of(element.check) if element.check else ())}
    if column.id not in uses:
        return [], []
    columns = tuple(number if own == column.id else own for own in element.columns)
    stored = tuple(number if own == column.id else own for own in element.stored)
    gone = DropElement(schema.id, element.id)
    kept = replace(element, id=planning.ids.take(), columns=columns, stored=stored, since=ANNOUNCED)
    if element.kind is ElementKind.INDEX:
        return _index_again(planning, schema, element, kept)
    if element.kind is ElementKind.UNIQUE:
        return [], []  # made anew with its index
    check = None if element.check is None else _retyped(schema, element.check, column, number)
    constraint = replace(kept, name=f"_{element.name}_{kept.id}", check=check, state=State.CHECK, hidden=True)
    stages = [
        *announce(f"{element.name} over the new column", PutElement(schema.id, constraint)),
        Stage(StageKind.VALIDATE, f"validate {element.name}", element=constraint.id, table=schema.id),
    ]
    done = replace(constraint, name=element.name, state=State.PUBLIC, hidden=element.hidden)
    return stages, [gone, PutElement(schema.id, done)]


def _index_again(
    planning: Planning, schema: TableSchema, element: Element, kept: Element
) -> tuple[list[Stage], list[Edit]]:
    """Return the stages and edits of an index that is made anew, and of what it makes unique."""
    index = replace(kept, name=f"_{element.name}_{kept.id}", state=State.DELETE, built=False, hidden=True)
    gone = DropElement(schema.id, element.id)
    final = PutElement(schema.id, replace(public(index), name=element.name, hidden=element.hidden))
    stages = list(build_stages(schema, index))
    built = PutElement(schema.id, complete(index))
    unique = next((e for e in schema.elements if e.kind is ElementKind.UNIQUE and e.support == element.id), None)
    if unique is None:
        return [*stages, Stage(StageKind.EDIT, f"{element.name} is complete", (built,))], [gone, final]
    check = replace(
        unique,
        id=planning.ids.take(),
        name=f"_{unique.name}_{kept.id}",
        columns=kept.columns,
        support=kept.id,
        state=State.CHECK,
        since=ANNOUNCED,
        hidden=True,
    )
    stages += announce(f"that {unique.name} is unique", built, PutElement(schema.id, check))
    stages.append(Stage(StageKind.VALIDATE, f"validate {unique.name}", element=check.id, table=schema.id))
    done = replace(check, name=unique.name, state=State.PUBLIC, hidden=False)
    return stages, [gone, DropElement(schema.id, unique.id), final, PutElement(schema.id, done)]


def _retyped(schema: TableSchema, check: Expression, column: TableColumn, number: int) -> Expression:
    """Return a check over the new column; refuse one whose functions do not take the new type."""
    new = schema.column_by_id(number)
    if new is None:
        raise LookupError(f"{schema.name} has no column {number}")
    known = {own.name: (own.id, own.type) for own in schema.readable if own.id != column.id}
    known[column.name] = (number, new.type)
    return resolve(_raw(check, schema.names), known, wanted=ColumnType(TypeName.BOOLEAN))


def _raw(expression: Expression, names: Mapping[int, str]) -> RawExpression:
    """Return an expression as a statement would say it."""
    match expression:
        case ColumnRef():
            return Name(names[expression.column])
        case Literal():
            return RawLiteral(expression.value, expression.type)
        case Call():
            arguments = tuple(_raw(argument, names) for argument in expression.arguments)
            kind = expression.type if expression.function is Function.CAST else None
            return RawCall(expression.function, arguments, kind)
