"""Columns of serialised messages, read and written by ptars.

A column of messages is a `StructArray` with a member for each field, null where an optional field, a member of a oneof
or a nested message is absent. ptars is fast and trusting: what it would misread, leave out or die of is refused, so
that

- `decode` names the row that it cannot read;
- `encode` writes every value that it is given, or names the column;
- a row whose bytes `encode(decode(…))` repeats was read as protobuf reads it, and has lost nothing.

Unknown fields are lost, and so is the sign of -0.0 in a float that is not `optional`: a caller that rewrites stored
rows compares the bytes first, with `first_difference`. Only this module uses ptars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from ptars import HandlerPool, PtarsConfig
from pyarrow import types

from catalog.engine.base.rust_panic import is_panic
from catalog.engine.codec.columns import ELEMENT, cut, fit
from catalog.errors import UndecodableRowError, UnfitColumnError, UnsupportedMessageError

_NEVER_PACKED = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE})
_PARSED_FROM_BYTES = 4096
"""Rows of this length are parsed by protobuf first. ptars skips unknown groups by recursion, and a byte is enough for a
level: a longer row could exhaust the stack."""
_HEAD_BYTES = 32


@dataclass(frozen=True, slots=True)
class MessageCodec:
    """Reads and writes columns of one message."""

    name: str
    type: pa.DataType
    _choices: _Choices
    _parse: Callable[[bytes], object]
    _read: Callable[[pa.Array], pa.RecordBatch]
    _write: Callable[[pa.RecordBatch], pa.Array]
    _written: pa.DataType
    """The input of `_write`: `type`, with every map as the list of its entries."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(list(self.type))

    def decode(self, column: pa.BinaryArray) -> pa.StructArray:
        """Read serialised messages; if a row is no such message, raise and name the first."""
        if not isinstance(column, pa.BinaryArray):
            raise TypeError(f"needed is a BinaryArray, not a {type(column).__name__}")
        decoded = self._try_decode(column)
        if not isinstance(decoded, str):
            return decoded
        reason, first, end = decoded, 0, len(column)
        while end - first > 1:
            middle = (first + end) // 2
            # With protobuf first, because every panic of ptars leaves its traces on the terminal.
            if isinstance(self._try_decode(column[first:middle], parsed_from_bytes=0), str):
                end = middle
            else:
                first = middle
        decoded = self._try_decode(column[first:end])
        reason = decoded if isinstance(decoded, str) else reason
        raise UndecodableRowError(self.name, first, (column[first].as_py() or b"")[:_HEAD_BYTES].hex(), reason)

    def encode(self, messages: pa.Array) -> pa.BinaryArray:
        """Serialise messages of `type`, or of what that is in Spark; what does not `fit` is refused."""
        if messages.null_count:
            raise UnfitColumnError(self.name, "null", "a message in every row")
        fitted = fit(messages, self.type, self.name)
        doubled = self._choices.doubled(fitted)
        if doubled:
            raise UnfitColumnError(self.name, doubled, "one of them")
        if self._written is not self.type:
            fitted = fit(fitted, self._written, self.name)
        written = _without_panic(self._write, pa.RecordBatch.from_struct_array(fitted))
        if isinstance(written, str):
            raise UnfitColumnError(self.name, f"too much to write at once ({written})", "a smaller batch")
        return written

    def _try_decode(self, column: pa.BinaryArray, parsed_from_bytes: int = _PARSED_FROM_BYTES) -> pa.StructArray | str:
        """Return the messages, or what is wrong with one of them."""
        if column.null_count:
            return "it is null"
        for row in pc.indices_nonzero(pc.greater_equal(pc.binary_length(column), parsed_from_bytes)).to_pylist():
            try:
                self._parse(column[row].as_py())
            except DecodeError as error:
                return str(error)
        batch = _without_panic(self._read, column)
        if isinstance(batch, str):
            return batch
        decoded = batch.to_struct_array()
        doubled = self._choices.doubled(decoded)
        return f"it holds {doubled}" if doubled else decoded


@cache
def codec_for(message: Descriptor) -> MessageCodec:
    """Return the codec of a message, the same each time; refuse a message whose bytes would not survive."""
    _require_supported(message, ())
    reading, writing = _pools(message.file)
    reader, writer = reading.get_for_message(message), writing.get_for_message(message)
    read, written = pa.struct(list(reader.schema())), pa.struct(list(writer.schema()))
    return MessageCodec(
        message.full_name,
        read,
        _Choices.of(message),
        GetMessageClass(message).FromString,
        reader.array_to_record_batch,
        writer.record_batch_to_array,
        read if written == read else written,
    )


@dataclass(frozen=True, slots=True)
class _Choices:
    """The oneofs of a message, each by its members' names, and those of the messages in its fields."""

    oneofs: tuple[tuple[str, ...], ...]
    inside: tuple[tuple[str, _Choices], ...]

    @classmethod
    def of(cls, message: Descriptor) -> _Choices:
        oneofs = [tuple(field.name for field in oneof.fields) for oneof in message.oneofs]
        inside = [(field.name, cls.of(field.message_type)) for field in message.fields if field.message_type]
        return cls(
            tuple(members for members in oneofs if len(members) > 1),
            tuple((name, choices) for name, choices in inside if choices.oneofs or choices.inside),
        )

    def doubled(self, array: pa.Array) -> str | None:
        """Name a oneof that has more than one member in some message, and where.

        Protobuf keeps the last that was written. ptars keeps them all, and the bytes would not show it.
        """
        if not self.oneofs and not self.inside:
            return None
        if types.is_list(array.type):
            array = array.flatten()
        elif types.is_map(array.type):
            _, items = cut(array, array.items)
            array = pa.StructArray.from_arrays([items], names=["value"])
        members = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
        for oneof in self.oneofs:
            used = [members[name].is_valid() for name in oneof if members[name].null_count < len(array)]
            seen = used[0] if used else None
            for valid in used[1:]:
                if pc.any(pc.and_(seen, valid)).as_py():
                    return f"more than one of {', '.join(oneof)}"
                seen = pc.or_(seen, valid)
        for name, choices in self.inside:
            doubled = choices.doubled(members[name])
            if doubled:
                return f"{doubled} in {name}"
        return None


def _require_supported(message: Descriptor, outer: tuple[Descriptor, ...]) -> None:
    if message in outer:
        raise UnsupportedMessageError(message.full_name, "it contains itself, so that it has no fixed columns")
    for field in message.fields:
        if field.is_repeated and not field.is_packed and field.type not in _NEVER_PACKED:
            raise UnsupportedMessageError(field.full_name, "it has packed = false, and would be written packed")
        if field.message_type:
            _require_supported(field.message_type, (*outer, message))


@cache
def _pools(file: FileDescriptor) -> tuple[HandlerPool, HandlerPool]:
    """Return the pools that read and write the messages of a file.

    Of a map's entry, ptars leaves out a key or value that is zero, where protobuf writes both. So maps are written as
    what they are on the wire: a list of messages, with a key and a value that are present even if zero.
    """
    config = PtarsConfig(list_value_name=ELEMENT)
    reading = HandlerPool([file], config)
    proto = FileDescriptorProto()
    file.CopyToProto(proto)
    entries = [message for message in _with_nested(proto.message_type) if message.options.map_entry]
    if not entries:
        return reading, reading
    for entry in entries:
        entry.options.map_entry = False
        for field in entry.field:
            if field.type != FieldDescriptorProto.TYPE_MESSAGE:
                field.proto3_optional, field.oneof_index = True, len(entry.oneof_decl)
                entry.oneof_decl.add(name=f"_{field.name}")
    pool = DescriptorPool()
    pool.Add(proto)
    return reading, HandlerPool([pool.FindFileByName(proto.name)], config)


def _with_nested(messages: Iterable[DescriptorProto]) -> Iterator[DescriptorProto]:
    for message in messages:
        yield message
        yield from _with_nested(message.nested_type)


def _without_panic(call: Callable[[Any], Any], argument: object) -> Any:  # noqa: ANN401 - arrays and batches
    """Return the answer of ptars, or the text of its error. Its panics are no `Exception`."""
    try:
        return call(argument)
    except ValueError as error:
        return str(error)
    except BaseException as error:
        if not is_panic(error):
            raise
        return str(error)
