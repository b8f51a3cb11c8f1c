"""Rows of versions without descriptors: generated as messages of the first version with them, encoded by own types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import ModuleType, NoneType
from typing import Any, cast, get_args, get_origin, get_type_hints

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from catalog.engine.base.arrow import binary_column
from catalog.engine.base.descriptors import inner

_Convert = Callable[[Any], Any]


def legacy_column(types: ModuleType, kind: type, message: Descriptor, rows: pa.StructArray) -> pa.BinaryArray:
    """Return messages, given as columns, in the encoding of the older types; members have the same names."""
    convert = _message(kind, message)
    return binary_column([types.encode(convert(row)) for row in rows.to_pylist()]).chunk(0)


@cache
def _message(kind: Any, message: Descriptor) -> _Convert:  # noqa: ANN401 - a dataclass
    hints = get_type_hints(kind, include_extras=True)
    members = {field.name: _member(hints[field.name], message.fields_by_name[field.name]) for field in fields(kind)}
    return lambda row: kind(
        **{name: None if row[name] is None else convert(row[name]) for name, convert in members.items()}
    )


def _member(hint: Any, member: FieldDescriptor) -> _Convert:  # noqa: ANN401 - annotations are data here
    given = [part for part in get_args(hint) if part is not NoneType]
    if get_origin(hint) is tuple:
        convert = _member(given[0], member)
        return lambda elements: tuple(map(convert, elements))
    if get_origin(hint) is Mapping:
        return lambda entries: {entry["name"]: entry["value"] for entry in entries}
    if NoneType in get_args(hint):
        return _member(given[0], member)
    if is_dataclass(hint):
        return _message(cast("type", hint), inner(member))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _names(hint, member).__getitem__
    return lambda value: value


def _names(kind: type[Enum], member: FieldDescriptor) -> dict[int, Enum]:
    """Return the members of an enum by number; in descriptors their names have the enum's name as prefix."""
    unset, *known = member.enum_type.values if member.enum_type is not None else ()
    prefix = unset.name.removesuffix("UNSPECIFIED")
    return {value.number: kind[value.name.removeprefix(prefix)] for value in known}
