"""Changing or deleting one row by hand, at the store's own version and with that version's types.

First a plan, which shows the row as it is and as it would be and writes nothing; then, by whoever agrees, the change:
as leader, in one transaction, and only if the row is still what was shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Any

from google.protobuf.message import Message

from catalog.engine.events import State, close_dead
from catalog.engine.types import ENGINE_COLLECTIONS
from catalog.errors import MarkedRowError, NoSuchRowError, ProtectedRowError, RowChangedError
from catalog.leading import Patience, existing, leading, own_stash, require_messages
from catalog.log.protocol import Mark
from catalog.project import Place
from catalog.stash.checks import check_changes
from catalog.stash.collections import Collection, encode
from catalog.stash.json_rows import Json, from_json, key_from_json, row_to_json, to_json
from catalog.stash.stash import Stash
from catalog.stash.transaction import RowChange
from catalog.stash.view import View

_KEYS_MAX = 10_000
"""Among so many, keys that are close to a wrong one are looked for."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One row as it is and as it is to be."""

    collection: str
    key: Json
    before: Json
    after: Json | None
    """None: the row is to be deleted."""
    ts: int
    """When the row was read."""
    version: int
    """Of the store at that time: the rows have its types."""
    stored: bytes = field(repr=False)
    """The value as it was read."""
    is_same: bool = False
    """There is nothing to do: the value is the present one."""


def plan_edit(
    place: Place, collection: str, key: Mapping[str, Any], value: Mapping[str, Any], *, protected: bool = False
) -> Edit:
    """What giving a row another value would do; the value is the whole of it. Nothing is written."""
    return _plan(place, collection, key, value, protected=protected)


def plan_delete(place: Place, collection: str, key: Mapping[str, Any], *, protected: bool = False) -> Edit:
    """What deleting a row would do. Nothing is written."""
    return _plan(place, collection, key, None, protected=protected)


def apply_edit(place: Place, edit: Edit, patience: Patience) -> int:
    """Do what was planned, in one commit as leader, and answer its ts; nobody is fenced if there is nothing to do."""
    if edit.is_same:
        return edit.ts
    with leading(place, patience) as leader:
        close_dead(leader.journal)  # whoever ran a step is fenced now
        stash = leader.stash
        with stash.transaction() as tx:
            collection = stash.head.registry.named(edit.collection)
            key = key_from_json(collection.key_type, edit.key)
            present = tx.view.get(collection.name, encode(key))
            if leader.journal.version != edit.version or present != edit.stored:
                raise RowChangedError(edit.collection, _text(edit.key), edit.ts, stash.ts)
            if edit.after is None:
                tx.delete(key)
            else:
                tx.update(key, from_json(collection.value_type, edit.after))
        return stash.ts


def _plan(place: Place, name: str, key: Mapping[str, Any], value: Mapping[str, Any] | None, *, protected: bool) -> Edit:
    _, log = existing(place)
    stash = own_stash(place.project, log)
    if name not in ENGINE_COLLECTIONS:
        require_messages(place.project, stash)
    elif not protected:
        raise ProtectedRowError(name)
    collection, view = stash.head.registry.named(name), stash.view()
    parsed = key_from_json(collection.key_type, key)
    after = None if value is None else from_json(collection.value_type, value)
    stored = view.get(name, encode(parsed))
    if stored is None:
        raise NoSuchRowError(name, _text(to_json(parsed)), _close(view, collection, parsed))
    row = row_to_json(collection, encode(parsed), stored)
    if name in ENGINE_COLLECTIONS:
        _check_marks(stash, collection.decode(encode(parsed), stored), after)
    encoded = None if after is None else encode(after)
    check_changes(stash.head, (RowChange(collection, encode(parsed), stored, encoded),))  # before anyone is fenced
    state, shown = view.state, None if after is None else to_json(after)
    is_same = after is not None and encode(after) == stored
    return Edit(name, row["key"], row["value"], shown, state.version, state.marks[Mark.STASH_VERSION], stored, is_same)


def _check_marks(stash: Stash, row: tuple[Any, Any], after: Any) -> None:  # noqa: ANN401 - messages of a version
    """Refuse to take rows out of step with the marks that the log keeps of the same."""
    key, before = row
    kind, text = type(key).DESCRIPTOR.name, _text(to_json(key))
    if kind == "FenceTokenKey":
        fix = "open the store as leader, which writes both"
        raise MarkedRowError("fence_token", text, "fence", fix)
    if kind == "ConfigKey" and key.name == "stash_version":
        if after is None or after.number != stash.head.state.marks[Mark.STASH_VERSION]:
            fix = "to change the version, use `catalog apply` or `catalog undo`, which migrate the rows with it"
            raise MarkedRowError("config", text, "version", fix)
    elif kind == "MigrationEventKey" and (_is_running(before) or (after is not None and _is_running(after))):
        fix = "use `catalog repair` for a step whose process is dead, and `catalog abort` for one that runs"
        raise MarkedRowError("migration_event", text, "running step", fix)


def _is_running(event: Any) -> bool:  # noqa: ANN401
    return bool(event.state == State.RUNNING)


def _close(view: View, collection: Collection, key: Message) -> tuple[str, ...]:
    """Keys that are there and look like one that is not; none are looked for among very many."""
    keys = (collection.key_type.FromString(raw) for raw, _ in view.rows(collection.name))
    found = [_text(to_json(present)) for present in islice(keys, _KEYS_MAX)]
    return tuple(get_close_matches(_text(to_json(key)), found)) if len(found) < _KEYS_MAX else ()


def _text(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)
