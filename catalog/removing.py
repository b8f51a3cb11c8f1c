"""The removal of a store: every file of it, and nothing else that is at its place.

Whoever leads is fenced first. `store.json` says that the store is being removed before anything is deleted, and goes
last: a removal that was interrupted looks neither like a store nor like a place to make one in, and running it again
finishes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.errors import (
    CatalogError,
    DamagedError,
    ForeignTableError,
    LogTooNewError,
    NoStoreError,
    StaleGenerationError,
    VersionChangedError,
)
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Fence, StoredFile
from catalog.log.storage import Storage, each
from catalog.project import Project
from catalog.stash.belongings import STASH, Belongings, find_belongings
from catalog.stash.collections import Registry
from catalog.stash.identity import PATH, Identity, doom, no_store, read_doomed
from catalog.stash.stash import Stash


@dataclass(frozen=True, slots=True)
class Removal:
    """What a removal will delete."""

    uri: str
    id: str
    files: tuple[StoredFile, ...]
    others: tuple[str, ...]
    """What is at the place and not the store's; it stays."""
    begun: bool
    """An earlier removal did not finish."""

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class Removed:
    """What a removal did."""

    uri: str
    id: str
    files: int
    bytes: int
    others: tuple[str, ...]
    """What is at the place and not the store's; it stayed."""
    fence: Fence | None
    """The fence that was taken before anything was deleted."""
    unfenced: str | None
    """Why none was taken: somebody who still wrote may have left files."""


def plan_removal(project: Project, storage: Storage, options: Mapping[str, str]) -> Removal:
    """What would be deleted; does nothing."""
    identity, begun = _identity(project, storage)
    found = find_belongings(storage, options)
    return Removal(storage.uri, identity.id, found.files, found.others, begun)


def remove_store(project: Project, storage: Storage, options: Mapping[str, str], fence_holder: str) -> Removed:
    """Fence whoever leads a store, and delete all of it."""
    identity, begun = _identity(project, storage)
    doom(storage, identity)
    fence, unfenced = _fence(project, DeltaLog(f"{storage.uri}/{STASH}", options), fence_holder, begun=begun)
    files = 0, 0
    found = find_belongings(storage, options)
    while found.log or found.data:  # somebody may have been about to write a file
        files = _added(files, (*found.log, *found.data))
        _delete(storage, found)
        found = find_belongings(storage, options)
    rest = (*found.heartbeats, *found.identity)
    for file in rest:
        if file.path != PATH:
            storage.delete(file.path)
    for folder in found.folders:
        storage.remove_folder(folder)
    storage.delete(PATH)
    count, size = _added(files, rest)
    return Removed(storage.uri, identity.id, count, size, found.others, fence, unfenced)


def _identity(project: Project, storage: Storage) -> tuple[Identity, bool]:
    found = read_doomed(storage, project.name)
    if found is None:
        raise no_store(storage)
    return found


def _fence(project: Project, log: DeltaLog, holder: str, *, begun: bool) -> tuple[Fence | None, str | None]:
    """Take over at once from whoever leads, at whatever version; answer the fence, or why none can be taken."""
    reasons = (DamagedError, ForeignTableError, LogTooNewError, NoStoreError)
    while True:
        try:
            stash = Stash.open(log, Registry.of(project.current_types), project.constraints)
            return stash.take_over(stash.head.state.fence.generation, holder), None
        except (StaleGenerationError, VersionChangedError):
            continue  # another leader came between
        except CatalogError as error:
            if not (begun or isinstance(error, reasons)):
                raise
            return None, error.what


def _delete(storage: Storage, found: Belongings) -> None:
    """Delete log and data: of the log the oldest first, so that the fence is there as long as anything can follow."""
    for file in found.log:
        storage.delete(file.path)
    each(storage, storage.delete, [file.path for file in found.data])


def _added(files: tuple[int, int], more: tuple[StoredFile, ...]) -> tuple[int, int]:
    return files[0] + len(more), files[1] + sum(file.size for file in more)
