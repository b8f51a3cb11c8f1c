"""Edits of one row by hand, at the store's own version and with the types of that version.

First a plan, which shows the row before and after and writes nothing; then, once confirmed, the change: as leader, in
one transaction, and only if the row has not changed since.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Any

from google.protobuf.message import Message

from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn
from catalog.engine.migrate.recorder import RunState, close_dead
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS
from catalog.engine.stash.constraint_checks import check_changes
from catalog.engine.stash.engine_rows import BUILTIN_COLLECTIONS, NOT_PROTECTED, require_program_change
from catalog.engine.stash.json_rows import Json, from_json, key_from_json, row_to_json, to_json
from catalog.engine.stash.registry import Collection, encode
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import RowChange
from catalog.engine.stash.view import View
from catalog.engine.store.leadership import LeadershipOptions, leading, own_stash, require_messages
from catalog.errors import MarkedRowError, NoSuchRowError, ProtectedRowError, RowChangedError

_KEYS_MAX = 10_000
"""The number of keys up to which similar keys are suggested."""


@dataclass(frozen=True, slots=True)
class RowEdit:
    """One row before and after an edit."""

    collection: str
    key: Json
    before: Json
    after: Json | None
    """None if the row is deleted."""
    ts: int
    """The ts at which the row was read."""
    version: int
    """The version of the store at that ts: the row has its types."""
    stored: bytes = field(repr=False)
    """The value as it was read."""
    is_same: bool = False
    """The value is the present one: there is nothing to do."""


def plan_edit(
    place: StorePlace, collection: str, key: Mapping[str, Any], value: Mapping[str, Any], *, protected: bool = False
) -> RowEdit:
    """Plan to replace the whole value of a row. Write nothing."""
    return _plan(place, collection, key, value, protected=protected)


def plan_delete(place: StorePlace, collection: str, key: Mapping[str, Any], *, protected: bool = False) -> RowEdit:
    """Plan to delete a row. Write nothing."""
    return _plan(place, collection, key, None, protected=protected)


def apply_edit(place: StorePlace, edit: RowEdit, leadership: LeadershipOptions) -> int:
    """Apply a plan in one commit as leader; return its ts. No leader is fenced if there is nothing to do."""
    if edit.is_same:
        return edit.ts
    with leading(place, leadership) as leader:
        close_dead(leader.system_rows)  # a process that ran a step is fenced now
        stash = leader.stash
        with stash.transaction(NOT_PROTECTED) as tx:  # the plan was protected, and a person confirmed it
            collection = stash.registry.named(edit.collection)
            key = key_from_json(collection.key_type, edit.key)
            present = tx.view.get(collection.name, encode(key))
            if leader.system_rows.version != edit.version or present != edit.stored:
                raise RowChangedError(edit.collection, _text(edit.key), edit.ts, stash.ts)
            if edit.after is None:
                tx.delete(key)
            else:
                tx.update(key, from_json(collection.value_type, edit.after))
        return stash.ts


def _plan(
    place: StorePlace, name: str, key: Mapping[str, Any], value: Mapping[str, Any] | None, *, protected: bool
) -> RowEdit:
    place.identity()
    stash = own_stash(place.project, place.log())
    owned = ENGINE_COLLECTIONS | (BUILTIN_COLLECTIONS if place.project.builtins is not None else frozenset())
    if name not in ENGINE_COLLECTIONS:
        require_messages(place.project, stash)
    if name in owned and not protected:
        raise ProtectedRowError(name)
    collection, view = stash.registry.named(name), stash.view()
    parsed = key_from_json(collection.key_type, key)
    after = None if value is None else from_json(collection.value_type, value)
    stored = view.get(name, encode(parsed))
    if stored is None:
        raise NoSuchRowError(name, _text(to_json(parsed)), _close(view, collection, parsed))
    row = row_to_json(collection, encode(parsed), stored)
    if name in ENGINE_COLLECTIONS:
        _check_marks(stash, collection.decode(encode(parsed), stored), after)
    encoded = None if after is None else encode(after)
    if not protected:
        at = stash.registry, view, collection, encode(parsed)
        require_program_change(owned, *at, before=stored, after=encoded)
    check_changes(
        stash.replica, (RowChange(collection, encode(parsed), stored, encoded),)
    )  # before the leader is fenced
    state, new = view.state, None if after is None else to_json(after)
    is_same = after is not None and encode(after) == stored
    return RowEdit(
        name, row["key"], row["value"], new, state.version, state.app_txns[AppTxn.STASH_VERSION], stored, is_same
    )


def _check_marks(stash: Stash, row: tuple[Any, Any], after: Any) -> None:  # noqa: ANN401 - messages of a version
    """Refuse to change rows that must agree with the app transactions of the log."""
    key, before = row
    kind, text = type(key).DESCRIPTOR.name, _text(to_json(key))
    if kind == "FenceTokenKey":
        fix = "open the store as leader, which writes both"
        raise MarkedRowError("fence_token", text, "fence", fix)
    if kind == "ConfigKey" and key.name == "stash_version":
        if after is None or after.number != stash.state.app_txns[AppTxn.STASH_VERSION]:
            fix = "to change the version, use `catalog apply` or `catalog undo`, which migrate the rows with it"
            raise MarkedRowError("config", text, "version", fix)
    elif kind == "MigrationEventKey" and (_is_running(before) or (after is not None and _is_running(after))):
        fix = "use `catalog repair` for a step whose process is dead, and `catalog abort` for one that runs"
        raise MarkedRowError("migration_event", text, "running step", fix)


def _is_running(event: Any) -> bool:  # noqa: ANN401
    return bool(event.state == RunState.RUNNING)


def _close(view: View, collection: Collection, key: Message) -> tuple[str, ...]:
    """Return stored keys that are similar to a missing one; none if there are very many keys."""
    keys = (collection.key_type.FromString(raw) for raw, _ in view.rows(collection.name))
    found = [_text(to_json(present)) for present in islice(keys, _KEYS_MAX)]
    return tuple(get_close_matches(_text(to_json(key)), found)) if len(found) < _KEYS_MAX else ()


def _text(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)
