"""The encodings of proto3 field kinds, and the effect of a change of kind on stored bytes.

Owns the table of kinds and every question about encoding. The rules, and the texts about them, are in `wire_compat`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor import FieldDescriptor

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_INT32_LOW, _INT32_HIGH, _UINT32_HIGH = -(2**31), 2**31 - 1, 2**32 - 1
_INT64_LOW, _INT64_HIGH, _UINT64_HIGH = -(2**63), 2**63 - 1, 2**64 - 1


class KindChange(enum.Enum):
    """The effect on values that are written as one kind and read as another."""

    NONE = enum.auto()
    INTEGER_NARROWED = enum.auto()
    SIGN_CHANGED = enum.auto()
    SIGN_CUT = enum.auto()
    INTEGER_BECAME_ENUM = enum.auto()
    TEXT_NARROWED = enum.auto()
    OTHER = enum.auto()


class _Wire(enum.Enum):
    VARINT = enum.auto()
    FIXED32 = enum.auto()
    FIXED64 = enum.auto()
    LENGTH = enum.auto()


class _Family(enum.Enum):
    """A set of kinds that write the same number as the same bytes, wherever both can hold it."""

    NUMBER = enum.auto()
    ZIGZAG = enum.auto()
    FIXED = enum.auto()
    FLOAT = enum.auto()
    TEXT = enum.auto()
    MESSAGE = enum.auto()


@dataclass(frozen=True, slots=True)
class _Kind:
    """The encoding and range of a kind; `varints` are the parts of the 64-bit space that it writes.

    a: 0 and 1; b: up to 2**31 - 1; c: up to 2**32 - 1; d: negative 32-bit numbers, in ten bytes; e: the rest.
    A kind that reads a varint outside its own parts truncates it.
    """

    wire: _Wire
    family: _Family
    low: int = 0
    high: int = 0
    varints: str = ""


_KINDS: Final = {
    FieldDescriptor.TYPE_BOOL: _Kind(_Wire.VARINT, _Family.NUMBER, 0, 1, "a"),
    FieldDescriptor.TYPE_ENUM: _Kind(_Wire.VARINT, _Family.NUMBER, _INT32_LOW, _INT32_HIGH, "abd"),
    FieldDescriptor.TYPE_INT32: _Kind(_Wire.VARINT, _Family.NUMBER, _INT32_LOW, _INT32_HIGH, "abd"),
    FieldDescriptor.TYPE_UINT32: _Kind(_Wire.VARINT, _Family.NUMBER, 0, _UINT32_HIGH, "abc"),
    FieldDescriptor.TYPE_INT64: _Kind(_Wire.VARINT, _Family.NUMBER, _INT64_LOW, _INT64_HIGH, "abcde"),
    FieldDescriptor.TYPE_UINT64: _Kind(_Wire.VARINT, _Family.NUMBER, 0, _UINT64_HIGH, "abcde"),
    FieldDescriptor.TYPE_SINT32: _Kind(_Wire.VARINT, _Family.ZIGZAG, _INT32_LOW, _INT32_HIGH, "abc"),
    FieldDescriptor.TYPE_SINT64: _Kind(_Wire.VARINT, _Family.ZIGZAG, _INT64_LOW, _INT64_HIGH, "abcde"),
    FieldDescriptor.TYPE_FIXED32: _Kind(_Wire.FIXED32, _Family.FIXED, 0, _UINT32_HIGH),
    FieldDescriptor.TYPE_SFIXED32: _Kind(_Wire.FIXED32, _Family.FIXED, _INT32_LOW, _INT32_HIGH),
    FieldDescriptor.TYPE_FIXED64: _Kind(_Wire.FIXED64, _Family.FIXED, 0, _UINT64_HIGH),
    FieldDescriptor.TYPE_SFIXED64: _Kind(_Wire.FIXED64, _Family.FIXED, _INT64_LOW, _INT64_HIGH),
    FieldDescriptor.TYPE_FLOAT: _Kind(_Wire.FIXED32, _Family.FLOAT),
    FieldDescriptor.TYPE_DOUBLE: _Kind(_Wire.FIXED64, _Family.FLOAT),
    FieldDescriptor.TYPE_STRING: _Kind(_Wire.LENGTH, _Family.TEXT),
    FieldDescriptor.TYPE_BYTES: _Kind(_Wire.LENGTH, _Family.TEXT),
    FieldDescriptor.TYPE_MESSAGE: _Kind(_Wire.LENGTH, _Family.MESSAGE),
}
_TYPE_NAMES: Final = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


def map_entry(field: FieldDescriptor) -> Descriptor | None:
    """Return the entry message of a map field, of which field 1 is the key and field 2 the value."""
    entry = field.message_type
    return entry if entry is not None and entry.GetOptions().map_entry else None


def change_of_kind(old: FieldDescriptor, new: FieldDescriptor) -> KindChange:
    """Compare the kinds of two fields (or elements, keys, values), not the content of messages and enums."""
    if old.type == new.type:
        return KindChange.NONE
    was, now = _KINDS[old.type], _KINDS[new.type]
    if was.family is _Family.TEXT and now.family is _Family.TEXT:
        return KindChange.NONE if new.type == FieldDescriptor.TYPE_BYTES else KindChange.TEXT_NARROWED
    if was.family is not now.family or was.wire is not now.wire:
        return KindChange.OTHER
    if now.low <= was.low and was.high <= now.high:
        became_enum = new.type == FieldDescriptor.TYPE_ENUM
        return KindChange.INTEGER_BECAME_ENUM if became_enum else KindChange.NONE
    if now.high - now.low < was.high - was.low:
        return KindChange.INTEGER_NARROWED
    return KindChange.SIGN_CUT if _truncates(was, now) else KindChange.SIGN_CHANGED


def can_rewrite(old: FieldDescriptor, new: FieldDescriptor) -> bool:
    """Tell if the new field may write the records of the old one; if not, some message loses its bytes."""
    was, now = _KINDS[old.type], _KINDS[new.type]
    if _record(old) is not _record(new):
        return False
    if _many_records(old) and (not _many_records(new) or (map_entry(new) and not map_entry(old))):
        return False
    if old.is_packed and new.is_packed and was.wire is not now.wire:
        return was.wire is _Wire.FIXED64 and now.wire is _Wire.FIXED32
    return not _truncates(was, now)


def spell(field: FieldDescriptor) -> str:
    """Spell the type of a field as its proto does, with `repeated` but without `optional`."""
    entry = map_entry(field)
    if entry is not None:
        return f"map<{spell(entry.fields_by_number[1])}, {spell(entry.fields_by_number[2])}>"
    named = field.message_type or field.enum_type
    kind = named.name if named is not None else _TYPE_NAMES[field.type]
    return f"repeated {kind}" if field.is_repeated else kind


def _truncates(was: _Kind, now: _Kind) -> bool:
    return bool(was.varints and now.varints) and not set(was.varints) <= set(now.varints)


def _record(field: FieldDescriptor) -> _Wire:
    return _Wire.LENGTH if field.is_packed else _KINDS[field.type].wire


def _many_records(field: FieldDescriptor) -> bool:
    return field.is_repeated and not field.is_packed
