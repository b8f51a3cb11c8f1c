"""Judges whether rows written as one version of a message can stay as they are under another.

Owns the rules of wire compatibility and the words in which they are told. A positive verdict is a promise:
the bytes of every old message, as deterministic serialisation writes them, parse as the new type, leave no
unknown field, are written again as the same bytes, and mean the same. It never judges by the name of a
field, a message or an enum: fields are matched by number, types by structure.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from google.protobuf import descriptor_pb2

from .wire_kinds import KindChange, can_rewrite, change_of_kind, map_entry, spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor


class Rule(enum.StrEnum):
    """Why a verdict is negative."""

    FIELD_DELETED = enum.auto()
    NUMBER_REUSED = enum.auto()
    RESERVED_USED = enum.auto()
    RESERVED_DROPPED = enum.auto()
    INTEGER_NARROWED = enum.auto()
    SIGN_CHANGED = enum.auto()
    SIGN_CUT = enum.auto()
    INTEGER_BECAME_ENUM = enum.auto()
    TEXT_NARROWED = enum.auto()
    KIND_CHANGED = enum.auto()
    KIND_REREAD = enum.auto()
    CARDINALITY_CHANGED = enum.auto()
    CARDINALITY_REREAD = enum.auto()
    PACKING_CHANGED = enum.auto()
    PRESENCE_LOST = enum.auto()
    ONEOF_MERGED = enum.auto()
    ONEOF_CHANGED = enum.auto()
    ENUM_VALUE_DELETED = enum.auto()
    MAP_KEY_CHANGED = enum.auto()
    NOT_PROTO3 = enum.auto()

    @property
    def breaks_bytes(self) -> bool:
        """Whether some old message surely loses its bytes; else they may survive, but not their meaning."""
        return self in _BREAKS_BYTES

    @property
    def why(self) -> str:
        """Why the rule exists, as the end of a sentence."""
        return _WHY[self]


_WHY: Final = {
    Rule.FIELD_DELETED: "stored values of it would be dropped, because unknown fields are not kept",
    Rule.NUMBER_REUSED: "a number means one field for ever, or what an earlier version wrote is misread",
    Rule.RESERVED_USED: "the number was set aside so that nothing new is taken for what it once meant",
    Rule.RESERVED_DROPPED: "a reservation lasts for ever, or something else takes the number unnoticed",
    Rule.INTEGER_NARROWED: "a number that needs more bits than the new type has would be cut",
    Rule.SIGN_CHANGED: "a negative number and a very large one share their bytes, and would be confused",
    Rule.SIGN_CUT: "a number that only one of the two can hold would turn into another and change its bytes",
    Rule.INTEGER_BECAME_ENUM: "a stored number that no value of the enum names would have no meaning",
    Rule.TEXT_NARROWED: "bytes that are not UTF-8 cannot be read as a string",
    Rule.KIND_CHANGED: "the two are encoded differently, so stored values would be lost or unreadable",
    Rule.KIND_REREAD: "the two are encoded alike, so stored values may turn into others without an error",
    Rule.CARDINALITY_CHANGED: "one value, a list and a map are written differently, so bytes would change",
    Rule.CARDINALITY_REREAD: "the bytes may parse, but one value, a list and a map do not mean the same",
    Rule.PACKING_CHANGED: "the elements would be written in another layout than the stored bytes have",
    Rule.PRESENCE_LOST: "a value set to the default could not be told from one that was never set",
    Rule.ONEOF_MERGED: "a row may hold both fields, and a oneof keeps only the last of them",
    Rule.ONEOF_CHANGED: "which fields exclude each other is part of what a row means",
    Rule.ENUM_VALUE_DELETED: "a row that holds the value would hold a number without a name",
    Rule.MAP_KEY_CHANGED: "entries are written in an order that depends on the key's type and is not fixed",
    Rule.NOT_PROTO3: "presence, packing and enums follow other rules outside proto3 and are not judged here",
}
_BREAKS_BYTES: Final = frozenset(
    {
        Rule.FIELD_DELETED,
        Rule.INTEGER_NARROWED,
        Rule.SIGN_CUT,
        Rule.TEXT_NARROWED,
        Rule.KIND_CHANGED,
        Rule.CARDINALITY_CHANGED,
        Rule.PACKING_CHANGED,
        Rule.PRESENCE_LOST,
        Rule.ONEOF_MERGED,
    }
)
_KIND_RULES: Final = {
    KindChange.INTEGER_NARROWED: Rule.INTEGER_NARROWED,
    KindChange.SIGN_CHANGED: Rule.SIGN_CHANGED,
    KindChange.SIGN_CUT: Rule.SIGN_CUT,
    KindChange.INTEGER_BECAME_ENUM: Rule.INTEGER_BECAME_ENUM,
    KindChange.TEXT_NARROWED: Rule.TEXT_NARROWED,
}
NARROWING: Final = frozenset(_KIND_RULES.values())
"""The rules that mean that the new type cannot hold every value of the old one."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that keeps old rows from staying as they are."""

    path: str
    rule: Rule
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """All reasons against, in the order of field numbers; none means that old rows may stay."""

    reasons: tuple[Reason, ...]

    @property
    def compatible(self) -> bool:
        """Whether rows of the old type may stay as they are."""
        return not self.reasons


def wire_compatible(old: Descriptor, new: Descriptor, earlier: Sequence[Descriptor] = ()) -> Verdict:
    """Judge the step from `old` to `new`, given the same message in `earlier` versions, oldest first.

    A pair of nested types that several paths reach is judged at the first of them.
    """
    judge = _Judge(earlier)
    if _is_proto3(old.file) and _is_proto3(new.file):
        judge.messages(old.name, old, new, earlier)
    else:
        judge.refuse(old.name, Rule.NOT_PROTO3, "the message is not written in proto3")
    return Verdict(tuple(judge.reasons))


class _Judge:
    """One judgement: a walk over pairs of types that visits each pair once, so that recursion ends."""

    def __init__(self, earlier: Sequence[Descriptor]) -> None:
        self.reasons: list[Reason] = []
        self._earlier = earlier
        self._seen: set[tuple[str, str]] = set()

    def refuse(self, path: str, rule: Rule, what: str) -> None:
        self.reasons.append(Reason(path, rule, f"{what}: {rule.why}"))

    def messages(self, path: str, old: Descriptor, new: Descriptor, earlier: Sequence[Descriptor]) -> None:
        if not self._first_visit(old, new):
            return
        was, now = _Shape.of(old), _Shape.of(new)
        for number in sorted({*old.fields_by_number, *new.fields_by_number}):
            before, after = old.fields_by_number.get(number), new.fields_by_number.get(number)
            if before is not None and after is not None:
                self._fields(f"{path}.{before.name}", before, after)
                self._oneofs(f"{path}.{before.name}", number, was, now)
            elif before is not None:
                what = f"field {number} ({spell(before)}) is deleted"
                self.refuse(f"{path}.{before.name}", Rule.FIELD_DELETED, what)
            elif after is not None:
                self._added_field(f"{path}.{after.name}", after, was, earlier)
        for span in _minus(was.reserved, [*now.reserved, *map(_just, now.numbers)]):
            self.refuse(path, Rule.RESERVED_DROPPED, f"message {new.name} no longer reserves {_spell_span(span)}")

    def _added_field(self, path: str, field: FieldDescriptor, old: _Shape, earlier: Sequence[Descriptor]) -> None:
        what = f"the new field takes number {field.number}"
        if _holds(old.reserved, field.number):
            self.refuse(path, Rule.RESERVED_USED, f"{what}, which is reserved")
        uses = [use for message in earlier if (use := message.fields_by_number.get(field.number)) is not None]
        if uses:
            self.refuse(path, Rule.NUMBER_REUSED, f"{what}, which was '{uses[-1].name}' in an earlier version")

    def _fields(self, path: str, old: FieldDescriptor, new: FieldDescriptor) -> None:
        renamed = old.name != new.name
        reuse = f"number {old.number} is reused, '{old.name}' by '{new.name}', and " if renamed else ""
        what = f"{reuse}{spell(old)} became {spell(new)}"
        before, after = map_entry(old), map_entry(new)
        if old.is_repeated != new.is_repeated or (before is None) != (after is None):
            rewritable = can_rewrite(old, new)
            self.refuse(path, Rule.CARDINALITY_REREAD if rewritable else Rule.CARDINALITY_CHANGED, what)
        elif old.is_packed != new.is_packed and change_of_kind(old, new) is not KindChange.OTHER:
            how = "unpacked, and was packed" if old.is_packed else "packed, and was not"
            self.refuse(path, Rule.PACKING_CHANGED, f"the list is now {how}")
        if before is not None and after is not None:
            self._entries(path, before, after, reuse)
        elif before is None and after is None:
            self._kinds(path, old, new, what)
        if old.has_presence and not new.has_presence and not new.is_repeated:
            self.refuse(path, Rule.PRESENCE_LOST, f"field {old.number} no longer records whether it was set")

    def _entries(self, path: str, old: Descriptor, new: Descriptor, reuse: str) -> None:
        for number, name in ((1, "key"), (2, "value")):
            before, after = old.fields_by_number[number], new.fields_by_number[number]
            what = f"{reuse}the {name} of the map became {spell(after)}, and was {spell(before)}"
            widened = before.type != after.type and change_of_kind(before, after) is KindChange.NONE
            if name == "key" and widened:
                self.refuse(f"{path}.key", Rule.MAP_KEY_CHANGED, what)
            self._kinds(f"{path}.{name}", before, after, what)

    def _kinds(self, path: str, old: FieldDescriptor, new: FieldDescriptor, what: str) -> None:
        change = change_of_kind(old, new)
        if change is KindChange.OTHER:
            self.refuse(path, Rule.KIND_REREAD if can_rewrite(old, new) else Rule.KIND_CHANGED, what)
        elif change is not KindChange.NONE:
            self.refuse(path, _KIND_RULES[change], what)
        elif old.message_type is not None and new.message_type is not None:
            namesakes = (_namesake(message.file, old.message_type) for message in self._earlier)
            earlier = [found for found in namesakes if found is not None]
            self.messages(path, old.message_type, new.message_type, earlier)
        elif old.enum_type is not None and new.enum_type is not None:
            self._enums(path, old.enum_type, new.enum_type)

    def _enums(self, path: str, old: EnumDescriptor, new: EnumDescriptor) -> None:
        if not self._first_visit(old, new):
            return
        reserved = _enum_reserved(old)
        for number in sorted({*old.values_by_number, *new.values_by_number}):
            before, after = old.values_by_number.get(number), new.values_by_number.get(number)
            if before is not None and after is None:
                what = f"value {number} of enum {old.name} is deleted"
                self.refuse(f"{path}.{before.name}", Rule.ENUM_VALUE_DELETED, what)
            elif after is not None and before is None and _holds(reserved, number):
                what = f"the new value of enum {new.name} takes number {number}, which is reserved"
                self.refuse(f"{path}.{after.name}", Rule.RESERVED_USED, what)
        for span in _minus(reserved, [*_enum_reserved(new), *map(_just, new.values_by_number)]):
            self.refuse(path, Rule.RESERVED_DROPPED, f"enum {new.name} no longer reserves {_spell_span(span)}")

    def _oneofs(self, path: str, number: int, old: _Shape, new: _Shape) -> None:
        before = old.oneofs.get(number, frozenset()) & new.numbers
        after = new.oneofs.get(number, frozenset()) & old.numbers
        if before == after:
            return
        joined = sorted(after - before - {number})
        if joined:
            what = f"field {number} now shares a oneof with {_listed(joined)}"
            self.refuse(path, Rule.ONEOF_MERGED, what)
        elif not after:
            self.refuse(path, Rule.ONEOF_CHANGED, f"field {number} left its oneof")
        elif not before:
            self.refuse(path, Rule.ONEOF_CHANGED, f"field {number} moved into a oneof")
        else:
            what = f"field {number} no longer shares a oneof with {_listed(sorted(before - after))}"
            self.refuse(path, Rule.ONEOF_CHANGED, what)

    def _first_visit(self, old: Descriptor | EnumDescriptor, new: Descriptor | EnumDescriptor) -> bool:
        pair = old.full_name, new.full_name
        first = pair not in self._seen
        self._seen.add(pair)
        return first


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a descriptor tells only through its proto: reservations, and the oneofs that a person wrote."""

    numbers: frozenset[int]
    reserved: tuple[range, ...]
    oneofs: dict[int, frozenset[int]]
    """By number of a member, the numbers of all members; `optional` makes no oneof here."""

    @classmethod
    def of(cls, message: Descriptor) -> _Shape:
        proto = descriptor_pb2.DescriptorProto()
        message.CopyToProto(proto)
        members: dict[int, set[int]] = {}
        for field in proto.field:
            if field.HasField("oneof_index") and not field.proto3_optional:
                members.setdefault(field.oneof_index, set()).add(field.number)
        return cls(
            numbers=frozenset(message.fields_by_number),
            reserved=tuple(range(span.start, span.end) for span in proto.reserved_range),
            oneofs={number: frozenset(group) for group in members.values() for number in group},
        )


def _enum_reserved(enum_type: EnumDescriptor) -> tuple[range, ...]:
    proto = descriptor_pb2.EnumDescriptorProto()
    enum_type.CopyToProto(proto)
    return tuple(range(span.start, span.end + 1) for span in proto.reserved_range)


def _is_proto3(file: FileDescriptor) -> bool:
    return descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb).syntax == "proto3"


def _namesake(file: FileDescriptor, message: Descriptor) -> Descriptor | None:
    """Find the message of the same name in another version, whose package differs."""
    outer = message.containing_type
    if outer is None:
        return file.message_types_by_name.get(message.name)
    found = _namesake(file, outer)
    return None if found is None else found.nested_types_by_name.get(message.name)


def _holds(spans: Iterable[range], number: int) -> bool:
    return any(number in span for span in spans)


def _just(number: int) -> range:
    return range(number, number + 1)


def _minus(spans: Iterable[range], taken: Iterable[range]) -> list[range]:
    rest = list(spans)
    for hole in taken:
        below = [range(span.start, min(span.stop, hole.start)) for span in rest]
        above = [range(max(span.start, hole.stop), span.stop) for span in rest]
        rest = [part for part in (*below, *above) if part]
    return sorted(rest, key=lambda span: span.start)


def _spell_span(span: range) -> str:
    return f"number {span.start}" if len(span) == 1 else f"numbers {span.start} to {span.stop - 1}"


def _listed(numbers: Sequence[int]) -> str:
    return ("field " if len(numbers) == 1 else "fields ") + ", ".join(map(str, numbers))
