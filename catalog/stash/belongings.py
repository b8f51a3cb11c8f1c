"""Which of the files at a place are those of its store, and what else is there.

Knows by their names all files that this program and delta-rs ever write to a store, finished or not. Changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from catalog.log.entries import ARCHIVE_FOLDER, LOG_FOLDER, is_log_file, left_behind, numbered
from catalog.log.files import is_data_file
from catalog.log.protocol import StoredFile
from catalog.log.storage import SHARDS, Storage, open_storage
from catalog.stash import heartbeat, identity, probe

STASH = "stash"
_LOG = re.compile(rf"(?:{STASH}|{SHARDS}/[A-Za-z0-9_-]+)(?=/|$)")
"""The folder of a log within a store."""
_OF_A_LOG = (LOG_FOLDER, ARCHIVE_FOLDER)
_COLLECTION = re.compile(_LOG.pattern + r"/collection=[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Belongings:
    identity: tuple[StoredFile, ...]
    """`store.json`, and any that was not finished."""
    log: tuple[StoredFile, ...]
    """Entries and checkpoints, from the oldest on."""
    data: tuple[StoredFile, ...]
    heartbeats: tuple[StoredFile, ...]
    """And probes of processes that were killed."""
    folders: tuple[str, ...]
    """Those of the store, inner ones first."""
    others: tuple[str, ...]
    """What is not the store's: files, and folders that stand for all that is in them."""

    @property
    def files(self) -> tuple[StoredFile, ...]:
        return (*self.log, *self.data, *self.heartbeats, *self.identity)


def find_belongings(storage: Storage, options: Mapping[str, str]) -> Belongings:
    stored = sorted(_stored(storage, options), key=lambda file: file.path)
    own = [file for file in stored if _is_own(file.path)]
    logs = {STASH, *(found[0] for path in storage.paths(SHARDS) if (found := _LOG.match(path)))}
    folders = {heartbeat.FOLDER, probe.FOLDER, SHARDS, *logs, *(f"{log}/{name}" for log in logs for name in _OF_A_LOG)}
    folders |= {path for log in logs for path in storage.paths(log) if _COLLECTION.fullmatch(path)}
    folders |= {file.path.rpartition("/")[0] for file in own} - {""}
    strange = [file.path for file in stored if not _is_own(file.path)]
    # Other than files, names tell of folders that hold none, and of links that lead nowhere.
    strange += [path for folder in ("", *folders) for path in storage.paths(folder) if not _is_own(path)]
    return Belongings(
        identity=tuple(file for file in own if "/" not in file.path),
        log=tuple(sorted((file for file in own if is_log_file(_in_log(file.path))), key=_age)),
        data=tuple(file for file in own if is_data_file(_in_log(file.path))),
        heartbeats=tuple(file for file in own if heartbeat.is_sign(file.path) or probe.is_probe(file.path)),
        folders=tuple(sorted(folders, key=lambda folder: (-folder.count("/"), folder))),
        others=tuple(sorted({_outermost(path, folders) for path in strange} - folders)),
    )


def _stored(storage: Storage, options: Mapping[str, str]) -> Iterator[StoredFile]:
    """Every file, also in a folder of the store that is a link to another disk."""
    yield from storage.entries(STASH, SHARDS, heartbeat.FOLDER)
    for folder in (STASH, SHARDS, heartbeat.FOLDER):
        inner = open_storage(f"{storage.uri}/{folder}", options)
        if inner.found() is None:
            yield from (replace(file, path=f"{folder}/{file.path}") for file in inner.entries())


def _is_own(path: str) -> bool:
    if path == identity.PATH or identity.is_unfinished(path) or heartbeat.is_sign(path) or probe.is_probe(path):
        return True
    inner = _in_log(path)
    return is_data_file(inner) or is_log_file(inner)


def _in_log(path: str) -> str:
    """The path of a file within the log that it is in; nothing if it is in none."""
    found = _LOG.match(path)
    return "" if found is None else path[found.end() + 1 :]


def _age(file: StoredFile) -> tuple[int, str]:
    inner = _in_log(file.path)
    found = numbered(inner)
    version = left_behind(inner) if found is None else found[0]
    return -1 if version is None else version, file.path


def _outermost(path: str, folders: set[str]) -> str:
    """The path itself, or the outermost folder that it is in and that is not the store's."""
    parts = path.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return next((folder for folder in above if folder not in folders), path)
