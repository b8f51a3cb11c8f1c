"""Rows of a table as bytes: keys, values and the entries of indexes.

The messages are built at run time, from the schema. A key has the columns of its element as fields 1, 2, … by position;
a value has the other columns, each by its id, all optional, and in field 1 the version of the schema that it was
written under. Fields in order are prefix-free: equality of the first columns of an index is a byte prefix, and the
prefix of a foreign key is the key that it refers to.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from catalog.engine.schema_change.schema import STORING, Element, ElementKind, TableColumn, TableSchema
from catalog.engine.schema_change.types import ColumnType, Value
from catalog.errors import UndecodableRowError

RowValues = Mapping[int, Value]
"""The values of a row by the ids of its columns; a column that is not there is NULL."""
_CODECS_MAX = 256
_VERSION = "_schema"
_VERSION_FIELD = 1


@dataclass(frozen=True, slots=True)
class KeyCodec:
    """The key of an element: some columns as fields 1, 2, … by position."""

    message: type[Message]
    columns: tuple[tuple[str, TableColumn], ...]

    def encode(self, row: RowValues) -> bytes:
        """Return the bytes of a key; columns that are NULL have no field, so a key with NULLs is never a prefix."""
        return _encoded(self.message, self.columns, row)

    def decode(self, key: bytes) -> dict[int, Value]:
        return _decoded(self.message.FromString(key), self.columns)


class RowCodec:
    """Reads and writes the rows of a table under one version of its schema."""

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        self._keys = {element.id: self._key_codec(element) for element in schema.elements if element.kind in STORING}
        primary = frozenset(schema.primary.columns)
        self._ordered = tuple(sorted(schema.columns, key=lambda column: column.id))
        self._columns = tuple((f"c{column.id}", column) for column in self._ordered if column.id not in primary)
        self._value = _value_type(f"Value{schema.id}", (column for _, column in self._columns))
        self._whole = _value_type(f"Whole{schema.id}", self._ordered)
        self._stored = {
            element.id: _message_type(f"Entry{element.id}", [(f"c{n}", n, self._type(n)) for n in element.stored])
            for element in schema.elements
            if element.stored
        }

    def key(self, row: RowValues, element: Element | None = None) -> bytes:
        """Return the key of a row, or of its entry in an index."""
        primary = self._keys[self.schema.primary.id]
        if element is None or element.id == self.schema.primary.id:
            return primary.encode(row)
        return self._keys[element.id].encode(row)

    def key_values(self, key: bytes, element: Element | None = None) -> dict[int, Value]:
        """Return the values of the columns of a key, or of an entry of an index, which has those of the row's key."""
        try:
            return self._keys[(element or self.schema.primary).id].decode(key)
        except (DecodeError, ValueError) as error:
            raise UndecodableRowError(self.schema.name, 0, key[:32].hex(), str(error)) from error

    def prefix(self, element: Element, row: RowValues, count: int | None = None) -> bytes | None:
        """Return the bytes that entries with the same first columns begin with; none if one of them is NULL.

        Without a count these are all columns of the element itself, without those of the row's key.
        """
        wanted = element.columns if count is None else element.columns[:count]
        if any(row.get(number) is None for number in wanted):
            return None
        codec = self._keys[element.id]
        return _encoded(codec.message, codec.columns[: len(wanted)], row)

    def entry(self, element: Element, row: RowValues) -> tuple[bytes, bytes]:
        """Return the entry of a row in an index: its key, and the stored columns."""
        value = b""
        if element.stored:
            value = _encoded(*self.stored_columns(element), row)
        return self.key(row, element), value

    def value(self, row: RowValues, element: Element | None = None) -> bytes:
        """Return the bytes of a row's value, under the version that every writer knows.

        A primary key that is being built stores all columns that are not its own.
        """
        versions = {_VERSION: self.schema.min}
        if element is None or element.id == self.schema.primary.id:
            return _encoded(self._value, self._columns, row, versions)
        return _encoded(*self.whole_columns(element), row, versions)

    def row(self, key: bytes, value: bytes) -> dict[int, Value]:
        """Return all values of a stored row; columns that came after it was written have their initial default."""
        try:
            message = self._value.FromString(value)
        except DecodeError as error:
            raise UndecodableRowError(self.schema.name, 0, value[:32].hex(), str(error)) from error
        found = self.key_values(key) | _decoded(message, self._columns)
        written = getattr(message, _VERSION)
        for _, column in self._columns:
            if found[column.id] is None and written < column.since:
                found[column.id] = column.initial_default
        return found

    def _key_codec(self, element: Element) -> KeyCodec:
        """Return the codec of an element's key: of an index, its columns and then those of the primary key."""
        numbers = list(element.columns)
        if element.kind is ElementKind.INDEX:
            own = self.schema.element_by_id(element.support) or self.schema.primary
            numbers += [number for number in own.columns if number not in numbers]
        fields = [(f"k{at}", at, self._type(number)) for at, number in enumerate(numbers, 1)]
        columns = tuple((f"k{at}", self._column(number)) for at, number in enumerate(numbers, 1))
        return KeyCodec(_message_type(f"Key{element.id}", fields), columns)

    def key_codec(self, element: Element) -> KeyCodec:
        """Return the codec of the keys of an element."""
        return self._keys[element.id]

    @property
    def value_columns(self) -> tuple[type[Message], tuple[tuple[str, TableColumn], ...]]:
        """Return the message of a row's value, and its columns by the names of fields."""
        return self._value, self._columns

    def whole_columns(self, element: Element) -> tuple[type[Message], tuple[tuple[str, TableColumn], ...]]:
        """Return the message of a value by another primary key, and its columns."""
        own = frozenset(element.columns)
        return self._whole, tuple((f"c{column.id}", column) for column in self._ordered if column.id not in own)

    def stored_columns(self, element: Element) -> tuple[type[Message], tuple[tuple[str, TableColumn], ...]]:
        """Return the message of the value of an index entry, and its columns."""
        return self._stored[element.id], tuple((f"c{number}", self._column(number)) for number in element.stored)

    def _column(self, number: int) -> TableColumn:
        found = self.schema.column_by_id(number)
        if found is None:
            raise LookupError(f"{self.schema.name} has no column of id {number}")
        return found

    def _type(self, number: int) -> ColumnType:
        return self._column(number).type


class RowCodecs:
    """The codecs of schemas, a bounded number of them; any thread may ask."""

    def __init__(self) -> None:
        self._found: OrderedDict[TableSchema, RowCodec] = OrderedDict()
        self._lock = Lock()

    def of(self, schema: TableSchema) -> RowCodec:
        with self._lock:
            codec = self._found.get(schema)
            if codec is None:
                codec = self._found[schema] = RowCodec(schema)
                while len(self._found) > _CODECS_MAX:
                    self._found.popitem(last=False)
            else:
                self._found.move_to_end(schema)
            return codec


def _value_type(name: str, columns: Iterable[TableColumn]) -> type[Message]:
    return _message_type(name, [(f"c{column.id}", column.id, column.type) for column in columns], versioned=True)


def _message_type(
    name: str, fields: Iterable[tuple[str, int, ColumnType]], *, versioned: bool = False
) -> type[Message]:
    """Make the type of a message in a pool of its own; every field that is no list is optional."""
    file = FileDescriptorProto(name=f"{name}.proto", package="rows", syntax="proto3")
    message = file.message_type.add(name=name)
    if versioned:
        message.field.add(name=_VERSION, number=_VERSION_FIELD, type=FieldDescriptorProto.TYPE_UINT32, label=1)
    for own, number, kind in fields:
        inside = kind.element or kind
        field = message.field.add(name=own, number=number, type=inside.field_type)
        field.label = FieldDescriptorProto.LABEL_REPEATED if kind.element else FieldDescriptorProto.LABEL_OPTIONAL
        if kind.element is None:
            field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{own}")
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"rows.{name}"))


def _encoded(
    message: type[Message],
    columns: Sequence[tuple[str, TableColumn]],
    row: RowValues,
    also: Mapping[str, int] | None = None,
) -> bytes:
    fields: dict[str, object] = dict(also or {})
    for name, column in columns:
        value = row.get(column.id)
        if value is not None:
            fields[name] = column.type.to_stored(value)
    return message(**fields).SerializeToString(deterministic=True)


def _decoded(message: Message, columns: Iterable[tuple[str, TableColumn]]) -> dict[int, Value]:
    found: dict[int, Value] = {}
    for name, column in columns:
        if column.type.element is None:
            held = getattr(message, name) if message.HasField(name) else None
        else:
            held = list(getattr(message, name))
        found[column.id] = None if held is None else column.type.from_stored(held)
    return found
