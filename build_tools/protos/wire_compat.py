"""Wire compatibility: the proof that rows of one version of a message can stay unchanged under another.

Owns the rules of wire compatibility and their texts. A positive verdict is a promise: the bytes of every old message,
as deterministic serialisation writes them, parse as the new type, leave no unknown field, are written again as the same
bytes, and mean the same. Names of fields, messages and enums never count: fields are matched by number, types by
structure.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from google.protobuf import descriptor_pb2

from .wire_kinds import KindChange, can_rewrite, change_of_kind, map_entry, spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor


class WireRule(enum.StrEnum):
    """The reasons for a negative verdict."""

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
        """Tell if some old message certainly loses its bytes; otherwise they may survive, but not their meaning."""
        return self in _BREAKS_BYTES

    @property
    def why(self) -> str:
        """Return the reason for the rule, as the end of a sentence."""
        return _WHY[self]


_WHY: Final = {
    WireRule.FIELD_DELETED: "stored values of it would be dropped, because unknown fields are not kept",
    WireRule.NUMBER_REUSED: "a number belongs to one field for ever; otherwise rows of earlier versions are misread",
    WireRule.RESERVED_USED: "the number is reserved so that no new field is mistaken for an old one",
    WireRule.RESERVED_DROPPED: "a reservation lasts for ever; otherwise another field could take the number unnoticed",
    WireRule.INTEGER_NARROWED: "a number that needs more bits than the new type has would be truncated",
    WireRule.SIGN_CHANGED: "a negative number and a very large one share their bytes, and would be confused",
    WireRule.SIGN_CUT: "a number that only one of the two types can hold would become another number with other bytes",
    WireRule.INTEGER_BECAME_ENUM: "a stored number that is no value of the enum would have no meaning",
    WireRule.TEXT_NARROWED: "bytes that are not UTF-8 cannot be read as a string",
    WireRule.KIND_CHANGED: "the two types are encoded differently, so stored values would be lost or unreadable",
    WireRule.KIND_REREAD: "the two types are encoded alike, so stored values may become others without an error",
    WireRule.CARDINALITY_CHANGED: "one value, a list and a map are written differently, so the bytes would change",
    WireRule.CARDINALITY_REREAD: "the bytes may parse, but one value, a list and a map do not mean the same",
    WireRule.PACKING_CHANGED: "the elements would be written in another layout than the stored bytes have",
    WireRule.PRESENCE_LOST: "a value set to the default could not be distinguished from one that was never set",
    WireRule.ONEOF_MERGED: "a row may hold both fields, and a oneof keeps only the last of them",
    WireRule.ONEOF_CHANGED: "the fields that exclude each other are part of the meaning of a row",
    WireRule.ENUM_VALUE_DELETED: "a row that holds the value would hold a number without a name",
    WireRule.MAP_KEY_CHANGED: "entries are written in an order that depends on the key's type and is not fixed",
    WireRule.NOT_PROTO3: "presence, packing and enums follow other rules outside proto3, which are not supported",
}
_BREAKS_BYTES: Final = frozenset(
    {
        WireRule.FIELD_DELETED,
        WireRule.INTEGER_NARROWED,
        WireRule.SIGN_CUT,
        WireRule.TEXT_NARROWED,
        WireRule.KIND_CHANGED,
        WireRule.CARDINALITY_CHANGED,
        WireRule.PACKING_CHANGED,
        WireRule.PRESENCE_LOST,
        WireRule.ONEOF_MERGED,
    }
)
_KIND_RULES: Final = {
    KindChange.INTEGER_NARROWED: WireRule.INTEGER_NARROWED,
    KindChange.SIGN_CHANGED: WireRule.SIGN_CHANGED,
    KindChange.SIGN_CUT: WireRule.SIGN_CUT,
    KindChange.INTEGER_BECAME_ENUM: WireRule.INTEGER_BECAME_ENUM,
    KindChange.TEXT_NARROWED: WireRule.TEXT_NARROWED,
}
NARROWING: Final = frozenset(_KIND_RULES.values())
"""The rules that mean that the new type cannot hold every value of the old one."""


@dataclass(frozen=True, slots=True)
class WireReason:
    """One difference because of which old rows cannot stay unchanged."""

    path: str
    rule: WireRule
    text: str


@dataclass(frozen=True, slots=True)
class WireVerdict:
    """All reasons against compatibility, in the order of field numbers; without any, old rows may stay unchanged."""

    reasons: tuple[WireReason, ...]

    @property
    def compatible(self) -> bool:
        """Tell if rows of the old type may stay unchanged."""
        return not self.reasons


def wire_compatible(old: Descriptor, new: Descriptor, earlier: Sequence[Descriptor] = ()) -> WireVerdict:
    """Compare `old` with `new`, given the same message in `earlier` versions, oldest first.

    A pair of nested types that several paths reach is compared at the first of them.
    """
    return _verdict(old, new, tuple(earlier))


@lru_cache(maxsize=4096)
def _verdict(old: Descriptor, new: Descriptor, earlier: tuple[Descriptor, ...]) -> WireVerdict:
    comparison = _Comparison(earlier)
    if _is_proto3(old.file) and _is_proto3(new.file):
        comparison.messages(old.name, old, new, earlier)
    else:
        comparison.refuse(old.name, WireRule.NOT_PROTO3, "the message is not written in proto3")
    return WireVerdict(tuple(comparison.reasons))


class _Comparison:
    """A walk over pairs of types that visits each pair once, so that recursion ends."""

    def __init__(self, earlier: Sequence[Descriptor]) -> None:
        self.reasons: list[WireReason] = []
        self._earlier = earlier
        self._seen: set[tuple[str, str]] = set()

    def refuse(self, path: str, rule: WireRule, what: str) -> None:
        self.reasons.append(WireReason(path, rule, f"{what}: {rule.why}"))

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
                self.refuse(f"{path}.{before.name}", WireRule.FIELD_DELETED, what)
            elif after is not None:
                self._added_field(f"{path}.{after.name}", after, was, earlier)
        for span in _minus(was.reserved, [*now.reserved, *map(_just, now.numbers)]):
            self.refuse(path, WireRule.RESERVED_DROPPED, f"message {new.name} no longer reserves {_spell_span(span)}")

    def _added_field(self, path: str, field: FieldDescriptor, old: _Shape, earlier: Sequence[Descriptor]) -> None:
        what = f"the new field takes number {field.number}"
        if _holds(old.reserved, field.number):
            self.refuse(path, WireRule.RESERVED_USED, f"{what}, which is reserved")
        uses = [use for message in earlier if (use := message.fields_by_number.get(field.number)) is not None]
        if uses:
            self.refuse(path, WireRule.NUMBER_REUSED, f"{what}, which was '{uses[-1].name}' in an earlier version")

    def _fields(self, path: str, old: FieldDescriptor, new: FieldDescriptor) -> None:
        renamed = old.name != new.name
        reuse = f"number {old.number} is reused, '{old.name}' by '{new.name}', and " if renamed else ""
        what = f"{reuse}{spell(old)} became {spell(new)}"
        before, after = map_entry(old), map_entry(new)
        if old.is_repeated != new.is_repeated or (before is None) != (after is None):
            rewritable = can_rewrite(old, new)
            self.refuse(path, WireRule.CARDINALITY_REREAD if rewritable else WireRule.CARDINALITY_CHANGED, what)
        elif old.is_packed != new.is_packed and change_of_kind(old, new) is not KindChange.OTHER:
            how = "unpacked, and was packed" if old.is_packed else "packed, and was not"
            self.refuse(path, WireRule.PACKING_CHANGED, f"the list is now {how}")
        if before is not None and after is not None:
            self._entries(path, before, after, reuse)
        elif before is None and after is None:
            self._kinds(path, old, new, what)
        if old.has_presence and not new.has_presence and not new.is_repeated:
            self.refuse(path, WireRule.PRESENCE_LOST, f"field {old.number} no longer records whether it was set")

    def _entries(self, path: str, old: Descriptor, new: Descriptor, reuse: str) -> None:
        for number, name in ((1, "key"), (2, "value")):
            before, after = old.fields_by_number[number], new.fields_by_number[number]
            what = f"{reuse}the {name} of the map became {spell(after)}, and was {spell(before)}"
            widened = before.type != after.type and change_of_kind(before, after) is KindChange.NONE
            if name == "key" and widened:
                self.refuse(f"{path}.key", WireRule.MAP_KEY_CHANGED, what)
            self._kinds(f"{path}.{name}", before, after, what)

    def _kinds(self, path: str, old: FieldDescriptor, new: FieldDescriptor, what: str) -> None:
        change = change_of_kind(old, new)
        if change is KindChange.OTHER:
            self.refuse(path, WireRule.KIND_REREAD if can_rewrite(old, new) else WireRule.KIND_CHANGED, what)
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
                self.refuse(f"{path}.{before.name}", WireRule.ENUM_VALUE_DELETED, what)
            elif after is not None and before is None and _holds(reserved, number):
                what = f"the new value of enum {new.name} takes number {number}, which is reserved"
                self.refuse(f"{path}.{after.name}", WireRule.RESERVED_USED, what)
        for span in _minus(reserved, [*_enum_reserved(new), *map(_just, new.values_by_number)]):
            self.refuse(path, WireRule.RESERVED_DROPPED, f"enum {new.name} no longer reserves {_spell_span(span)}")

    def _oneofs(self, path: str, number: int, old: _Shape, new: _Shape) -> None:
        before = old.oneofs.get(number, frozenset()) & new.numbers
        after = new.oneofs.get(number, frozenset()) & old.numbers
        if before == after:
            return
        joined = sorted(after - before - {number})
        if joined:
            what = f"field {number} now shares a oneof with {_listed(joined)}"
            self.refuse(path, WireRule.ONEOF_MERGED, what)
        elif not after:
            self.refuse(path, WireRule.ONEOF_CHANGED, f"field {number} left its oneof")
        elif not before:
            self.refuse(path, WireRule.ONEOF_CHANGED, f"field {number} moved into a oneof")
        else:
            what = f"field {number} no longer shares a oneof with {_listed(sorted(before - after))}"
            self.refuse(path, WireRule.ONEOF_CHANGED, what)

    def _first_visit(self, old: Descriptor | EnumDescriptor, new: Descriptor | EnumDescriptor) -> bool:
        pair = old.full_name, new.full_name
        first = pair not in self._seen
        self._seen.add(pair)
        return first


@dataclass(frozen=True, slots=True)
class _Shape:
    """The facts that a descriptor has only in its proto: reservations, and the declared oneofs."""

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
