"""Stored rows as plain Python values, the same for JSON and protobuf: absent is None, an enum its number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from google.protobuf.message import Message

from catalog.engine.log.delta import DeltaLog
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.view import BaseFileCache, View, load_view
from catalog.migrations import legacy_json_objects as legacy
from catalog.upgrade import PROJECT

Plain = dict[str, Any]
Rows = dict[str, list[tuple[Plain, Plain]]]
ENGINE = {"config", "fence_token", "migration_event"}


def open_view(store: str) -> View:
    log = DeltaLog(f"{store}/stash")
    return load_view(BaseFileCache(log), log.state(log.verify()))


def stored_rows(store: str) -> dict[str, list[tuple[bytes, bytes]]]:
    view = open_view(store)
    return {name: list(view.rows(name)) for name in sorted(view.collections())}


def plain_rows(store: str, version: int) -> Rows:
    """Every row of a store, merged from base and tail and decoded by the types of its version."""
    registry = Registry.of(PROJECT.types(max(version, 15)))
    found: Rows = {}
    for name, rows in stored_rows(store).items():
        if name in ENGINE or version > 14:
            collection = registry.named(name)
            found[name] = [(plain(k), plain(v)) for k, v in (collection.decode(*row) for row in rows)]
        else:
            kinds = legacy.COLLECTIONS[name]
            found[name] = [(plain(legacy.decode(kinds.key, k)), plain(legacy.decode(kinds.value, v))) for k, v in rows]
    return found


def plain(value: object) -> Any:  # noqa: ANN401 - whatever a row holds
    if isinstance(value, Message):
        return {
            field.name: None
            if field.has_presence and not value.HasField(field.name)
            else plain(getattr(value, field.name))
            for field in value.DESCRIPTOR.fields
        }
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return list(type(value)).index(value) + 1
    if isinstance(value, Mapping):
        return [{"name": name, "value": text} for name, text in value.items()]
    if isinstance(value, (str, int, bytes, float)) or value is None:
        return value
    return [plain(element) for element in value]  # type: ignore[attr-defined]
