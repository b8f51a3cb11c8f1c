"""A newest entry that its writer did not finish: told from others, and set aside with its bytes kept.

An entry is acknowledged when it is durable, so one that is damaged and the newest never was. It is copied beside the
log, and a seal takes its version. It is not removed: while its name is taken nobody can commit there, so whoever sets
it aside, and however often, never overwrites a commit; and a process that has the log open goes on after it.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass

from catalog.errors import CatalogError, DiagnosisOutdatedError, ForeignTableError, LogTooNewError, TornLogError
from catalog.log.archive import Archive
from catalog.log.entries import entry_path, parse_entry, sealing_entry
from catalog.log.protocol import Change, Operation, pass_on
from catalog.log.snapshots import Snapshots
from catalog.log.storage import Storage

QUARANTINE_FOLDER = "_quarantine"


@dataclass(frozen=True, slots=True)
class Torn:
    """A newest entry that is damaged."""

    version: int
    found: str
    """What is wrong with it."""
    size: int
    digest: str
    """Of its bytes, so that the same can be known again."""
    obstacle: str = ""
    """Why it cannot be set aside; empty if it can."""

    @property
    def path(self) -> str:
        """Where its bytes are kept, within the stash."""
        return f"{QUARANTINE_FOLDER}/{self.version:020d}.{self.digest[:16]}.json"


def find_torn(storage: Storage) -> Torn | None:
    """The newest entry, if it is damaged; none if it is whole, whoever wrote it, or if there is no log."""
    archive = Archive(storage, pass_on)
    versions, checkpoints = archive.listed()
    raw = archive.read(entry_path(versions[-1])) if versions else None
    if raw is None:
        return None
    newest = versions[-1]
    try:
        parse_entry(storage.uri, newest, raw)
    except TornLogError as error:
        obstacle = _obstacle(Snapshots(storage, archive), newest, checkpoints)
        return Torn(newest, error.found, len(raw), hashlib.sha256(raw).hexdigest(), obstacle)
    except (ForeignTableError, LogTooNewError):
        return None
    return None


def set_aside(storage: Storage, torn: Torn, now_ms: int) -> None:
    """Keep the bytes of a damaged entry beside the log, and take its version by a seal."""
    if torn.obstacle:
        raise TornLogError(storage.uri, torn.version, f"{torn.found}; it cannot be set aside: {torn.obstacle}")
    found = find_torn(storage)
    if found is None and storage.size(torn.path) is not None:
        return  # another repair was quicker
    raw = storage.read(entry_path(torn.version))
    if found != torn or raw is None or hashlib.sha256(raw).hexdigest() != torn.digest:
        raise DiagnosisOutdatedError(storage.uri, f"log entry {torn.version}")
    storage.create(torn.path, raw)
    seal = Change(Operation.SEAL, uuid.uuid4().hex, details={"quarantined": torn.path})
    storage.replace(entry_path(torn.version), sealing_entry(seal, now_ms))


def _obstacle(snapshots: Snapshots, version: int, checkpoints: list[int]) -> str:
    if version == 0:
        return "it is the first, and there is no state before it"
    if checkpoints and checkpoints[-1] >= version:
        return "a checkpoint was made of it, so it was whole once, and acknowledged"
    try:
        snapshots.state(version - 1)
    except CatalogError as error:
        return f"the state before it cannot be read either: {error.what}"
    return ""
