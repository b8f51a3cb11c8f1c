"""The page of the current types, from `proto/objects.proto` and its comments; only the site has it.

On the code host, links lead to the proto itself. So a change of the types changes no committed page.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from grpc_tools import protoc

from catalog.constraints import CONSTRAINTS
from catalog.engine.stash.registry import Registry
from catalog.upgrade import PROJECT
from catalog.version import STASH_VERSION
from docs.links import ROOT

PROTO = ROOT / "proto" / "objects.proto"
Comments = Mapping[tuple[int, ...], str]
_MESSAGE, _ENUM, _FIELD, _MEMBER = 4, 5, 2, 2
"""Field numbers of descriptors; the path of a comment consists of them."""


def types() -> str:
    file = _parse()
    comments = {
        tuple(place.path): " ".join(place.leading_comments.split())
        for place in file.source_code_info.location
        if place.leading_comments
    }
    heads = {
        tuple(place.path): " ".join(place.leading_detached_comments[-1].split())
        for place in file.source_code_info.location
        if place.leading_detached_comments
    }
    lines = [
        "# Types",
        "",
        f"The types of version {STASH_VERSION}, from `proto/objects.proto`. Each row of a collection is a key and a",
        "value; from Python they are messages of `catalog.objects`.",
        "",
    ]
    messages = {message.name: (number, message) for number, message in enumerate(file.message_type)}
    for name, collection in Registry.of(PROJECT.current_types).by_name.items():
        key, value = collection.key_type.DESCRIPTOR.name, collection.value_type.DESCRIPTOR.name
        head = heads.get((_MESSAGE, messages[key][0]), "").partition(f"{name}: ")[2]
        lines += [f"## {name}", "", *([head[:1].upper() + head[1:], ""] if head else []), *_rules(name)]
        for own in (key, value):
            lines += _fields(*messages.pop(own), comments)
    lines += ["## Parts of rows", "", "Messages and enumerations that several collections have in their rows.", ""]
    for number, message in messages.values():
        lines += _fields(number, message, comments)
    for number, enum in enumerate(file.enum_type):
        lines += _members(number, enum, comments)
    return "\n".join(lines)


def _parse() -> FileDescriptorProto:
    with tempfile.TemporaryDirectory() as folder:
        parsed = Path(folder) / "set"
        include = resources.files("grpc_tools") / "_proto"
        status = protoc.main(
            ["", f"-I{PROTO.parent}", f"-I{include}", "--include_source_info", f"-o{parsed}", PROTO.name]
        )
        if status != 0:
            raise ValueError(f"{PROTO} cannot be parsed")
        return FileDescriptorSet.FromString(parsed.read_bytes()).file[0]


def _rules(collection: str) -> Iterator[str]:
    """Yield the constraints of a collection in the current version."""
    present = CONSTRAINTS.at(STASH_VERSION)
    for unique in present.uniques_of(collection):
        together = " together" if len(unique.paths) > 1 else ""
        yield f"- unique{together}: {', '.join(f'`{path}`' for path in unique.paths)}"
    for reference in present.references_of(collection):
        yield f"- `{reference.path}` refers to [`{reference.target}`](#{reference.target})"
    yield ""


def _fields(number: int, message: DescriptorProto, comments: Comments) -> Iterator[str]:
    yield from (f"### {message.name}", "")
    if comment := comments.get((_MESSAGE, number)):
        yield from (comment, "")
    if not message.field:
        yield from ("It has no fields.", "")
        return
    yield from ("| field | type | number | |", "|---|---|---|---|")
    for place, field in enumerate(message.field):
        comment = comments.get((_MESSAGE, number, _FIELD, place), "")
        yield f"| `{field.name}` | {_kind(field, message)} | {field.number} | {comment} |"
    yield ""


def _kind(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    name = field.type_name.rpartition(".")[2]
    kind = f"[`{name}`](#{name.lower()})" if name else f"`{_TYPES[field.type]}`"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {kind}"
    if field.proto3_optional:
        return f"optional {kind}"
    return f"{kind}, one of `{message.oneof_decl[field.oneof_index].name}`" if field.HasField("oneof_index") else kind


def _members(number: int, enum: EnumDescriptorProto, comments: Comments) -> Iterator[str]:
    yield from (f"### {enum.name}", "")
    if comment := comments.get((_ENUM, number)):
        yield from (comment, "")
    yield from ("| member | number | |", "|---|---|---|")
    for place, member in enumerate(enum.value):
        yield f"| `{member.name}` | {member.number} | {comments.get((_ENUM, number, _MEMBER, place), '')} |"
    yield ""


_TYPES = {
    value.number: value.name.removeprefix("TYPE_").lower() for value in FieldDescriptorProto.Type.DESCRIPTOR.values
}
