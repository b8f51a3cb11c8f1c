"""Schemas, columns, elements and expressions as the messages that the tables log holds, and back."""

from __future__ import annotations

from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.expressions import Call, ColumnRef, Expression, Function, Literal
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableColumn, TableSchema, TableState
from catalog.engine.schema_change.types import ColumnType, Value


def table_message(schema: TableSchema) -> pb.TableValue:
    return pb.TableValue(
        state=schema.state,  # type: ignore[arg-type]
        cur=schema.cur,
        min=schema.min,
        columns=[column_message(column) for column in schema.columns],
        elements=[element_message(element) for element in schema.elements],
        next_column=schema.next_column,
        change=schema.change,
        features=schema.features,
        name=schema.name,
    )


def table_schema(number: int, message: pb.TableValue) -> TableSchema:
    return TableSchema(
        id=number,
        name=message.name,
        state=TableState(message.state),
        columns=tuple(column_of(column) for column in message.columns),
        elements=tuple(element_of(element) for element in message.elements),
        cur=message.cur,
        min=message.min,
        next_column=message.next_column,
        change=message.change,
        features=tuple(message.features),
    )


def column_message(column: TableColumn) -> pb.Column:
    message = pb.Column(
        id=column.id,
        name=column.name,
        type=column.type.text,
        state=column.state,  # type: ignore[arg-type]
        since=column.since,
        replaces=column.replaces,
        hidden=column.hidden,
    )
    if column.initial_default is not None:
        message.initial_default.CopyFrom(literal_message(column.initial_default, column.type))
    for name in ("write_default", "computed", "up"):
        expression = getattr(column, name)
        if expression is not None:
            getattr(message, name).CopyFrom(expression_message(expression))
    return message


def column_of(message: pb.Column) -> TableColumn:
    return TableColumn(
        id=message.id,
        name=message.name,
        type=ColumnType.parse(message.type),
        state=State(message.state),
        since=message.since,
        initial_default=literal_value(message.initial_default) if message.HasField("initial_default") else None,
        write_default=expression_of(message.write_default) if message.HasField("write_default") else None,
        computed=expression_of(message.computed) if message.HasField("computed") else None,
        replaces=message.replaces,
        up=expression_of(message.up) if message.HasField("up") else None,
        hidden=message.hidden,
    )


def element_message(element: Element) -> pb.Element:
    message = pb.Element(
        id=element.id,
        name=element.name,
        kind=element.kind,  # type: ignore[arg-type]
        state=element.state,  # type: ignore[arg-type]
        since=element.since,
        columns=element.columns,
        stored=element.stored,
        support=element.support,
        target=element.target,
        target_element=element.target_element,
        built=element.built,
        hidden=element.hidden,
    )
    if element.check is not None:
        message.check.CopyFrom(expression_message(element.check))
    return message


def element_of(message: pb.Element) -> Element:
    return Element(
        id=message.id,
        name=message.name,
        kind=ElementKind(message.kind),
        columns=tuple(message.columns),
        state=State(message.state),
        since=message.since,
        stored=tuple(message.stored),
        check=expression_of(message.check) if message.HasField("check") else None,
        support=message.support,
        target=message.target,
        target_element=message.target_element,
        built=message.built,
        hidden=message.hidden,
    )


def expression_message(expression: Expression) -> pb.Expression:
    match expression:
        case ColumnRef():
            return pb.Expression(column=pb.ColumnUse(id=expression.column, type=expression.type.text))
        case Literal():
            return pb.Expression(literal=literal_message(expression.value, expression.type))
        case Call():
            arguments = [expression_message(argument) for argument in expression.arguments]
            function, kind = expression.function.value, expression.type.text
            return pb.Expression(call=pb.Call(function=function, arguments=arguments, type=kind))


def expression_of(message: pb.Expression) -> Expression:
    match message.WhichOneof("node"):
        case "column":
            return ColumnRef(message.column.id, ColumnType.parse(message.column.type))
        case "literal":
            return Literal(literal_value(message.literal), ColumnType.parse(message.literal.type))
        case _:
            call = message.call
            arguments = tuple(expression_of(argument) for argument in call.arguments)
            return Call(Function(call.function), arguments, ColumnType.parse(call.type))


def literal_message(value: Value, kind: ColumnType) -> pb.Literal:
    """Return a value of a type; NULL has no member of the oneof."""
    message = pb.Literal(type=kind.text)
    if value is None:
        return message
    if kind.element is not None:
        inside = [literal_message(one, kind.element) for one in value]  # type: ignore[union-attr]
        message.list.CopyFrom(pb.Literals(values=inside))
        return message
    stored = kind.to_stored(value)
    match stored:
        case bool():
            message.truth = stored
        case int():
            message.number = stored
        case float():
            message.real = stored
        case str():
            message.text = stored
        case _:
            message.raw = stored
    return message


def literal_value(message: pb.Literal) -> Value:
    kind, member = ColumnType.parse(message.type), message.WhichOneof("value")
    if member is None:
        return None
    if member == "list":
        return [literal_value(one) for one in message.list.values]
    return kind.from_stored(getattr(message, member))
