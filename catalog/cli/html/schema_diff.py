"""The differences between the types of two versions, by message and field, from their frozen descriptors.

Fields are matched by number, as protobuf does, and those that are left by name: a field that changes its type in a way
that rows of before cannot be read by gets a new number. Where a version is older than protobuf there are no numbers,
and only messages are compared.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from catalog.engine.base.project import Project
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS, LegacyRows, row_types
from catalog.engine.stash.registry import Collection

_SCALARS = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}

_WORDS: Mapping[type, str] = {str: "string", int: "int64", bool: "bool", bytes: "bytes"}


class DiffKind(enum.StrEnum):
    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    RETYPED = "retyped"
    RENUMBERED = "renumbered"


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a message, or a value of an enum."""

    name: str
    type: str
    """As a proto has it; of a value of an enum, empty."""
    number: int | None
    """None: it is older than protobuf."""


@dataclass(frozen=True, slots=True)
class TypePart:
    """A message or an enum."""

    name: str
    members: tuple[Member, ...]
    collections: tuple[str, ...]
    """The collections whose rows have it."""


@dataclass(frozen=True, slots=True)
class MemberChange:
    before: Member | None
    after: Member | None

    @property
    def change(self) -> DiffKind:
        if self.before is None:
            return DiffKind.ADDED
        if self.after is None:
            return DiffKind.REMOVED
        if self.before.type != self.after.type:
            return DiffKind.RETYPED
        if self.before.name != self.after.name:
            return DiffKind.RENAMED
        return DiffKind.SAME if None in (self.before.number, self.after.number) or self._is_one else DiffKind.RENUMBERED

    @property
    def numbers(self) -> str:
        """Of the field, before and after if they differ."""
        known = [own.number for own in (self.before, self.after) if own is not None and own.number is not None]
        return " → ".join(map(str, dict.fromkeys(known)))

    @property
    def _is_one(self) -> bool:
        return self.before is not None and self.after is not None and self.before.number == self.after.number


@dataclass(frozen=True, slots=True)
class PartChange:
    name: str
    change: DiffKind
    """ADDED or REMOVED as a whole; else SAME, and members differ."""
    members: tuple[MemberChange, ...]
    collections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    previous: int
    version: int
    parts: tuple[PartChange, ...]
    by_name: bool
    """True if the earlier version is older than protobuf, so that its fields have no numbers."""

    @property
    def counts(self) -> Mapping[DiffKind, int]:
        """Fields by what became of them."""
        found = [own.change for part in self.parts for own in part.members]
        return {change: found.count(change) for change in DiffKind if change is not DiffKind.SAME and change in found}


def differences(project: Project, previous: int, version: int) -> Differences:
    by_name = previous < project.first_proto
    before, after = _parts(project, previous, by_name=by_name), _parts(project, version, by_name=by_name)
    changed = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        members = tuple(_members(old.members if old else (), new.members if new else ()))
        whole = DiffKind.ADDED if old is None else DiffKind.REMOVED if new is None else DiffKind.SAME
        if whole is not DiffKind.SAME or any(own.change is not DiffKind.SAME for own in members):
            used = sorted({name for part in (old, new) if part is not None for name in part.collections})
            changed.append(PartChange(name, whole, members, tuple(used)))
    return Differences(previous, version, tuple(changed), by_name=by_name)


def _parts(project: Project, version: int, *, by_name: bool) -> Mapping[str, TypePart]:
    """Every message and enum that rows of a version are made of, or only messages that both kinds of rows have."""
    members: dict[str, tuple[Member, ...]] = {}
    used: dict[str, set[str]] = {}
    for collection, kind in row_types(project, version).items():
        if not (by_name and collection in ENGINE_COLLECTIONS):
            for name, own in _reached(kind, enums=not by_name):
                members[name] = own
                used.setdefault(name, set()).add(collection)
    return {name: TypePart(name, own, tuple(sorted(used[name]))) for name, own in members.items()}


def _members(old: Sequence[Member], new: Sequence[Member]) -> Iterator[MemberChange]:
    """The members of before in their order, each beside what became of it, then those that came."""
    by_number = {own.number: own for own in new}
    kept: dict[int | None, Member] = {
        own.number: by_number[own.number] for own in old if own.number is not None and own.number in by_number
    }
    by_name = {own.name: own for own in new if own.number not in kept}
    for own in old:
        yield MemberChange(own, kept.get(own.number) or by_name.pop(own.name, None))
    yield from (MemberChange(None, own) for own in by_name.values())


def _reached(kind: object, *, enums: bool) -> Iterator[tuple[str, tuple[Member, ...]]]:
    """The messages and enums that a collection's rows can hold, each with its members."""
    seen: dict[str, tuple[Member, ...]] = {}
    stack: list[Any]
    if isinstance(kind, Collection):
        stack = [kind.key_type.DESCRIPTOR, kind.value_type.DESCRIPTOR]
    elif isinstance(kind, LegacyRows):
        stack = [kind.key_type, kind.value_type]
    else:
        raise TypeError(f"{type(kind).__name__} has no types to be compared")
    while stack:
        current = stack.pop()
        match current:
            case Descriptor():
                name, own, inner = _message(current)
            case EnumDescriptor():
                name, inner = _local(current), []
                own = tuple(Member(value.name, "", value.number) for value in current.values)
            case _:
                name, own, inner = _legacy(current)
        if name not in seen and (enums or not isinstance(current, EnumDescriptor)):
            seen[name] = own
            stack += inner
    yield from seen.items()


def _message(message: Descriptor) -> tuple[str, tuple[Member, ...], list[Any]]:
    inner: list[Any] = []
    for field in message.fields:
        entry = _entry(field)
        held = entry.fields_by_name["value"] if entry is not None else field
        inner += [own for own in (held.message_type, held.enum_type) if own is not None]
    return _local(message), tuple(Member(own.name, _spelt(own), own.number) for own in message.fields), inner


def _spelt(field: FieldDescriptor) -> str:
    """The type of a field as a proto has it, with what else decides how a row is read."""
    entry = _entry(field)
    if entry is not None:
        key, value = (entry.fields_by_name[side] for side in ("key", "value"))
        return f"map<{_plain(key)}, {_plain(value)}>"
    if field.is_repeated:
        return f"repeated {_plain(field)}"
    choice = field.containing_oneof
    if choice is None:
        return _plain(field)
    is_optional = len(choice.fields) == 1  # protobuf keeps that as a oneof of one
    return f"optional {_plain(field)}" if is_optional else f"{_plain(field)} (one of {choice.name})"


def _plain(field: FieldDescriptor) -> str:
    held = field.message_type or field.enum_type
    return _SCALARS[field.type] if held is None else _local(held)


def _entry(field: FieldDescriptor) -> Descriptor | None:
    held = field.message_type
    return held if held is not None and held.GetOptions().map_entry else None


def _local(declared: Descriptor | EnumDescriptor) -> str:
    """The name within its file: the package has the version in it."""
    package = declared.file.package
    return declared.full_name.removeprefix(f"{package}.") if package else declared.full_name


def _legacy(kind: Any) -> tuple[str, tuple[Member, ...], list[Any]]:  # noqa: ANN401 - any dataclass
    hints = get_type_hints(kind, include_extras=True)
    spelt = {own.name: _spelt_hint(hints[own.name]) for own in fields(kind)}
    inner = [held for hint in hints.values() for held in _held(hint)]
    return kind.__name__, tuple(Member(name, text, None) for name, text in spelt.items()), inner


def _spelt_hint(hint: Any) -> str:  # noqa: ANN401 - annotations
    """A type of before protobuf, in the words of a proto."""
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Annotated:
            return f"uint{arguments[1]}"
        case origin if origin in (Union, UnionType):
            return f"optional {_spelt_hint(arguments[0])}"
        case origin if origin is tuple:
            return f"repeated {_spelt_hint(arguments[0])}"
        case None:
            return _WORDS.get(hint, str(hint.__name__))
        case _:
            return f"map<{', '.join(map(_spelt_hint, arguments))}>"


def _held(hint: Any) -> Iterator[Any]:  # noqa: ANN401 - annotations
    """The messages in a type; enums of before protobuf are texts."""
    if is_dataclass(hint):
        yield hint
    for argument in get_args(hint):
        yield from _held(argument)
