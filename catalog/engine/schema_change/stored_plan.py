"""Plans of schema changes as the messages that the tables log holds, and back."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.plan import (
    Bump,
    DropColumn,
    DropElement,
    Edit,
    ItemChange,
    ItemVerb,
    PutColumn,
    PutElement,
    PutName,
    PutState,
    PutTable,
    RemoveTable,
    Stage,
    StageKind,
)
from catalog.engine.schema_change.schema import TableState
from catalog.engine.schema_change.stored_schema import (
    column_message,
    column_of,
    element_message,
    element_of,
    table_message,
    table_schema,
)


def stage_messages(stages: Iterable[Stage]) -> list[pb.Stage]:
    return [_stage_message(stage) for stage in stages]


def stages_of(change: pb.SchemaChangeValue) -> tuple[Stage, ...]:
    """Return the stages of a change as they were planned."""
    return tuple(_stage(message) for message in change.stages)


def _stage_message(stage: Stage) -> pb.Stage:
    item = stage.item
    return pb.Stage(
        kind=stage.kind,  # type: ignore[arg-type]
        text=stage.text,
        edits=[_edit_message(edit) for edit in stage.edits],
        table=stage.table,
        element=stage.element,
        is_visible=stage.is_visible,
        needs_empty=stage.needs_empty,
        item=None if item is None else pb.Item(verb=item.verb, id=item.id, name=item.name, was=item.was),  # type: ignore[arg-type]
    )


def _stage(message: pb.Stage) -> Stage:
    item = message.item
    return Stage(
        StageKind(message.kind),
        message.text,
        tuple(_edit(edit) for edit in message.edits),
        message.element,
        message.table,
        message.is_visible,
        message.needs_empty,
        ItemChange(ItemVerb(item.verb), item.id, item.name, item.was) if message.HasField("item") else None,
    )


def _edit_message(edit: Edit) -> pb.Edit:
    message = pb.Edit(table=edit.table)
    match edit:
        case PutColumn():
            message.put_column.CopyFrom(column_message(edit.column))
        case DropColumn():
            message.drop_column = edit.column
        case PutElement():
            message.put_element.CopyFrom(element_message(edit.element))
        case DropElement():
            message.drop_element = edit.element
        case PutState():
            message.state = edit.state  # type: ignore[assignment]
        case PutName():
            message.name = edit.name
        case PutTable():
            message.create.CopyFrom(table_message(edit.schema))
        case RemoveTable():
            message.drop = True
        case Bump():
            message.bump = True
    return message


def _edit(message: pb.Edit) -> Edit:  # noqa: PLR0911 - one for each kind
    table = message.table
    match message.WhichOneof("edit"):
        case "put_column":
            return PutColumn(table, column_of(message.put_column))
        case "drop_column":
            return DropColumn(table, message.drop_column)
        case "put_element":
            return PutElement(table, element_of(message.put_element))
        case "drop_element":
            return DropElement(table, message.drop_element)
        case "state":
            return PutState(table, TableState(message.state))
        case "name":
            return PutName(table, message.name)
        case "create":
            return PutTable(table, table_schema(table, message.create))
        case "drop":
            return RemoveTable(table)
        case _:
            return Bump(table)
