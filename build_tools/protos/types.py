"""Protos, compiled and compared.

Owns the only call of protoc, the identity (hash) of a set of types, and the description of differences between two
sets. Comments, spacing, the order of declarations and the package name are not part of the identity.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor

from ..project_tree import GateError

PROTOC_REQUIREMENT = "grpcio-tools==1.85.1"
ENGINE_COLLECTIONS = ("config", "fence_token", "migration_event")
"""One encoding at every version: never passed to a migration, present in every project."""

_ERROR_LINE = re.compile(r"^[^:]*\.proto:(?P<line>\d+):\d+: (?P<message>.*)$", re.MULTILINE)
_Field = descriptor_pb2.FieldDescriptorProto


class ProtoError(Exception):
    """A proto that does not compile."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(line, message)
        self.line = line
        self.message = message


@dataclass(frozen=True)
class ProtoTypes:
    """One compiled proto, a version of the types; it is never modified."""

    proto: descriptor_pb2.FileDescriptorProto
    messages: dict[str, Descriptor]
    """Top-level messages by name, resolved in a pool of their own."""
    shapes: dict[str, Any]
    """Every message and enum as plain data, by its name within the file."""
    hash: str

    @cached_property
    def collections(self) -> tuple[str, ...]:
        """Return the collections that have both a key and a value, sorted by name."""
        return tuple(sorted(name for name in _stems(self.messages) if self._has_both(name)))

    @cached_property
    def half_collections(self) -> tuple[str, ...]:
        """Return the names of keys and values that are not a pair, or whose pair is not CamelCase."""
        return tuple(sorted(name for name in _stems(self.messages) if not self._has_both(name)))

    def key(self, collection: str) -> Descriptor:
        return self.messages[f"{camel(collection)}Key"]

    def value(self, collection: str) -> Descriptor:
        return self.messages[f"{camel(collection)}Value"]

    def _has_both(self, collection: str) -> bool:
        return f"{camel(collection)}Key" in self.messages and f"{camel(collection)}Value" in self.messages

    def parts(self, collection: str) -> set[str]:
        """Return the messages and enums of a collection's rows, by their names within the file."""
        prefix = f"{self.proto.package}." if self.proto.package else ""
        messages = [message for half in (self.key(collection), self.value(collection)) for message in closure(half)]
        enums = [field.enum_type for message in messages for field in message.fields if field.enum_type is not None]
        return {part.full_name.removeprefix(prefix) for part in (*messages, *enums)}

    @cached_property
    def collection_hashes(self) -> dict[str, str]:
        """Return, per collection, the hash of all types of its rows."""
        parts = {collection: self.parts(collection) for collection in self.collections}
        return {
            collection: _digest({name: shape for name, shape in self.shapes.items() if name in own})
            for collection, own in parts.items()
        }

    @cached_property
    def numbers(self) -> dict[str, dict[int, tuple[str, str]]]:
        """Return, per message and enum, the name and kind of each number."""
        return {
            name: {f["number"]: (f["name"], f.get("kind", "value")) for f in shape["members"]}
            for name, shape in self.shapes.items()
        }


@cache
def compile_proto(source: bytes) -> ProtoTypes:
    """Compile one proto by itself, without an include path."""
    proto = _parse(source)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(proto.SerializeToString())
    file = pool.FindFileByName(proto.name)
    shapes = _shapes(proto)
    return ProtoTypes(proto, dict(file.message_types_by_name), shapes, _digest(shapes))


def run_protoc(arguments: list[str]) -> tuple[bool, str]:
    """Run protoc in this process; return whether it succeeded, and its output."""
    try:
        from grpc_tools import _protoc_compiler  # noqa: PLC0415 - only what compiles needs protoc
    except ImportError as error:
        raise GateError(
            "protoc is not installed",
            f"protos are compiled with it ({error})",
            "pip install 'stash-catalog[gate]'"
            if __name__.startswith("catalog._gate.")
            else f"pip install '{PROTOC_REQUIREMENT}'",
        ) from error
    with tempfile.TemporaryFile() as output:
        saved = os.dup(2)
        try:
            os.dup2(output.fileno(), 2)
            status = _protoc_compiler.run_main([argument.encode() for argument in ["protoc", *arguments]])
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        output.seek(0)
        return status == 0, output.read().decode(errors="replace")


def camel(collection: str) -> str:
    return "".join(part.capitalize() for part in collection.split("_"))


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@lru_cache(maxsize=4096)
def closure(message: Descriptor) -> tuple[Descriptor, ...]:
    """Return a message and every message that it can contain."""
    seen: dict[str, Descriptor] = {}
    stack = [message]
    while stack:
        current = stack.pop()
        if current.full_name not in seen:
            seen[current.full_name] = current
            stack += [field.message_type for field in current.fields if field.message_type is not None]
    return tuple(seen.values())


@lru_cache(maxsize=4096)
def is_recursive(message: Descriptor) -> bool:
    return any(
        message.full_name == inner.full_name
        for field in message.fields
        if field.message_type is not None
        for inner in closure(field.message_type)
    )


@dataclass(frozen=True, slots=True)
class TypeChange:
    part: str
    """The message or enum that changed."""
    text: str


def differences(old: ProtoTypes, new: ProtoTypes) -> list[TypeChange]:
    """Describe each change from one set of types to another."""
    before, after = old.shapes, new.shapes
    changes = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            changes.append(TypeChange(name, f"{name} removed"))
        elif name not in before:
            changes.append(TypeChange(name, f"{name} added"))
        else:
            changes += [TypeChange(name, text) for text in _member_differences(name, before[name], after[name])]
    return changes


def collection_differences(old: ProtoTypes, new: ProtoTypes, collection: str) -> list[str]:
    parts = old.parts(collection) | new.parts(collection)
    return [change.text for change in differences(old, new) if change.part in parts]


def changed_collections(old: ProtoTypes, new: ProtoTypes) -> list[str]:
    """Return the collections of both versions whose types differ, except those of the engine."""
    both = set(old.collections) & set(new.collections) - set(ENGINE_COLLECTIONS)
    return sorted(name for name in both if old.collection_hashes[name] != new.collection_hashes[name])


def _member_differences(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    before = {member["number"]: member for member in old["members"]}
    after = {member["number"]: member for member in new["members"]}
    for number in sorted(before.keys() | after.keys()):
        if number not in after:
            yield f"{name}.{before[number]['name']} ({number}) removed"
        elif number not in before:
            yield f"{name}.{after[number]['name']} ({number}) added"
        elif before[number] != after[number]:
            yield f"{name}.{before[number]['name']} ({number}) {_member_change(before[number], after[number])}"
    if old["reserved"] != new["reserved"]:
        yield f"{name}: its reserved numbers changed"
    if old["options"] != new["options"]:
        yield f"{name}: its options changed"


def _member_change(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe the change of a field or enum value that keeps its number."""
    parts = [] if old["name"] == new["name"] else [f"renamed to {new['name']}"]
    if (was := declared_type(old)) != (now := declared_type(new)):
        parts.append(f"changed from {was} to {now}")
    settings = [name for name in ("json_name", "options") if old.get(name) != new.get(name)]
    if settings:
        parts.append(f"changed in its {' and '.join(settings)}")
    return ", ".join(parts)


def declared_type(member: dict[str, Any]) -> str:
    """Return the type of a field as it is declared, such as `optional uint64`; that of an enum value is `value`."""
    label = "repeated " * ("repeated" in member) + "optional " * ("optional" in member)
    group = f" in the oneof {member['oneof']}" if "oneof" in member else ""
    return f"{label}{member.get('type') or member.get('kind', 'value')}{group}"


def _stems(messages: dict[str, Descriptor]) -> set[str]:
    """Return the collections that messages are named after; a name that is not CamelCase is returned unchanged."""
    stems = {name.removesuffix(half) for name in messages for half in ("Key", "Value") if name.endswith(half)} - {""}
    return {snake(stem) if camel(snake(stem)) == stem else stem for stem in stems}


def _parse(source: bytes) -> descriptor_pb2.FileDescriptorProto:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "objects.proto").write_bytes(source)
        output = Path(folder) / "types.bin"
        ok, printed = run_protoc(
            [f"-I{folder}", "--include_source_info", f"--descriptor_set_out={output}", "objects.proto"]
        )
        if not ok:
            place = _ERROR_LINE.search(printed)
            if place is None:
                raise ProtoError(0, printed.strip() or "protoc failed without a message")
            raise ProtoError(int(place["line"]), "; ".join(m["message"] for m in _ERROR_LINE.finditer(printed)))
        proto = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes()).file[0]
        if proto.dependency:  # protoc also looks beside the interpreter, where a machine may have protos of its own
            line = next((place.span[0] + 1 for place in proto.source_code_info.location if place.path[0:1] == [3]), 0)
            raise ProtoError(line, f'Import "{proto.dependency[0]}" is no part of the file.')
        return proto


def _digest(shapes: dict[str, Any]) -> str:
    text = json.dumps(shapes, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _shapes(proto: descriptor_pb2.FileDescriptorProto) -> dict[str, Any]:
    prefix = f".{proto.package}." if proto.package else "."
    shapes: dict[str, Any] = {}

    def add_enum(scope: str, enum: descriptor_pb2.EnumDescriptorProto) -> None:
        shapes[scope + enum.name] = {
            "members": sorted(
                ({"name": v.name, "number": v.number} for v in enum.value), key=lambda v: (v["number"], v["name"])
            ),
            "reserved": sorted([r.start, r.end] for r in enum.reserved_range),
            "options": _options(enum),
        }

    def add_message(scope: str, message: descriptor_pb2.DescriptorProto) -> None:
        name = scope + message.name
        shapes[name] = {
            "members": sorted((_member(message, f, prefix) for f in message.field), key=lambda f: int(f["number"])),
            "reserved": sorted([r.start, r.end - 1] for r in message.reserved_range),
            "options": _options(message),
        }
        for nested in message.nested_type:
            add_message(f"{name}.", nested)
        for enum in message.enum_type:
            add_enum(f"{name}.", enum)

    for message in proto.message_type:
        add_message("", message)
    for enum in proto.enum_type:
        add_enum("", enum)
    return shapes


def _member(message: descriptor_pb2.DescriptorProto, field: _Field, prefix: str) -> dict[str, Any]:
    member: dict[str, Any] = {
        "name": field.name,
        "number": field.number,
        "kind": _Field.Type.Name(field.type).removeprefix("TYPE_").lower(),
        "options": _options(field),
    }
    if field.json_name != _default_json_name(field.name):
        member["json_name"] = field.json_name
    if field.type_name:
        member["type"] = field.type_name.removeprefix(prefix)
    if field.label == _Field.LABEL_REPEATED:
        member["repeated"] = True
    if field.proto3_optional:
        member["optional"] = True
    elif field.HasField("oneof_index"):
        member["oneof"] = message.oneof_decl[field.oneof_index].name
    return member


def _default_json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _options(declared: Any) -> dict[str, Any]:  # noqa: ANN401 - each kind of declaration has its own options type
    if not declared.HasField("options"):
        return {}
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 - few types have options

    return MessageToDict(declared.options)
