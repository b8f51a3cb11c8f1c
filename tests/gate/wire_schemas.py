"""Proto3 types for the tests of the wire judge: written by hand, or drawn at random and edited at random.

Owns how test types are made and changed. It never asks the judge anything.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from google.protobuf.descriptor import FileDescriptor
    from google.protobuf.message import Message

INTEGERS = (
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
)
KEYS = (*INTEGERS, "bool", "string")
SCALARS = (*KEYS, "float", "double", "bytes")
KINDS = (*SCALARS, "enum", "message")
WIDER = {
    "bool": ("int32", "int64", "uint32", "uint64"),
    "int32": ("int64",),
    "uint32": ("int64", "uint64"),
    "sint32": ("sint64",),
    "enum": ("int32", "int64"),
    "string": ("bytes",),
}
OTHER_SIGN = {
    "int32": "uint32",
    "uint32": "int32",
    "int64": "uint64",
    "uint64": "int64",
    "fixed32": "sfixed32",
    "sfixed64": "fixed64",
}
LABELS = ("", "optional", "packed", "unpacked", "map")
_PACKAGE = "drawn"
_ROOT = 0
_NUMBER_MAX = 9


@cache
def compile_proto(body: str, header: str = 'syntax = "proto3"; package p;') -> FileDescriptor:
    """Compile the text of a proto into a pool of its own."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "types.proto"), Path(folder, "types.bin")
        source.write_text(f"{header}\n{body}\n", encoding="utf-8")
        status = protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={target}", str(source)])
        assert status == 0, body
        files = descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes())
    return _load(files.file[0])


@dataclass
class Field:
    """A field of a drawn message; `target` is the index of its message or enum."""

    name: str
    kind: str
    label: str = ""
    key: str = "int32"
    target: int = 0
    oneof: str = ""


@dataclass
class DrawnMessage:
    """A message, whose fields are known by number."""

    name: str
    fields: dict[int, Field] = field(default_factory=dict)
    reserved: set[int] = field(default_factory=set)


@dataclass
class DrawnEnum:
    """An enum, whose values are known by number."""

    name: str
    values: dict[int, str] = field(default_factory=dict)
    reserved: set[int] = field(default_factory=set)


@dataclass
class Schema:
    """A drawn set of types, of which the first message is the root; messages may be recursive."""

    messages: list[DrawnMessage]
    enums: list[DrawnEnum]

    def copy(self) -> Schema:
        return Schema(
            [
                DrawnMessage(
                    message.name,
                    {number: replace(drawn) for number, drawn in message.fields.items()},
                    set(message.reserved),
                )
                for message in self.messages
            ],
            [DrawnEnum(enum.name, dict(enum.values), set(enum.reserved)) for enum in self.enums],
        )

    def build(self) -> type[Message]:
        """Return the class of the root message, from a pool of its own."""
        file = descriptor_pb2.FileDescriptorProto(name="drawn.proto", package=_PACKAGE, syntax="proto3")
        outer = file.message_type.add(name=self.messages[_ROOT].name)
        for enum in self.enums:
            proto = outer.enum_type.add(name=enum.name)
            for number in sorted(enum.values, key=lambda number: (number != 0, number)):
                proto.value.add(name=enum.values[number], number=number)
            for number in sorted(enum.reserved):
                proto.reserved_range.add(start=number, end=number)
        for message in self.messages:
            inner = outer if message is self.messages[_ROOT] else outer.nested_type.add(name=message.name)
            self._render(message, inner)
        return message_factory.GetMessageClass(_load(file).message_types_by_name[outer.name])

    def _render(self, message: DrawnMessage, proto: descriptor_pb2.DescriptorProto) -> None:
        for number in sorted(message.reserved):
            proto.reserved_range.add(start=number, end=number + 1)
        singular = [drawn for drawn in message.fields.values() if drawn.label in {"", "optional"}]
        oneofs = list(dict.fromkeys(drawn.oneof for drawn in singular if drawn.oneof))
        for name in oneofs:
            proto.oneof_decl.add(name=name)
        for number, drawn in sorted(message.fields.items()):
            target = proto.field.add(name=drawn.name, number=number)
            target.label = target.LABEL_OPTIONAL if drawn in singular else target.LABEL_REPEATED
            if drawn.label == "map":
                entry = proto.nested_type.add(name=f"{drawn.name.capitalize()}Entry")
                entry.options.map_entry = True
                self._set_kind(entry.field.add(name="key", number=1, label=1), drawn.key, drawn.target)
                self._set_kind(entry.field.add(name="value", number=2, label=1), drawn.kind, drawn.target)
                target.type = target.TYPE_MESSAGE
                path = "" if message is self.messages[_ROOT] else f".{message.name}"
                target.type_name = f".{_PACKAGE}.{self.messages[_ROOT].name}{path}.{entry.name}"
                continue
            self._set_kind(target, drawn.kind, drawn.target)
            if drawn.label in {"packed", "unpacked"} and drawn.kind not in {"string", "bytes", "message"}:
                target.options.packed = drawn.label == "packed"
            elif drawn in singular and drawn.oneof:
                target.oneof_index = oneofs.index(drawn.oneof)
            elif drawn.label == "optional":
                target.proto3_optional = True
                target.oneof_index = len(proto.oneof_decl)
                proto.oneof_decl.add(name=f"_{drawn.name}")

    def _set_kind(self, target: descriptor_pb2.FieldDescriptorProto, kind: str, index: int) -> None:
        target.type = descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
        if kind in {"message", "enum"}:
            named = self.messages if kind == "message" else self.enums
            name = named[index % len(named)].name
            root = self.messages[_ROOT].name
            is_root = kind == "message" and index % len(named) == _ROOT
            target.type_name = f".{_PACKAGE}.{root}" if is_root else f".{_PACKAGE}.{root}.{name}"


def draw_schema(random: Random) -> Schema:
    """Draw one to three messages and one or two enums; the root uses all of them."""
    schema = Schema(
        [DrawnMessage("Root"), *(DrawnMessage(f"M{index}") for index in range(random.randint(0, 2)))],
        [DrawnEnum(f"E{index}") for index in range(random.randint(1, 2))],
    )
    for message in schema.messages:
        for number in random.sample(range(1, _NUMBER_MAX + 1), random.randint(1, 5)):
            message.fields[number] = _draw_field(random, number)
        free = sorted(set(range(1, _NUMBER_MAX + 1)) - set(message.fields))
        message.reserved = set(random.sample(free, random.randint(0, 2)))
    users = [("message", index) for index in range(1, len(schema.messages))]
    users += [("enum", index) for index in range(len(schema.enums))]
    for number, (kind, index) in enumerate(users, _NUMBER_MAX + 10):
        user = Field(f"f{number}", kind, random.choice(LABELS), target=index)
        schema.messages[_ROOT].fields[number] = user
    for enum in schema.enums:
        numbers = {0, *random.sample((-1, 1, 2, 3, 2**31 - 1), 2)}
        enum.values = {number: _value_name(enum, number) for number in numbers}
        enum.reserved = {5}
    return schema


def edit(random: Random, schema: Schema, count: int) -> Schema:
    """Return a copy with a number of random edits, of which about half are legal."""
    edited = schema.copy()
    for _ in range(count):
        random.choice(_EDITS)(random, edited)
    return edited


def _draw_field(random: Random, number: int) -> Field:
    return Field(
        name=f"f{number}",
        kind=random.choice(KINDS),
        label=random.choice(LABELS),
        key=random.choice(KEYS),
        target=random.randint(0, 2),
        oneof=random.choice(("", "", "left", "right")),
    )


def _value_name(enum: DrawnEnum, number: int) -> str:
    return f"{enum.name}_{number}".replace("-", "M").upper()


def _some_fields(random: Random, schema: Schema, suits: Callable[[Field], bool]) -> list[Field]:
    """Pick one field that an edit suits, or none."""
    fields = [drawn for message in schema.messages for drawn in message.fields.values() if suits(drawn)]
    return [random.choice(fields)] if fields else []


def _anything(_: Field) -> bool:
    return True


def _delete_field(random: Random, schema: Schema) -> None:
    message = random.choice(schema.messages)
    if message.fields:
        number = random.choice(sorted(message.fields))
        del message.fields[number]
        message.reserved |= set(random.choice(((), (number,))))


def _add_field(random: Random, schema: Schema) -> None:
    message = random.choice(schema.messages)
    number = random.choice(sorted(set(range(1, _NUMBER_MAX + 3)) - set(message.fields)))
    message.reserved.discard(number)
    message.fields[number] = _draw_field(random, number)


def _rename_field(random: Random, schema: Schema) -> None:
    for drawn in _some_fields(random, schema, _anything):
        drawn.name = f"{drawn.name}_renamed"


def _change_kind(random: Random, schema: Schema) -> None:
    for drawn in _some_fields(random, schema, _anything):
        drawn.kind = random.choice(KINDS)


def _widen_kind(random: Random, schema: Schema) -> None:
    for drawn in _some_fields(random, schema, lambda drawn: drawn.kind in WIDER):
        drawn.kind = random.choice(WIDER[drawn.kind])


def _narrow_kind(random: Random, schema: Schema) -> None:
    narrower = {wide: kind for kind, wider in WIDER.items() for wide in wider}
    for drawn in _some_fields(random, schema, lambda drawn: drawn.kind in narrower):
        drawn.kind = narrower[drawn.kind]


def _change_sign(random: Random, schema: Schema) -> None:
    for drawn in _some_fields(random, schema, lambda drawn: drawn.kind in OTHER_SIGN):
        drawn.kind = OTHER_SIGN[drawn.kind]


def _change_label(random: Random, schema: Schema) -> None:
    for drawn in _some_fields(random, schema, _anything):
        drawn.label = random.choice(LABELS)


def _change_presence(random: Random, schema: Schema) -> None:
    for drawn in _some_fields(random, schema, lambda drawn: drawn.label in {"", "optional"}):
        drawn.label = "" if drawn.label else "optional"


def _change_packing(random: Random, schema: Schema) -> None:
    for drawn in _some_fields(random, schema, lambda drawn: "packed" in drawn.label):
        drawn.label = "unpacked" if drawn.label == "packed" else "packed"


def _change_key(random: Random, schema: Schema) -> None:
    for drawn in _some_fields(random, schema, lambda drawn: drawn.label == "map"):
        drawn.key = random.choice(KEYS)


def _change_target(random: Random, schema: Schema) -> None:
    for drawn in _some_fields(random, schema, lambda drawn: drawn.kind in {"message", "enum"}):
        drawn.target = random.randint(0, 2)


def _change_oneof(random: Random, schema: Schema) -> None:
    for drawn in _some_fields(random, schema, lambda drawn: drawn.label in {"", "optional"}):
        drawn.oneof = random.choice(("", "left", "right", "third"))


def _rename_oneofs(_: Random, schema: Schema) -> None:
    for message in schema.messages:
        for drawn in message.fields.values():
            drawn.oneof = drawn.oneof and f"{drawn.oneof}_renamed"


def _rename_type(random: Random, schema: Schema) -> None:
    types: list[DrawnMessage | DrawnEnum] = [*schema.messages, *schema.enums]
    named = random.choice(types)
    named.name = f"{named.name}Renamed"


def _delete_value(random: Random, schema: Schema) -> None:
    enum = random.choice(schema.enums)
    number = random.choice(sorted(enum.values))
    if number:
        del enum.values[number]


def _add_value(random: Random, schema: Schema) -> None:
    enum = random.choice(schema.enums)
    number = random.randint(4, 7)
    enum.reserved.discard(number)
    enum.values[number] = _value_name(enum, number)


def _rename_value(random: Random, schema: Schema) -> None:
    enum = random.choice(schema.enums)
    number = random.choice(sorted(enum.values))
    enum.values[number] = f"{enum.values[number]}_RENAMED"


def _change_reservations(random: Random, schema: Schema) -> None:
    types: list[DrawnMessage | DrawnEnum] = [*schema.messages, *schema.enums]
    owner = random.choice(types)
    if owner.reserved and random.randint(0, 1):
        owner.reserved.pop()
    else:
        owner.reserved.add(100 + random.randint(0, 9))


_EDITS: tuple[Callable[[Random, Schema], None], ...] = (
    _delete_field,
    _add_field,
    _add_field,
    _rename_field,
    _change_kind,
    _widen_kind,
    _widen_kind,
    _narrow_kind,
    _change_sign,
    _change_label,
    _change_presence,
    _change_packing,
    _change_key,
    _change_target,
    _change_oneof,
    _rename_oneofs,
    _rename_type,
    _delete_value,
    _add_value,
    _rename_value,
    _change_reservations,
)


def _load(file: descriptor_pb2.FileDescriptorProto) -> FileDescriptor:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool.FindFileByName(file.name)
