"""Stores in plain Python: what the oracles read and write, and what tests compare.

A store maps the name of every collection of its version, the engine's aside, to its rows; these are found by the text
of their key. A row is a key and a value, and each of them is a dictionary of its members by name:

- numbers, texts and booleans are themselves, an enum is its number, a message a dictionary, a repeated member a list;
- a member that may be absent (optional, in a oneof, or a message) is there if it is there in the row, even with the
  value 0; every other member is always there.

At version 14 a message is its JSON: enums are names in lower case, and the Spark settings of a cluster a dictionary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from catalog.migrations import legacy_json_objects as legacy

Plain = dict[str, Any]
Row = tuple[Plain, Plain]
Store = dict[str, dict[str, Row]]
Stored = dict[str, list[tuple[bytes, bytes]]]

OLDEST, NEWEST = 14, 22
ENGINE = {"config", "fence_token", "migration_event"}
GOLDEN = Path(__file__).parents[1] / "golden"


def key_text(key: Plain) -> str:
    """The one text of a key, whatever the order of its members."""
    return json.dumps(key, sort_keys=True)


def store_of(version: int, rows: Mapping[str, Iterable[Row]]) -> Store:
    """A store of these rows; collections that are not named are empty."""
    store: Store = {name: {} for name in types(version)}
    for name, found in rows.items():
        for key, value in found:
            if key_text(key) in store[name]:
                raise ValueError(f"{name}: two rows with the key {key_text(key)}")
            store[name][key_text(key)] = (key, value)
    return store


def plain(version: int, rows: Mapping[str, Iterable[tuple[bytes, bytes]]]) -> Store:
    """The plain form of stored rows; those of engine collections are left out.

    Bytes that say more than that, such as fields that the version does not know, are refused.
    """
    return store_of(
        version,
        {
            name: [(_whole(key_type, key), _whole(value_type, value)) for key, value in rows.get(name, ())]
            for name, (key_type, value_type) in types(version).items()
        },
    )


def stored(version: int, store: Store) -> Stored:
    """The rows as they are stored, in the order of their keys' bytes."""
    return {
        name: sorted(
            (_written(key_type, key), _written(value_type, value)) for key, value in store.get(name, {}).values()
        )
        for name, (key_type, value_type) in types(version).items()
    }


def golden(version: int) -> Store:
    """What a store held that was initialised by this version."""
    content = json.loads((GOLDEN / f"initial_v{version}.json").read_text(encoding="utf-8"))
    return store_of(
        version,
        {
            name: [(_golden(key_type, key), _golden(value_type, value)) for key, value in content[name]]
            for name, (key_type, value_type) in types(version).items()
        },
    )


@cache
def types(version: int) -> dict[str, tuple[Any, Any]]:
    """The types of keys and values by collection: dataclasses at version 14, messages from 15 on."""
    if version == OLDEST:
        return {name: (kinds.key, kinds.value) for name, kinds in legacy.COLLECTIONS.items()}
    module = import_module(f"catalog.generated.objects_v{version}_pb2")
    names = [name.removesuffix("Key") for name in module.DESCRIPTOR.message_types_by_name if name.endswith("Key")]
    kinds = {_snake(name): (getattr(module, f"{name}Key"), getattr(module, f"{name}Value")) for name in names}
    return {name: pair for name, pair in kinds.items() if name not in ENGINE}


def collection_of(key: object) -> str:
    """The collection that the type of a key names."""
    return _snake(type(key).__name__.removesuffix("Key"))


def read(kind: Any, data: bytes) -> Any:  # noqa: ANN401 - dataclasses and messages
    """A stored key or value as a row-by-row migration sees it."""
    return kind.FromString(data) if issubclass(kind, Message) else legacy.decode(kind, data)


def _whole(kind: Any, data: bytes) -> Plain:  # noqa: ANN401
    members = _plain(read(kind, data))
    if _written(kind, members) != data:
        raise ValueError(f"{kind.__name__}: {data!r} is not how {members} is stored")
    return members


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _plain(message: Any) -> Plain:  # noqa: ANN401
    if not isinstance(message, Message):
        document: Plain = json.loads(legacy.encode(message))
        return document
    members: Plain = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        member = getattr(message, field.name)
        if field.message_type is None:
            members[field.name] = list(member) if field.is_repeated else member
        else:
            members[field.name] = [_plain(element) for element in member] if field.is_repeated else _plain(member)
    return members


def _written(kind: Any, members: Plain) -> bytes:  # noqa: ANN401
    if not issubclass(kind, Message):
        data = json.dumps(members, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        return legacy.encode(legacy.decode(kind, data))
    message: Message = kind()
    _fill(message, members)
    return message.SerializeToString(deterministic=True)


def _fill(message: Message, members: Plain) -> None:
    for name, member in members.items():
        if isinstance(member, dict):
            inner = getattr(message, name)
            inner.SetInParent()
            _fill(inner, member)
        elif isinstance(member, list):
            for element in member:
                if isinstance(element, dict):
                    _fill(getattr(message, name).add(), element)
                else:
                    getattr(message, name).append(element)
        else:
            setattr(message, name, member)


def _golden(kind: Any, document: Plain) -> Plain:  # noqa: ANN401
    if not issubclass(kind, Message):
        return _plain(legacy.decode(kind, _written(kind, document)))
    return _plain(json_format.ParseDict(document, kind()))
