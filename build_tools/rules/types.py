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
                f"restore its messages: git checkout -- {workspace.tree.relative(path)}",
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
    ever: dict[str, dict[int, str]] = {owner: dict(numbers) for owner, numbers in retired.items()}
    previous: dict[str, dict[int, tuple[str, str]]] = {}
    for path, types in _all_types(workspace):
        for owner, numbers in types.numbers.items():
            before = previous.get(owner)
            for number, (name, kind) in numbers.items():
                used_by = ever.setdefault(owner, {}).get(number)
                was = before.get(number) if before is not None else None
                if used_by is not None and was is None and before is not None:
                    _reused(
                        workspace, path, f"{owner}.{name} = {number}", f"`{used_by}`, since deleted, had that number"
                    )
                elif used_by is not None and before is None and used_by != name:
                    _reused(
                        workspace,
                        path,
                        f"{owner}.{name} = {number}",
                        f"`{used_by}` of an earlier {owner} had that number",
                    )
                elif was is not None and was[0] != name and was[1] != kind:
                    _reused(
                        workspace,
                        path,
                        f"{owner}.{name} = {number}",
                        f"it was `{was[0]}` ({was[1]}) one version before",
                    )
                ever[owner][number] = name
        previous = types.numbers


def _reused(workspace: Workspace, path: Path, what: str, before: str) -> None:
    workspace.add(
        "T110", path, f"{what}: {before}", "give the new one a number that was never used, and reserve the old one"
    )


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
