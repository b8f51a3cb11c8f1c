"""`store.json`: what a store is, written once when it is made."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import asdict, dataclass

from catalog.errors import NotAStoreError
from catalog.log.storage import Storage

LAYOUT = 1
_PATH = "store.json"
_UNFINISHED = re.compile(r"\.store\.json\.[0-9a-f]{32}\.tmp")


@dataclass(frozen=True, slots=True)
class Identity:
    id: str
    project: str
    layout: int
    copy_of: str | None
    """The id of the store that this one was copied from."""


def make_identity(storage: Storage, project: str, copy_of: str | None = None) -> Identity:
    """Make a place a store, or learn that another process just did."""
    identity = Identity(uuid.uuid4().hex, project, LAYOUT, copy_of)
    storage.create(_PATH, json.dumps(asdict(identity), indent=2).encode())
    found = read_identity(storage, project)
    if found is None:
        raise NotAStoreError(storage.uri, "store.json was written and is not there")
    return found


def read_identity(storage: Storage, project: str) -> Identity | None:
    """What the place says it is; none if it says nothing. Refuses another project's store and a newer layout."""
    raw = storage.read(_PATH)
    if raw is None:
        return None
    try:
        identity = Identity(**json.loads(raw))
    except (ValueError, TypeError) as error:
        raise NotAStoreError(storage.uri, f"store.json cannot be read: {error}") from error
    if identity.project != project:
        raise NotAStoreError(storage.uri, f"it belongs to the project {identity.project}, not to {project}")
    if identity.layout != LAYOUT:
        raise NotAStoreError(storage.uri, f"its layout is {identity.layout}, and this build knows {LAYOUT}")
    return identity


def is_unfinished(path: str) -> bool:
    """Whether a file is a `store.json` that another process is about to make, or stopped before it did."""
    return _UNFINISHED.fullmatch(path) is not None
