"""A probe of a place: whether files can be made, replaced, read and removed there, as a store needs it.

Made by the very calls that commits are made of: written, synced, linked or put conditionally, renamed. Leaves nothing
behind; what a process leaves that is killed meanwhile is known to be the store's.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.log.storage import Storage, open_storage

FOLDER = "probes"
_NAME = re.compile(FOLDER + r"/\.?[0-9a-f]{32}\.probe(?:\.[0-9a-f]{32}\.tmp)?")
_FIRST, _SECOND = b"first", b"second"


@dataclass(frozen=True, slots=True)
class Probed:
    path: str
    is_exclusive: bool
    """Whoever came second was refused: without that, two commits could take one version."""
    is_faithful: bool
    """What was read is what was written last."""
    modified_ms: int | None
    """When the file was written, by the clock of the place."""


def probe(storage: Storage, options: Mapping[str, str]) -> Probed:
    """Write a file, and remove it again; raises what the place says against it."""
    path = f"{FOLDER}/{uuid.uuid4().hex}.probe"
    try:
        created = storage.create(path, _FIRST)
        is_exclusive = created and not storage.create(path, _SECOND) and storage.read(path) == _FIRST
        storage.replace(path, _SECOND)
        is_faithful = storage.read(path) == _SECOND
        written = open_storage(f"{storage.uri}/{FOLDER}", options).entries()
        modified = [file.modified_ms for file in written if path.endswith(file.path)]
    finally:
        storage.delete(path)
        storage.remove_folder(FOLDER)
    return Probed(path, is_exclusive, is_faithful, modified[0] if modified else None)


def is_probe(path: str) -> bool:
    """Whether a file is a probe, or one that was not finished."""
    return _NAME.fullmatch(path) is not None
