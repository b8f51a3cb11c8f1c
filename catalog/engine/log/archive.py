"""Entries and checkpoints that opening no longer needs, kept out of the folder that delta-rs lists at every commit.

Each goes under the same name into a folder that readers of Delta tables ignore: first it is in both places and durable,
then it leaves the log, oldest first. A paused writer may take a name again that has left the log, so of two entries of
one version the archived one is the truth. Nothing is archived in an object store: it lists from any name onwards,
however much lies before. A copy of a store may have an archive there all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog.engine.log.delta_entries import ARCHIVE_FOLDER, LOG_FOLDER, archived, entry_path, left_behind, numbered
from catalog.engine.log.protocol import FaultHook, FaultPoint
from catalog.engine.storage.base import Storage

_KEPT = 2
"""Checkpoints that stay in the log: one to use, one in reserve."""


class Archive:
    def __init__(self, storage: Storage, reached: FaultHook) -> None:
        self._storage = storage
        self._reached = reached

    def read(self, path: str) -> bytes | None:
        """Read an entry or a checkpoint, in the log or in the archive.

        What is found in the log counts only if it is not in the archive even then: it may have been archived since we
        looked there, and its name may have been taken again.
        """
        for place in self._places(path):
            raw = self._storage.read(place)
            if raw is not None:
                is_overtaken = place == path and not self._storage.remote and self._storage.size(archived(path))
                return self._storage.read(archived(path)) or raw if is_overtaken else raw
        return None

    def holds(self, version: int) -> bool:
        """Tell if there is an entry of a version, in the log or in the archive."""
        return any(self._storage.size(place) is not None for place in self._places(entry_path(version)))

    def modified_ms(self, version: int) -> int | None:
        """Return when the entry of a version was written, by the clock of the place; none if it is gone."""
        found = (self._storage.modified_ms(place) for place in self._places(entry_path(version)))
        return next((modified for modified in found if modified is not None), None)

    def is_current(self, version: int) -> bool:
        """Tell if the entry of a version is in the log, and no later one ever left it."""
        path = entry_path(version)
        if self._storage.size(path) is None:
            return False
        return self._storage.remote or self._storage.size(archived(path)) is None

    def put(self) -> None:
        """Archive all that is older than the checkpoint in reserve."""
        if self._storage.remote:
            return
        present = self._numbered(LOG_FOLDER)
        kept = sorted(version for version, is_checkpoint, _ in present if is_checkpoint)[-_KEPT:]
        due = [path for version, _, path in present if len(kept) == _KEPT and version < kept[0]]
        if due:
            self._reached(FaultPoint.ARCHIVE_BEFORE)
            self._storage.share({path: archived(path) for path in due})
        for path in due:
            self._reached(FaultPoint.ARCHIVE_BEFORE_REMOVAL)
            self._storage.delete(path)

    def bring_back(self, checkpoint: int | None) -> None:
        """Link the files that lead on from a checkpoint, or from the first entry, back into the log; newest first."""
        start = -1 if checkpoint is None else checkpoint
        wanted = [
            (path, path.replace(ARCHIVE_FOLDER, LOG_FOLDER, 1))
            for version, is_checkpoint, path in reversed(self._numbered(ARCHIVE_FOLDER))
            if version == start or (version > start and not is_checkpoint)
        ]
        if wanted:
            self._storage.share(dict(wanted))

    def before(self, version: int) -> Iterator[str]:
        """Yield all files in log and archive that are older than a version, in the order in which they can be deleted.

        The archive comes a second time, for what another process put there meanwhile.
        """
        for folder in (ARCHIVE_FOLDER, LOG_FOLDER, ARCHIVE_FOLDER):
            present = sorted(self._numbered(folder), key=lambda found: not found[1])
            yield from (path for number, _, path in present if number < version)
        yield from (path for path in self._storage.paths(LOG_FOLDER) if (left_behind(path) or version) < version)

    def listed(self) -> tuple[list[int], list[int]]:
        """Return the versions of all entries and of all checkpoints, archived or not."""
        found = {numbers[:2] for folder in (ARCHIVE_FOLDER, LOG_FOLDER) for numbers in self._numbered(folder)}
        found |= {numbers[:2] for numbers in self._numbered(ARCHIVE_FOLDER)}  # those that moved while we looked
        return (
            sorted(version for version, is_checkpoint in found if not is_checkpoint),
            sorted(version for version, is_checkpoint in found if is_checkpoint),
        )

    def _numbered(self, folder: str) -> list[tuple[int, bool, str]]:
        paths = self._storage.paths(folder)
        return sorted((*number, path) for path in paths if (number := numbered(path)) is not None)

    def _places(self, path: str) -> tuple[str, ...]:
        """Return the paths to try, in order: what leaves one place is already in the next."""
        return (path, archived(path)) if self._storage.remote else (archived(path), path, archived(path))
