"""Rows that the engine relies on, and the changes of them that are the engine's alone.

A program's transaction writes none of the engine's collections and never takes an allocator back. The engine's own
transactions may, and a person who edits a row by hand and adds --protected.
"""

from __future__ import annotations

from typing import Final

from catalog.engine.stash.registry import Collection, Registry
from catalog.engine.stash.view import View
from catalog.errors import AllocatorSetBackError, ProtectedRowError

ENGINE_COLLECTIONS: Final = frozenset({"config", "fence_token", "migration_event"})
"""They exist at every version, with one encoding."""
BUILTIN_COLLECTIONS: Final = frozenset({"builtin_mapping", "unfinalized_shard"})
"""Of projects with builtins: a wrong row would lose the data of a builtin."""
STORAGE: Final = "storage_metadata"
"""The collection that says which object uses which shard; its rows about builtins are the engine's."""
ALLOCATORS: Final = "id_alloc"
ID_MAX: Final = 2**64 - 1
"""The highest `next_id`: ids have 64 bits."""
NOT_PROTECTED: Final[frozenset[str]] = frozenset()


def require_program_change(  # noqa: PLR0913 - a row before and after, and where it stands
    protected: frozenset[str],
    registry: Registry,
    view: View,
    collection: Collection,
    key: bytes,
    *,
    before: bytes | None,
    after: bytes | None,
) -> None:
    """Refuse a change of a row that only the engine makes."""
    if collection.name in protected or (collection.name == STORAGE and _is_of_builtin(protected, registry, view, key)):
        fix = "open the store, upgrade it or undo an upgrade: these change the rows; a transaction changes all others"
        raise ProtectedRowError(collection.name, fix)
    if protected and collection.name == ALLOCATORS and before is not None:
        stored = following(collection, before)
        if after is None or following(collection, after) < stored:
            name = collection.key_type.FromString(key).name  # type: ignore[attr-defined]
            found = "deleted" if after is None else f"set back to {following(collection, after)}"
            raise AllocatorSetBackError(name, stored, found)


def _is_of_builtin(protected: frozenset[str], registry: Registry, view: View, key: bytes) -> bool:
    """Tell if a row says where the data of a builtin are."""
    if not protected >= BUILTIN_COLLECTIONS:
        return False
    mapping, storage = registry.named("builtin_mapping"), registry.named(STORAGE)
    id_ = storage.key_type.FromString(key).id  # type: ignore[attr-defined]
    return any(mapping.value_type.FromString(value).id == id_ for _, value in view.rows(mapping.name))  # type: ignore[attr-defined]


def following(allocators: Collection, value: bytes | None) -> int:
    """Return the lowest id that an allocator has not given out; ids count from 1."""
    return 1 if value is None else max(1, int(allocators.value_type.FromString(value).next_id))  # type: ignore[attr-defined]
