"""Rules about `constraints.py`: each constraint fits the types of every version that it holds for."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from ..protos.types import ProtoTypes
from ..sources.constraints import DeclaredConstraint
from ..spelling import suggestion
from ..workspace import Workspace


def check(workspace: Workspace) -> None:
    declared, versions, path = workspace.constraints, workspace.versions, workspace.tree.constraints
    if declared is None or versions is None:
        return
    for kind, line in declared.computed:
        what = f"a {kind} is computed, and the gate reads what is written"
        workspace.add("C900", path, what, "write its collection, paths, target and version as literals", line)
    for line in declared.texts:
        what = "the paths of a Unique are one text, and each of its letters would be a path"
        workspace.add("C902", path, what, 'write a tuple, with its comma: ("value.name",)', line)
    judged = {v: types for v, types in workspace.snapshots.items() if v not in workspace.altered_snapshots}
    for constraint in declared.all:
        if constraint.since > versions.current:
            what = f"{constraint} holds since version {constraint.since}, and the newest is {versions.current}"
            workspace.add(
                "C903", path, what, f"write since={versions.current}, or a version before it", constraint.line
            )
            continue
        own = {version: types for version, types in judged.items() if version >= constraint.since}
        found = {version: problem for version, types in own.items() if (problem := _problem(constraint, types))}
        for code, what, fix in sorted(set(found.values())):
            wrong = [version for version, problem in found.items() if problem == (code, what, fix)]
            rest = [version for version in own if version > max(wrong)]
            advice = f"if it holds from then on: since={min(rest)}" if rest else fix
            at = f"v{wrong[0]}" if len(wrong) == 1 else f"v{min(wrong)} to v{max(wrong)}"
            workspace.add(code, path, f"{constraint}: {what} (in {at})", advice, constraint.line)


_Problem = tuple[str, str, str]
"""The code of a finding, what is wrong, and the advice."""


def _problem(constraint: DeclaredConstraint, types: ProtoTypes) -> _Problem | None:
    for name in (constraint.collection, constraint.target):
        if name is not None and name not in types.collections:
            return "C901", f"there is no collection `{name}`", suggestion(name, types.collections)
    if not constraint.paths:
        return "C902", "it names no field", 'name at least one: ("value.name",)'
    for path in constraint.paths:
        field = _field_at(types, constraint.collection, path)
        if isinstance(field, tuple):
            return field
        if constraint.target is not None:
            return _reference_problem(types, constraint.target, path, field)
    return None


def _field_at(types: ProtoTypes, collection: str, path: str) -> FieldDescriptor | _Problem:
    side, *names = path.split(".")
    if side not in {"key", "value"} or not names:
        return "C902", f"`{path}` does not lead from the key or the value to a field", "write it as `value.name`"
    message: Descriptor | None = types.key(collection) if side == "key" else types.value(collection)
    field = None
    for name in names:
        if message is None:
            return "C902", f"`{path}` goes on to `{name}`, and the field before it has no members", "end it before that"
        field = message.fields_by_name.get(name)
        if field is None:
            return "C902", f"`{path}`: {message.name} has no field `{name}`", suggestion(name, message.fields_by_name)
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            return "C903", f"`{path}`: `{name}` is a map, whose entries have no order", "use a repeated message"
    return field if field is not None else ("C902", f"`{path}` names no field", "write it as `value.name`")


def _reference_problem(types: ProtoTypes, target: str, path: str, field: FieldDescriptor) -> _Problem | None:
    key = types.key(target)
    identity = key.fields_by_name.get("id")
    if identity is None or len(key.fields) != 1 or identity.is_repeated:
        return "C903", f"the key of `{target}` is not one field `id`", "refer to a collection whose key is one `id`"
    if _kind(field) != _kind(identity):
        what = f"`{path}` is {_kind(field)}, and the key of `{target}` is {_kind(identity)}"
        return "C903", what, "refer by a field of the type that the key has"
    return None


def _kind(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return str(field.message_type.name)
    return _NAMES[field.type]


_NAMES = {
    value: name.removeprefix("TYPE_").lower() for name, value in vars(FieldDescriptor).items() if name[:5] == "TYPE_"
}
