"""Rules about `privacy.py`: each path leads to a text or a list of some version."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from ..protos.types import ProtoTypes
from ..sources.privacy import PrivacyPath
from ..spelling import suggestion
from ..workspace import Workspace

_TEXTS = {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}


def check(workspace: Workspace) -> None:
    if workspace.versions is None or workspace.current is None:
        return
    if workspace.snapshots.keys() < set(workspace.versions.snapshots):
        return  # a path may be of a version that is missing, which is told
    versions = [workspace.current, *(types for _, types in sorted(workspace.snapshots.items(), reverse=True))]
    retired = workspace.hashes.retired_numbers if workspace.hashes is not None else {}
    of_retired_versions = {name for fields in retired.values() for name in fields.values()}
    for path in workspace.privacy or ():
        if path.is_computed:
            what = f"`{path.path}` is computed, and the gate reads what is written"
            workspace.add("C904", workspace.tree.privacy, what, "write its paths as literals", path.line)
            continue
        problems = [_problem(path, types) for types in versions]
        if None not in problems and path.path.rpartition(".")[2] not in of_retired_versions:
            # The problem that is the most special: a version that has the collection tells more than one that has not.
            what, fix = max((problem for problem in problems if problem), key=lambda problem: problem[0])[1:]
            workspace.add("C904", workspace.tree.privacy, f"`{path.path}`: {what}", fix, path.line)


_Problem = tuple[int, str, str]
"""The number of steps that the path led, what is wrong, and the advice."""


def _problem(path: PrivacyPath, types: ProtoTypes) -> _Problem | None:
    collection, *names = path.path.split(".")
    if collection not in types.collections:
        return 0, f"no version has a collection `{collection}`", suggestion(collection, types.collections)
    if not names or names[0] not in {"key", "value"}:
        return 1, "it does not lead from the key or the value to a field", f"write it as `{collection}.value.name`"
    message: Descriptor | None = types.key(collection) if names[0] == "key" else types.value(collection)
    field: FieldDescriptor | None = None
    for depth, name in enumerate(names[1:], start=2):
        if message is None:
            return depth, f"it goes on to `{name}`, and the field before it has no members", "end it before that"
        field = message.fields_by_name.get(name)
        if field is None:
            what = f"no version of {message.name} has a field `{name}`"
            return depth, what, suggestion(name, message.fields_by_name)
        message = field.message_type
    return _unfit(path, field, len(names) + 1)


def _unfit(path: PrivacyPath, field: FieldDescriptor | None, depth: int) -> _Problem | None:
    if path.is_list:
        if field is None or not field.is_repeated or field.message_type is None:
            return depth, "it is no list of messages, and has no order", "remove it from `ordered`"
        if path.member not in field.message_type.fields_by_name:
            what = f"no version of {field.message_type.name} has a field `{path.member}`"
            return depth, what, suggestion(path.member or "", field.message_type.fields_by_name)
        return None
    if field is None or field.type not in _TEXTS:
        return depth, "it is no text and no bytes, so nothing of it is replaced", "name the fields that hold texts"
    return None
