"""A probe of a place: tells if files can be made, replaced, read and removed there, as a store needs it.

Uses the same calls as commits: written, synced, linked or put conditionally, renamed. Leaves nothing behind; the
leftover of a process that is killed meanwhile is known to be the store's.
"""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from dataclasses import dataclass

from catalog.engine.storage.base import Storage
from catalog.errors import CatalogError, NotExclusiveError, StoreUnreachableError

_NAME = re.compile(r"\.?[0-9a-f]{32}\.probe(?:\.[0-9a-f]{32}\.tmp)?")
_FIRST, _SECOND = b"first", b"second"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    path: str
    is_exclusive: bool
    """The second writer was refused: without that, two commits could take one version."""
    is_faithful: bool
    """The content that was read is that which was written last."""
    modified_ms: int | None
    """The time at which the file was written, by the clock of the place."""


def probe(storage: Storage) -> ProbeResult:
    """Write a file, and remove it again; raises the errors of the place."""
    path = _new_path()
    try:
        is_exclusive = _is_exclusive(storage, path)
        storage.replace(path, _SECOND)
        return ProbeResult(path, is_exclusive, storage.read(path) == _SECOND, storage.modified_ms(path))
    finally:
        storage.delete(path)


def require_exclusive(storage: Storage) -> None:
    """Refuse a place where a second writer replaces a file that it must not; raises the errors of the place.

    That the file cannot be removed again is no reason to refuse a place: maintenance can wait.
    """
    path = _new_path()
    try:
        is_exclusive = _is_exclusive(storage, path)
    finally:
        with suppress(CatalogError):
            storage.delete(path)
    if not is_exclusive:
        raise NotExclusiveError(storage.uri)


def is_probe(path: str) -> bool:
    """Tell if a file is a probe, or one that was not finished."""
    return _NAME.fullmatch(path) is not None


def _new_path() -> str:
    return f"{uuid.uuid4().hex}.probe"


def _is_exclusive(storage: Storage, path: str) -> bool:
    """Create a file twice, and tell if the first one stayed.

    A new file that seems to be there already was written by this process: the answer was lost, and the request
    repeated. So the content decides as well as the answers.
    """
    if not storage.create(path, _FIRST):
        _require_content(storage, path, _FIRST)
    is_replaced = storage.create(path, _SECOND)
    return _require_content(storage, path, _FIRST, _SECOND) == _FIRST and not is_replaced


def _require_content(storage: Storage, path: str, *possible: bytes) -> bytes:
    found = storage.read(path)
    if found is None or found not in possible:
        is_there = "is not there" if found is None else "has another content"
        raise StoreUnreachableError(f"{storage.uri}/{path}", "read", f"it was just written, and {is_there}")
    return found
