"""The store of a command, and how it is reached."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from catalog.engine.base.fence import LOCK_TIMEOUT_S
from catalog.engine.base.project import Project, load_project
from catalog.engine.log.place import StorePlace
from catalog.engine.storage.identity import read_identity
from catalog.errors import NoStoreError, StepTimedOutError, UsageError

if TYPE_CHECKING:
    from catalog.cli.settings import Settings
    from catalog.engine.migrate.plan import StepPlan
    from catalog.engine.store.leadership import LeadershipOptions
    from catalog.engine.store.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class StoreTarget:
    project: Project
    store: str
    options: Mapping[str, str] = field(default_factory=dict)
    spark: str | None = None
    class_archive: str | None = None
    deploy_generation: int | None = None
    lock_timeout_s: float = LOCK_TIMEOUT_S
    timeout_s: float | None = None
    began_s: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, settings: Settings, store: str | None = None) -> Self:
        where = store or settings["store"]
        if where is None:
            raise UsageError(
                "no store was named",
                "neither a flag, nor a variable, nor a file names one",
                "give --store, set CATALOG_STORE, or write `store` under [tool.catalog]",
            )
        return cls(
            load_project(settings["project"]),
            where,
            settings.storage_options,
            settings["spark"],
            settings["class_archive"],
            settings["deploy_generation"],
            settings["lock_timeout"],
            settings["timeout"],
        )

    @property
    def place(self) -> StorePlace:
        return StorePlace.at(self.project, self.store, self.options)

    @property
    def leadership(self) -> LeadershipOptions:
        from catalog.engine.store.leadership import LeadershipOptions  # noqa: PLC0415 - most commands never lead

        deadline = None if self.timeout_s is None else self.began_s + self.timeout_s
        return LeadershipOptions(self.deploy_generation, self.lock_timeout_s, deadline_s=deadline)

    def permit(self, plan: StepPlan) -> None:
        """Raise an error after the timeout, before a step is committed."""
        if self.timeout_s is not None and time.monotonic() > self.began_s + self.timeout_s:
            raise StepTimedOutError(plan.name, self.timeout_s, plan.previous)

    def find_version(self) -> int | None:
        """Return the version of the store; None if it does not exist or is not initialised."""
        if read_identity(self.place.storage, self.project.name) is None:
            return None
        try:
            return self.look().state.stash_version
        except NoStoreError:
            return None

    def look(self) -> StoreSnapshot:
        """Read the store as it is now, of any version, without touching it."""
        from catalog.engine.store.snapshot import StoreSnapshot  # noqa: PLC0415 - a command that leads reads it itself

        return StoreSnapshot.of(self.place)
