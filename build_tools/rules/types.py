"""Rules about the types themselves, current and frozen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from google.protobuf.descriptor import FieldDescriptor

from ..project_tree import AMEND
from ..protos.engine_types import ENGINE_TYPES
from ..protos.types import ENGINE_COLLECTIONS, ProtoTypes, camel, closure, declared_type, is_recursive
from ..protos.wire_compat import wire_compatible
from ..workspace import Workspace
from .version_types import ProtoVersion, all_types, amended

_FLOATS = {FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT}


def check(workspace: Workspace) -> None:
    sequence = list(all_types(workspace))
    for each in sequence:
        _check_dialect(workspace, each.path, each.types)
        _check_collections(workspace, each.path, each.types)
    _check_engine(workspace, sequence)
    _check_engine_names(workspace, sequence)


def _check_dialect(workspace: Workspace, path: Path, types: ProtoTypes) -> None:
    if types.proto.syntax != "proto3":
        what = f"its syntax is {types.proto.syntax or 'proto2'}"
        workspace.add("T104", path, what, 'begin the file with: syntax = "proto3";', 1)
    if types.proto.extension or any(message.extension for message in types.proto.message_type):
        workspace.add("T103", path, "it extends another message", "remove the `extend` block")


def _check_collections(workspace: Workspace, path: Path, types: ProtoTypes) -> None:
    for half in types.half_collections:
        what = f"`{half}` does not have both {camel(half)}Key and {camel(half)}Value"
        workspace.add("T108", path, what, "add the missing message, or rename the other one")
    for engine in ENGINE_COLLECTIONS:
        if engine not in types.collections:
            fix = f"restore its messages: {workspace.restore(path)}"
            workspace.add("T109", path, f"the collection `{engine}` is missing", fix)
    for collection in types.collections:
        _check_key(workspace, path, types, collection)
        for message in (*closure(types.key(collection)), *closure(types.value(collection))):
            if is_recursive(message):
                what = f"{message.name}, in `{collection}`, can contain itself"
                workspace.add("T107", path, what, "give the nesting a fixed depth, or refer to rows by id")


def _check_key(workspace: Workspace, path: Path, types: ProtoTypes, collection: str) -> None:
    for message in closure(types.key(collection)):
        for field in message.fields:
            where = f"{message.name}.{field.name}, in the key of `{collection}`"
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                fix = "use a repeated message with sorted, unique entries, or move it to the value"
                workspace.add("T105", path, where, fix)
            elif field.type in _FLOATS:
                workspace.add("T106", path, where, "use an integer in a smaller unit, or move it to the value")


def _check_engine(workspace: Workspace, sequence: Sequence[ProtoVersion]) -> None:
    for before, after in pairwise(sequence):
        old, new = before.types, after.types
        for collection in set(ENGINE_COLLECTIONS) & set(old.collections) & set(new.collections):
            for half in ("key", "value"):
                verdict = wire_compatible(getattr(old, half)(collection), getattr(new, half)(collection))
                fix = f"only add optional fields with new numbers there; restore the rest, then {AMEND}"
                for reason in verdict.reasons:
                    workspace.add("T111", after.path, f"`{collection}`: {reason.path}: {reason.text}", fix)


def _check_engine_names(workspace: Workspace, sequence: Sequence[ProtoVersion]) -> None:
    """Check that every number of an engine collection has the name that the engine uses, and keeps any other name."""
    expected = {part: {number: name for number, (name, _) in own.items()} for part, own in ENGINE_TYPES.items()}
    for each in sequence:
        engine = set(ENGINE_COLLECTIONS) & set(each.types.collections)
        for part in sorted({part for collection in engine for part in each.types.parts(collection)}):
            for number, (name, _) in each.types.numbers[part].items():
                right = expected.setdefault(part, {}).setdefault(number, name)
                if right != name:
                    what = f"{part}: number {number} is {name}, and the engine knows it as {right}"
                    workspace.add("T112", each.path, what, f"name it {right} again{amended(workspace, each)}")
    if sequence and sequence[-1].is_open:
        _check_engine_complete(workspace, sequence[-1], sequence[-2].types if len(sequence) > 1 else None)


def _check_engine_complete(workspace: Workspace, newest: ProtoVersion, before: ProtoTypes | None) -> None:
    """Check that the types have what the engine uses; what differs from an earlier version is found elsewhere."""
    for part, own in ENGINE_TYPES.items():
        shape = newest.types.shapes.get(part)
        if shape is None:
            if set(ENGINE_COLLECTIONS) <= set(newest.types.collections):
                what = f"{part}, a type that the engine uses, is missing"
                workspace.add("T112", newest.path, what, f"declare {part} again{amended(workspace, newest)}")
            continue
        there = {member["number"]: declared_type(member) for member in shape["members"]}
        known = before.numbers.get(part, {}) if before is not None else {}
        for number, (name, declared) in own.items():
            if number not in known and there.get(number) != declared:
                found = f"is {there[number]}" if number in there else "is missing"
                kind, within, group = declared.partition(" in ")
                line = f"{name} = {number};" if kind == "value" else f"{kind} {name} = {number};"
                what = f"{part}.{name}, which the engine uses, {found}"
                workspace.add("T112", newest.path, what, f"declare `{line}`{within}{group}{amended(workspace, newest)}")
