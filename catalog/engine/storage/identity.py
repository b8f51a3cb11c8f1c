"""`store.json`, the identity of a store: written when the store is made, and again when it is to be removed."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import asdict, dataclass

from catalog.engine.storage.base import Storage
from catalog.errors import BeingRemovedError, DamagedIdentityError, NotAStoreError, OtherProjectError

LAYOUT = 1
PATH = "store.json"
_UNFINISHED = re.compile(r"\.store\.json\.[0-9a-f]{32}\.tmp")
_REMOVING = "removing"
"""Stands in the file only once it is true: builds that do not know it refuse such a store too."""


@dataclass(frozen=True, slots=True)
class Identity:
    id: str
    project: str
    layout: int
    copy_of: str | None
    """The id of the store that this one was copied from."""


def make_identity(storage: Storage, project: str, copy_of: str | None = None) -> Identity:
    """Make a place a store, or return the identity that another process has just given it."""
    identity = Identity(uuid.uuid4().hex, project, LAYOUT, copy_of)
    if not storage.create(PATH, _encoded(asdict(identity))):
        settle_identity(storage)
    found = read_identity(storage, project)
    if found is None:
        raise NotAStoreError(storage.uri, "store.json was written and is not there")
    return found


def read_identity(storage: Storage, project: str) -> Identity | None:
    """Return the identity of a place; none if it has none.

    Refuses another project's store, a newer layout, and a store that is being removed.
    """
    found = _read(storage, project)
    if found is None:
        return None
    identity, removing = found
    if removing:
        raise BeingRemovedError(storage.uri)
    return identity


def require_identity(storage: Storage, project: str) -> Identity:
    """Return the identity of the store here; refuse a place that is none."""
    identity = read_identity(storage, project)
    if identity is None:
        raise no_store(storage)
    return identity


def settle_identity(storage: Storage) -> None:
    """Make the identity of a store durable before anything is written there: the process that made it may have failed
    to.
    """
    storage.settle(PATH)


def no_store(storage: Storage) -> NotAStoreError:
    return NotAStoreError(storage.uri, storage.found() or "there is no store.json")


def read_for_removal(storage: Storage, project: str) -> tuple[Identity, bool] | None:
    """Return the identity of a store to be removed, and whether its removal began already."""
    return _read(storage, project)


def mark_removing(storage: Storage, identity: Identity) -> None:
    """Mark a store as being removed: from then on no process opens it."""
    storage.replace(PATH, _encoded({**asdict(identity), _REMOVING: True}))


def is_unfinished(path: str) -> bool:
    """Tell if a file is a `store.json` that another process is about to make, or stopped before it did."""
    return _UNFINISHED.fullmatch(path) is not None


def _read(storage: Storage, project: str) -> tuple[Identity, bool] | None:
    raw = storage.read(PATH)
    if raw is None:
        return None
    try:
        content = json.loads(raw)
        removing = content.pop(_REMOVING, False) is True
        identity = Identity(**content)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedIdentityError(storage.uri, f"store.json cannot be read: {error}") from error
    if identity.project != project:
        raise OtherProjectError(storage.uri, f"it belongs to the project {identity.project}, not to {project}")
    if identity.layout != LAYOUT:
        raise NotAStoreError(storage.uri, f"its layout is {identity.layout}, and this build knows {LAYOUT}")
    return identity, removing


def _encoded(content: dict[str, object]) -> bytes:
    return json.dumps(content, indent=2).encode()
