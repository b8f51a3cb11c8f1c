"""The place of a store: where it is, how its storage is reached, and whose project it belongs to.

Everything that addresses a store does so through `StorePlace`. It reads nothing until it is asked, and writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from catalog.engine.base.project import Project
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import LogState
from catalog.engine.log.replica import newest_state
from catalog.engine.storage.base import Storage, open_storage
from catalog.engine.storage.identity import Identity, require_identity
from catalog.engine.storage.layout import shard_uri, stash_uri, tables_uri
from catalog.errors import NotInitializedError


@dataclass(frozen=True, slots=True)
class StorePlace:
    """The address of a store, the options of its storage, and its project.

    >>> place = StorePlace.at(project, "s3://bucket/environment", {"region": "eu-central-1"})
    >>> place.version(), place.state().fence
    """

    uri: str
    options: Mapping[str, str] = field(repr=False)
    """May hold credentials."""
    project: Project

    @classmethod
    def at(cls, project: Project, store: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Self:
        """Return the place of a store by its address: a path, a file URI, or a prefix of an object store."""
        own = dict(options or {})
        return cls(open_storage(os.fspath(store), own).uri, own, project)

    @property
    def storage(self) -> Storage:
        return open_storage(self.uri, self.options)

    def identity(self) -> Identity:
        """Return the content of `store.json`; raise NotAStoreError if there is none."""
        return require_identity(self.storage, self.project.name)

    def log(self) -> DeltaLog:
        """Return the log of the stash, which may not exist yet."""
        return DeltaLog(self.stash_uri, self.options)

    def shard_log(self, shard_id: str) -> DeltaLog:
        """Return the log of a shard, which may not exist yet."""
        return DeltaLog(shard_uri(self.uri, shard_id), self.options)

    def tables_log(self) -> DeltaLog:
        """Return the log of the tables, which may not exist yet."""
        return DeltaLog(tables_uri(self.uri), self.options)

    @property
    def stash_uri(self) -> str:
        return stash_uri(self.uri)

    def state(self) -> LogState:
        """Read the newest state of the stash, after verifying that its newest entry is whole."""
        return newest_state(self.log())

    def version(self) -> int:
        """Read the version of the rows; raise NotInitializedError if the store has none yet."""
        return stash_version(self.state(), self.uri)


def stash_version(state: LogState, uri: str) -> int:
    """Return the version of the rows of a state; raise NotInitializedError if it has none."""
    if state.stash_version is None:
        raise NotInitializedError(uri)
    return state.stash_version
