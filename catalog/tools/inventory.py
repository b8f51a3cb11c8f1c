"""The inventory of a place: the files of its store, and everything else.

Recognises by their names all files that this program and delta-rs ever write to a store, finished or not. Reads only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from catalog.engine.log.data_files import is_data_file
from catalog.engine.log.delta_entries import ARCHIVE_FOLDER, LOG_FOLDER, is_log_file, left_behind, numbered
from catalog.engine.log.place import StorePlace
from catalog.engine.schema_change import signs
from catalog.engine.storage import heartbeat, identity, write_probe
from catalog.engine.storage.base import StoredFile, open_storage
from catalog.engine.storage.layout import SHARDS, STASH, TABLES

_LOG = re.compile(rf"(?:{STASH}|{TABLES}|{SHARDS}/[A-Za-z0-9_-]+)(?=/|$)")
"""The folder of a log within a store."""
_OF_A_LOG = (LOG_FOLDER, ARCHIVE_FOLDER)
_COLLECTION = re.compile(_LOG.pattern + r"/collection=[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class StoreInventory:
    """The files at the place of a store."""

    identity: tuple[StoredFile, ...]
    """`store.json`, and unfinished ones."""
    log: tuple[StoredFile, ...]
    """Entries and checkpoints, the oldest first."""
    data: tuple[StoredFile, ...]
    heartbeats: tuple[StoredFile, ...]
    """Heartbeats, signs of life, and write probes of processes that were killed."""
    folders: tuple[str, ...]
    """The folders of the store, inner ones first."""
    others: tuple[str, ...]
    """Files that are not the store's, and folders that stand for all of their content."""

    @property
    def files(self) -> tuple[StoredFile, ...]:
        return (*self.log, *self.data, *self.heartbeats, *self.identity)


def take_inventory(place: StorePlace) -> StoreInventory:
    """List the files of a store, and those at its place that are not the store's."""
    storage = place.storage
    stored = sorted(_stored(place), key=lambda file: file.path)
    own = [file for file in stored if _is_own(file.path)]
    logs = {STASH, TABLES, *(found[0] for path in storage.paths(SHARDS) if (found := _LOG.match(path)))}
    folders = {
        heartbeat.FOLDER,
        signs.FOLDER,
        SHARDS,
        *logs,
        *(f"{log}/{name}" for log in logs for name in _OF_A_LOG),
    }
    folders |= {path for log in logs for path in storage.paths(log) if _COLLECTION.fullmatch(path)}
    folders |= {file.path.rpartition("/")[0] for file in own} - {""}
    strange = [file.path for file in stored if not _is_own(file.path)]
    # Unlike `entries`, `paths` also names empty folders and broken links.
    strange += [path for folder in ("", *folders) for path in storage.paths(folder) if not _is_own(path)]
    return StoreInventory(
        identity=tuple(file for file in own if "/" not in file.path),
        log=tuple(sorted((file for file in own if is_log_file(_in_log(file.path))), key=_age)),
        data=tuple(file for file in own if is_data_file(_in_log(file.path))),
        heartbeats=tuple(file for file in own if heartbeat.is_heartbeat(file.path) or signs.is_sign(file.path)),
        folders=tuple(sorted(folders, key=lambda folder: (-folder.count("/"), folder))),
        others=tuple(sorted({_outermost(path, folders) for path in strange} - folders)),
    )


def _stored(place: StorePlace) -> Iterator[StoredFile]:
    """Yield every file, also those in a folder of the store that is a link to another disk."""
    yield from place.storage.entries(STASH, TABLES, SHARDS, heartbeat.FOLDER)
    for folder in (STASH, TABLES, SHARDS, heartbeat.FOLDER):
        inner = open_storage(f"{place.uri}/{folder}", place.options)
        if inner.found() is None:
            yield from (replace(file, path=f"{folder}/{file.path}") for file in inner.entries())


def _is_own(path: str) -> bool:
    if (
        path == identity.PATH
        or identity.is_unfinished(path)
        or heartbeat.is_heartbeat(path)
        or signs.is_sign(path)
        or write_probe.is_probe(path)
    ):
        return True
    inner = _in_log(path)
    return is_data_file(inner) or is_log_file(inner)


def _in_log(path: str) -> str:
    """Return the path of a file within its log; empty if it is in none."""
    found = _LOG.match(path)
    return "" if found is None else path[found.end() + 1 :]


def _age(file: StoredFile) -> tuple[int, str]:
    inner = _in_log(file.path)
    found = numbered(inner)
    version = left_behind(inner) if found is None else found[0]
    return -1 if version is None else version, file.path


def _outermost(path: str, folders: set[str]) -> str:
    """Return the path itself, or the outermost folder around it that is not the store's."""
    parts = path.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return next((folder for folder in above if folder not in folders), path)
