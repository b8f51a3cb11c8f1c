"""The removal of a store: every file of it, and nothing else that is at its place.

The leader is fenced first. `store.json` is marked before anything is deleted, and is deleted last: the remains of an
interrupted removal look neither like a store nor like an empty place, and a second removal finishes the first.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from catalog.engine.base.fence import Fence
from catalog.engine.log.place import StorePlace
from catalog.engine.schema_change.copying import tables_state
from catalog.engine.schema_change.store import TablesStore
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.storage.base import Storage, StoredFile, map_concurrently
from catalog.engine.storage.identity import PATH, Identity, mark_removing, no_store, read_for_removal
from catalog.errors import (
    CatalogError,
    DamagedError,
    ForeignTableError,
    LogTooNewError,
    NoStoreError,
    StaleGenerationError,
    VersionChangedError,
)
from catalog.tools.inventory import StoreInventory, take_inventory


@dataclass(frozen=True, slots=True)
class Removal:
    uri: str
    id: str
    files: tuple[StoredFile, ...]
    others: tuple[str, ...]
    """Files at the place that are not the store's; they stay."""
    begun: bool
    """An earlier removal did not finish."""

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class Removed:
    uri: str
    id: str
    files: int
    bytes: int
    others: tuple[str, ...]
    """Files at the place that are not the store's; they stayed."""
    fence: Fence | None
    """The fence that was taken before anything was deleted."""
    unfenced: str | None
    """The reason why no fence was taken: a process that still wrote may have left files."""


def plan_removal(place: StorePlace) -> Removal:
    """List what a removal deletes; delete nothing."""
    identity, begun = _identity(place)
    found = take_inventory(place)
    return Removal(place.uri, identity.id, found.files, found.others, begun)


def remove_store(place: StorePlace, fence_holder: str) -> Removed:
    """Fence the leader of a store, and delete all of it."""
    storage = place.storage
    identity, begun = _identity(place)
    mark_removing(storage, identity)
    fence, unfenced = _fence(place, fence_holder, begun=begun)
    _fence_tables(place, fence_holder)
    files = 0, 0
    found = take_inventory(place)
    while found.log or found.data:  # another process may still have finished a file
        files = _added(files, (*found.log, *found.data))
        _delete(storage, found)
        found = take_inventory(place)
    rest = (*found.heartbeats, *found.identity)
    for file in rest:
        if file.path != PATH:
            storage.delete(file.path)
    for folder in found.folders:
        storage.remove_folder(folder)
    storage.delete(PATH)
    count, size = _added(files, rest)
    return Removed(storage.uri, identity.id, count, size, found.others, fence, unfenced)


def _identity(place: StorePlace) -> tuple[Identity, bool]:
    found = read_for_removal(place.storage, place.project.name)
    if found is None:
        raise no_store(place.storage)
    return found


def _fence(place: StorePlace, holder: str, *, begun: bool) -> tuple[Fence | None, str | None]:
    """Take over at once from the leader, at any version; return the fence, or why none can be taken."""
    project, log = place.project, place.log()
    reasons = (DamagedError, ForeignTableError, LogTooNewError, NoStoreError)
    while True:
        try:
            stash = Stash.open(log, Registry.of(project.current_types), project.constraints)
            return stash.take_over(stash.state.fence.generation, holder), None
        except (StaleGenerationError, VersionChangedError):
            continue  # another leader came between
        except CatalogError as error:
            if not (begun or isinstance(error, reasons)):
                raise
            return None, error.what


def _fence_tables(place: StorePlace, holder: str) -> None:
    """Fence the processes that write tables, if that can be: whoever goes on all the same leaves files, and no error.

    Only a higher generation does that, and there is no store afterwards that could miss the one between.
    """
    with suppress(CatalogError):
        if tables_state(place.tables_log()) is not None:
            store = TablesStore.open(place.tables_log())
            store.take_over(store.state.fence.generation + 1, holder)


def _delete(storage: Storage, found: StoreInventory) -> None:
    """Delete log and data: of the log the oldest first, so that the fence is there as long as anything can follow."""
    for file in found.log:
        storage.delete(file.path)
    map_concurrently(storage, storage.delete, [file.path for file in found.data])


def _added(files: tuple[int, int], more: tuple[StoredFile, ...]) -> tuple[int, int]:
    return files[0] + len(more), files[1] + sum(file.size for file in more)
