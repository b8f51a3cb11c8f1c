"""A store as it is now, of any version, read without writing or fencing."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace, stash_version
from catalog.engine.log.protocol import Log, LogState
from catalog.engine.log.replica import newest_state
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.stash.recorded_types import require_types
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.engine.storage.base import Storage
from catalog.engine.storage.heartbeat import LeaderStatus, leader_status
from catalog.engine.storage.identity import Identity


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """The newest state of a store, read once."""

    place: StorePlace
    storage: Storage
    identity: Identity
    log: DeltaLog
    state: LogState

    @classmethod
    def of(cls, place: StorePlace) -> StoreSnapshot:
        """Read the newest state; raise NotAStoreError if there is no store."""
        identity, log = place.identity(), place.log()
        return cls(place, place.storage, identity, log, newest_state(log))

    @property
    def version(self) -> int:
        """The version of the rows; raises NotInitializedError if there is none yet."""
        return stash_version(self.state, self.place.uri)

    def require_types(self) -> None:
        """Refuse rows whose version this build does not know, or knows with other types."""
        require_types(self.place.project, load_view(BaseFileCache(self.log), self.state))

    @property
    def holder(self) -> str:
        """The host and process of the newest leader; empty if the store was never led."""
        return read_holder(self.log, Registry.of(self.place.project.current_types), self.state)

    @property
    def leader_status(self) -> LeaderStatus:
        return leader_status(self.storage, self.state.fence)

    @property
    def system_rows(self) -> SystemRows:
        """The rows of the engine's own collections, which have one encoding at every version."""
        return SystemRows(self.log, Registry.of(self.place.project.current_types), self.state.fence, self.state)


def read_holder(log: Log, registry: Registry, state: LogState) -> str:
    """Read the host and number of the process that leads at a state, or led last; empty if none ever led."""
    token = registry.named("fence_token")
    rows = load_view(BaseFileCache(log), state, (token.name,)).rows(token.name)
    return next((token.decode(*row)[1].holder for row in rows), "")  # type: ignore[attr-defined]
