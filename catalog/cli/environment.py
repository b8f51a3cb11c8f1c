"""The store that a command is for, and how it is reached: what every verb is handed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from catalog.errors import NotInitializedError, StepTimedOutError, UsageError
from catalog.leading import Patience
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Mark, State
from catalog.log.storage import Storage, open_storage
from catalog.project import Place, Project, load_project
from catalog.stash.collections import Registry
from catalog.stash.identity import Identity, require_identity

if TYPE_CHECKING:
    from catalog.cli.settings import Settings
    from catalog.engine.journal import Journal
    from catalog.engine.plan import StepPlan


@dataclass(frozen=True, slots=True)
class Environment:
    project: Project
    store: str
    options: Mapping[str, str] = field(default_factory=dict)
    spark: str | None = None
    deploy_generation: int | None = None
    lock_timeout_s: float = 60.0
    timeout_s: float | None = None
    began_s: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, settings: Settings, store: str | None = None) -> Self:
        where = store or settings["store"]
        if where is None:
            raise UsageError(
                "no store was named",
                "neither a flag, nor a variable, nor a file says which one is meant",
                "give --store, set CATALOG_STORE, or write `store` under [tool.catalog]",
            )
        return cls(
            load_project(settings["project"]),
            where,
            settings.storage_options,
            settings["spark"],
            settings["deploy_generation"],
            settings["lock_timeout"],
            settings["timeout"],
        )

    @property
    def storage(self) -> Storage:
        return open_storage(self.store, self.options)

    @property
    def place(self) -> Place:
        return Place(self.storage.uri, self.options, self.project)

    @property
    def patience(self) -> Patience:
        deadline = None if self.timeout_s is None else self.began_s + self.timeout_s
        return Patience(self.deploy_generation, self.lock_timeout_s, deadline_s=deadline)

    def permit(self, plan: StepPlan) -> None:
        """Stop a step when the time is up: nothing of it is committed then."""
        if self.timeout_s is not None and time.monotonic() > self.began_s + self.timeout_s:
            raise StepTimedOutError(plan.name, self.timeout_s, plan.previous)

    def look(self) -> Look:
        """The store as it is now, of any version, without touching it."""
        storage = self.storage
        identity = require_identity(storage, self.project.name)
        log = DeltaLog(f"{storage.uri}/stash", self.options)
        return Look(self, storage, identity, log, log.state(log.verify()))


@dataclass(frozen=True, slots=True)
class Look:
    """A store at its newest state."""

    environment: Environment
    storage: Storage
    identity: Identity
    log: DeltaLog
    state: State

    @property
    def version(self) -> int:
        version = self.state.marks.get(Mark.STASH_VERSION)
        if version is None:
            raise NotInitializedError(self.storage.uri)
        return version

    @property
    def holder(self) -> str:
        """Who led it last, for people to read."""
        rows: Sequence[tuple[Any, Any]] = self.journal.rows("fence_token")
        return next((str(value.holder) for _, value in rows), "")

    @property
    def journal(self) -> Journal:
        """The engine's own rows; they have one encoding at every version, newer ones included."""
        from catalog.engine.journal import Journal  # noqa: PLC0415 - not every verb reads them

        registry = Registry.of(self.environment.project.current_types)
        return Journal(self.log, registry, self.state.fence, self.state)
