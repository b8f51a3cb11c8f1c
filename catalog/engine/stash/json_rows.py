"""Rows as JSON for people to read and write: fields by their proto names, and nothing lost either way.

Enums are names, bytes base64, 64-bit integers numbers, which `json_format` would write as texts. Fields that can be
absent are left out if they are; all others are always written. On input, values may omit default fields; keys must be
complete; unknown fields are refused.
"""

from __future__ import annotations

import binascii
import math
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError, Message

from catalog.engine.base.descriptors import descriptor_of, map_entry
from catalog.engine.stash.registry import Collection
from catalog.errors import UndecodableRowError, UnfitJsonError

Json = dict[str, Any]
_M = TypeVar("_M", bound=Message)


def row_to_json(collection: Collection, key: bytes, value: bytes) -> Json:
    """Return a row as it is stored; raises UndecodableRowError if its bytes are no messages."""
    return {"key": _decoded(collection.key_type, key), "value": _decoded(collection.value_type, value)}


def to_json(message: Message) -> Json:
    return {field.name: _field_to_json(field, getattr(message, field.name)) for field in _present_fields(message)}


def key_from_json(kind: type[_M], data: Mapping[str, Any]) -> _M:
    """Parse a key; every field that cannot be absent must be given, as zero is a key of its own."""
    _check(descriptor_of(kind), data, "", required=True)
    return _parsed(kind, data)


def from_json(kind: type[_M], data: Mapping[str, Any]) -> _M:
    _check(descriptor_of(kind), data, "", required=False)
    return _parsed(kind, data)


def _decoded(kind: type[Message], raw: bytes) -> Json:
    try:
        return to_json(kind.FromString(raw))
    except DecodeError as error:
        raise UndecodableRowError(kind.DESCRIPTOR.full_name, 0, raw[:16].hex(), str(error)) from error


def _present_fields(message: Message) -> Iterator[FieldDescriptor]:
    fields = descriptor_of(type(message)).fields
    return (field for field in fields if not field.has_presence or message.HasField(field.name))


def _field_to_json(field: FieldDescriptor, value: Any) -> Any:  # noqa: ANN401 - as the field's type has it
    if (entry := map_entry(field)) is not None:
        held = entry.fields_by_name["value"]
        return {_map_key(key): _scalar_to_json(held, value[key]) for key in sorted(value)}
    if field.is_repeated:
        return [_scalar_to_json(field, element) for element in value]
    return _scalar_to_json(field, value)


def _scalar_to_json(field: FieldDescriptor, value: Any) -> Any:  # noqa: ANN401
    if field.message_type is not None:
        return to_json(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    if field.type == FieldDescriptor.TYPE_BYTES:
        return b64encode(value).decode()
    return float_to_json(value) if isinstance(value, float) else value


def float_to_json(value: float) -> float | str:
    """Return a float, or the text that stands for one that JSON does not have."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _map_key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _check(kind: Descriptor, data: object, path: str, *, required: bool) -> None:
    """Refuse names that the message lacks and, where they are required, fields that are missing."""
    if not isinstance(data, Mapping):
        raise UnfitJsonError(kind.name, path, f"an object is needed, and this is {data!r}", _names(kind))
    for name in data:
        if name not in kind.fields_by_name:
            close = get_close_matches(str(name), kind.fields_by_name, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UnfitJsonError(kind.name, path, f"there is no field {name}{hint}", _names(kind))
    for field in kind.fields:
        if field.name in data:
            _check_field(field, data[field.name], f"{path}.{field.name}".lstrip("."), required=required)
        elif required and not field.has_presence and not field.is_repeated:
            raise UnfitJsonError(kind.name, path, f"{field.name} is missing", _names(kind))


def _check_field(field: FieldDescriptor, value: object, path: str, *, required: bool) -> None:
    if value is None:
        return
    if (entry := map_entry(field)) is not None:
        if isinstance(value, Mapping):
            for key, element in value.items():
                _check_element(entry.fields_by_name["value"], element, f"{path}[{key}]", required=required)
    elif not field.is_repeated:
        _check_element(field, value, path, required=required)
    elif isinstance(value, list | tuple):
        for number, element in enumerate(value):
            _check_element(field, element, f"{path}[{number}]", required=required)


def _check_element(field: FieldDescriptor, value: object, path: str, *, required: bool) -> None:
    if field.message_type is not None:
        _check(field.message_type, value, path, required=required)
    elif field.type == FieldDescriptor.TYPE_BYTES and isinstance(value, str):
        try:
            b64decode(value, validate=True)
        except binascii.Error as error:
            raise UnfitJsonError("bytes", path, f"this is no base64: {error}", ()) from error


def _parsed(kind: type[_M], data: Mapping[str, Any]) -> _M:
    message = kind()
    try:
        ParseDict(dict(data), message)
    except (ParseError, ValueError, TypeError) as error:
        found = descriptor_of(kind)
        raise UnfitJsonError(found.name, "", " ".join(str(error).split()), _names(found)) from error
    return message


def _names(kind: Descriptor) -> tuple[str, ...]:
    return tuple(field.name for field in kind.fields)
