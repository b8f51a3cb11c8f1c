"""Rules about the types themselves, current and frozen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from google.protobuf.descriptor import FieldDescriptor

from ..descriptors import ENGINE_COLLECTIONS, Types, camel, closure, is_recursive
from ..tree import AMEND
from ..wire import wire_compatible
from ..workspace import Workspace

_FLOATS = {FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT}


def check(workspace: Workspace) -> None:
    for path, types in _all_types(workspace):
        _check_dialect(workspace, path, types)
        _check_collections(workspace, path, types)
    _check_numbers(workspace)
    _check_engine(workspace)


def _all_types(workspace: Workspace) -> Iterator[tuple[Path, Types]]:
    """Every set of types from oldest to newest; the current ones only where they differ from their snapshot."""
    newest = None
    for version, types in sorted(workspace.snapshots.items()):
        newest = types
        yield workspace.tree.snapshot(version), types
    if workspace.current is not None and (newest is None or workspace.current.hash != newest.hash):
        yield workspace.tree.objects, workspace.current


def _check_dialect(workspace: Workspace, path: Path, types: Types) -> None:
    if types.proto.syntax != "proto3":
        workspace.add(
            "T104",
            path,
            f"its syntax is {types.proto.syntax or 'proto2'}",
            'begin the file with: syntax = "proto3";',
            1,
        )
    if types.proto.extension or any(message.extension for message in types.proto.message_type):
        workspace.add("T103", path, "it extends another message", "remove the `extend` block")


def _check_collections(workspace: Workspace, path: Path, types: Types) -> None:
    for half in types.half_collections:
        workspace.add(
            "T108",
            path,
            f"`{half}` is not both {camel(half)}Key and {camel(half)}Value",
            "add what is missing, or name the message differently",
        )
    for engine in ENGINE_COLLECTIONS:
        if engine not in types.collections:
            workspace.add(
                "T109",
                path,
                f"the collection `{engine}` is not there",
                f"restore its messages: {workspace.restore(path)}",
            )
    for collection in types.collections:
        _check_key(workspace, path, types, collection)
        for message in (*closure(types.key(collection)), *closure(types.value(collection))):
            if is_recursive(message):
                what = f"{message.name}, in `{collection}`, can contain itself"
                workspace.add("T107", path, what, "give the nesting a fixed depth, or refer to rows by id")


def _check_key(workspace: Workspace, path: Path, types: Types, collection: str) -> None:
    for message in closure(types.key(collection)):
        for field in message.fields:
            where = f"{message.name}.{field.name}, in the key of `{collection}`"
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                fix = "use a repeated message with sorted, unique entries, or move it to the value"
                workspace.add("T105", path, where, fix)
            elif field.type in _FLOATS:
                workspace.add("T106", path, where, "use an integer in a smaller unit, or move it to the value")


def _check_numbers(workspace: Workspace) -> None:
    """A number that was given up, at any time, never comes back."""
    retired = workspace.hashes.retired_numbers if workspace.hashes else {}
    ever: _Uses = {part: {number: (name, "") for number, name in named.items()} for part, named in retired.items()}
    previous: _Uses = {}
    for path, types in _all_types(workspace):
        for part, numbers in types.numbers.items():
            for number, (name, kind) in numbers.items():
                before = _other_use(part, number, (name, kind), ever, previous)
                if before is not None:
                    what = f"{part}.{name} = {number}: {before}"
                    fix = "give the new one a number that was never used, and reserve the old one"
                    workspace.add("T110", path, what, fix)
                ever.setdefault(part, {})[number] = (name, kind)
        previous = types.numbers


_Uses = dict[str, dict[int, tuple[str, str]]]
"""Per message or enum, what each number stands for: a name and a kind, the kind empty where it is not remembered."""


def _other_use(part: str, number: int, use: tuple[str, str], ever: _Uses, previous: _Uses) -> str | None:
    """How a number was used before, if it now means something else."""
    name, kind = use
    earlier = ever.get(part, {}).get(number)
    if earlier is None:
        return None
    if part not in previous:
        same = earlier[0] == name and earlier[1] in {"", kind}
        return None if same else f"`{earlier[0]}` of an earlier {part} had that number"
    was = previous[part].get(number)
    if was is None:
        return f"`{earlier[0]}`, since deleted, had that number"
    if was[0] != name and was[1] != kind:
        return f"it was `{was[0]}` ({was[1]}) one version before"
    return None


def _check_engine(workspace: Workspace) -> None:
    sequence = list(_all_types(workspace))
    for (_, old), (path, new) in pairwise(sequence):
        for collection in set(ENGINE_COLLECTIONS) & set(old.collections) & set(new.collections):
            for half in ("key", "value"):
                verdict = wire_compatible(getattr(old, half)(collection), getattr(new, half)(collection))
                for reason in verdict.reasons:
                    workspace.add(
                        "T111",
                        path,
                        f"`{collection}`: {reason.path}: {reason.text}",
                        f"only add optional fields with new numbers there; restore the rest, then {AMEND}",
                    )
