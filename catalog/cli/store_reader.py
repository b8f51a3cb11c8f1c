"""The rows of a store as JSON, for the commands that read them.

Rows are read at the store's own version, or at the version it had at a past ts, with the frozen types of that version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.cli.context import StoreTarget
from catalog.engine.log.maintenance import require_retained
from catalog.engine.log.place import stash_version
from catalog.engine.log.protocol import LogState
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS, RowType, row_types
from catalog.engine.stash.change_feed import initialized_at
from catalog.engine.stash.json_rows import key_from_json, row_to_json
from catalog.engine.stash.recorded_types import require_types
from catalog.engine.stash.registry import Collection, Registry, encode
from catalog.engine.stash.view import BaseFileCache, View, load_view
from catalog.engine.store.snapshot import StoreSnapshot
from catalog.errors import NotYetInitializedError, UnknownCollectionError, UsageError


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A stored row with the ts and the diff of its change: 1 if it was added, -1 if it was removed."""

    collection: str
    key: Any
    value: Any
    ts: int
    diff: int


@dataclass(frozen=True, slots=True)
class StoreReader:
    """A store at a ts, and the types that its rows have there."""

    look: StoreSnapshot
    state: LogState
    version: int
    types: Mapping[str, RowType]

    @classmethod
    def at(cls, target: StoreTarget, as_of: int | None) -> StoreReader:
        look, project = target.look(), target.project
        state = look.state
        if as_of is not None and as_of != state.version:
            require_retained(look.log, look.state, as_of)
            state = look.log.state(as_of)
            if state.stash_version is None and look.state.stash_version is not None:
                raise NotYetInitializedError(look.place.uri, as_of, initialized_at(look.log, as_of))
        version = stash_version(state, look.place.uri)
        require_types(project, load_view(BaseFileCache(look.log), state))
        engine = Registry.of(project.current_types)
        own = {name: engine.named(name) for name in ENGINE_COLLECTIONS}
        return cls(look, state, version, {**row_types(project, version), **own})

    def type_of(self, name: str) -> RowType:
        if name not in self.types:
            raise UnknownCollectionError(name, tuple(sorted(self.types)))
        return self.types[name]

    def view(self, name: str) -> View:
        return load_view(BaseFileCache(self.look.log), self.state, (name,))

    def as_json(self, name: str, key: bytes, value: bytes) -> tuple[Any, Any]:
        """A row as JSON; of before protobuf it is that already."""
        kind = self.types.get(name)
        if isinstance(kind, Collection):
            row = row_to_json(kind, key, value)
            return row["key"], row["value"]
        return json.loads(key), json.loads(value)

    def key_of(self, name: str, text: str) -> bytes:
        kind = self.type_of(name)
        parsed = parse_key(text)
        if not isinstance(kind, Collection):
            return json.dumps(parsed, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
        return encode(key_from_json(kind.key_type, parsed))


def parse_key(text: str) -> Any:  # noqa: ANN401 - JSON
    """A key as JSON: an object, or fields such as `id=5` or `database_id=1,name=x`."""
    if text.lstrip().startswith("{"):
        return parse_object("the key", text)
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and equals for name, equals, _ in pairs):
        raise UsageError(
            f"{text!r} is not a key",
            "a key is a JSON object, or a list of fields and values",
            'write it as id=5 or {"id": 5}',
        )
    return {name.strip(): _scalar(value) for name, _, value in pairs}


def parse_object(what: str, text: str) -> Any:  # noqa: ANN401 - JSON
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{what} is not JSON: {error}", f"it begins with {text[:40]!r}", "give a JSON object"
        ) from error
    if not isinstance(found, dict):
        raise UsageError(f"{what} is not a JSON object", f"it is {text[:40]!r}", 'give one such as {"id": 5}')
    return found


def _scalar(text: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
