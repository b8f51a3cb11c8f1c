"""Rules about `initialize.py`: it fits the current types, so that a new store can be made."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.message import Message

from ..protos.types import ProtoTypes
from ..sources.type_uses import Construction, Literal, TypeUses
from ..spelling import suggestion
from ..workspace import Workspace

_OF_ENUMS = {"Name", "Value", "keys", "values", "items", "DESCRIPTOR"}
_Problem = tuple[str, str, int]
"""The mistake, the advice, and the line."""


def check(workspace: Workspace) -> None:
    if workspace.current is None or not workspace.current.messages or workspace.initialize is None:
        return
    for what, fix, line in _problems(workspace.initialize, _Types(workspace.current)):
        workspace.add("C905", workspace.tree.initialize, what, fix, line)


class _Types:
    """The names that `objects.py` has: messages, enums and the values of enums."""

    def __init__(self, types: ProtoTypes) -> None:
        file = next(iter(types.messages.values())).file
        self.messages: dict[str, Descriptor] = {}
        self.enums: dict[str, EnumDescriptor] = dict(file.enum_types_by_name)
        for message in types.messages.values():
            self._add(message.name, message)
        self.values = {name for enum in file.enum_types_by_name.values() for name in enum.values_by_name}
        self.collections = types.collections

    def _add(self, name: str, message: Descriptor) -> None:
        self.messages[name] = message
        self.enums |= {f"{name}.{enum.name}": enum for enum in message.enum_types}
        for nested in message.nested_types:
            self._add(f"{name}.{nested.name}", nested)

    @property
    def all(self) -> set[str]:
        return {name for name in {*self.messages, *self.enums} if "." not in name} | self.values


def _problems(uses: TypeUses, types: _Types) -> Iterator[_Problem]:
    for name, line in uses.imported:
        if name not in types.all:
            yield f"the types have no `{name}`", suggestion(name, types.all), line
    for made in uses.made:
        if made.type in types.messages:
            yield from _unfit_fields(types.messages[made.type], made)
    yield from _unfit_members(uses, types)
    yield from _unfit_rows(uses, types)


def _unfit_members(uses: TypeUses, types: _Types) -> Iterator[_Problem]:
    for name, member, line in uses.type_members:
        enum = types.enums.get(name)
        if enum is not None and member not in {*enum.values_by_name, *_OF_ENUMS}:
            yield f"{name} has no value `{member}`", suggestion(member, enum.values_by_name), line
    for name, member, line in uses.message_members:
        message = types.messages.get(name)
        if message is not None and member not in message.fields_by_name and not hasattr(Message, member):
            yield f"{name} has no field `{member}`", suggestion(member, message.fields_by_name), line


def _unfit_rows(uses: TypeUses, types: _Types) -> Iterator[_Problem]:
    for key, value, line in uses.rows:
        stem = key.removesuffix("Key")
        if key in types.messages and value in types.messages and (stem == key or value != f"{stem}Value"):
            fix = f"write a {stem}Value" if stem != key else "the first message is a key, such as RoleKey"
            yield f"a row cannot have a {key} and a {value}", fix, line


def _unfit_fields(message: Descriptor, made: Construction) -> Iterator[_Problem]:
    for name, literal in made.keywords:
        field = message.fields_by_name.get(name)
        if field is None:
            yield f"{made.type} has no field `{name}`", suggestion(name, message.fields_by_name), made.line
        elif (enum := field.enum_type) is not None and literal is not None and not _is_declared(enum, literal):
            what = f"{made.type}.{name} is {literal!r}, which {enum.name} does not declare"
            yield what, suggestion(str(literal), enum.values_by_name), made.line


def _is_declared(enum: EnumDescriptor, literal: Literal) -> bool:
    return literal in (enum.values_by_name if isinstance(literal, str) else enum.values_by_number)
