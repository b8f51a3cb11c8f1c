"""The record of an upgrade, for the commands that run one."""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog.events import BuiltinsMigrated, Event, FenceTaken, StepCommitted


@dataclass(frozen=True, slots=True)
class StepDone:
    name: str
    version: int
    seconds: float
    rows_before: int
    rows_after: int
    bytes_before: int
    bytes_after: int


@dataclass(slots=True)
class UpgradeRecorder:
    """An observer that keeps the version before the upgrade, and the result of each step."""

    version_before: int | None = None
    """The version of the store as this process began to lead it; None if it was not initialised."""
    steps: list[StepDone] = field(default_factory=list)
    builtins: str | None = None
    """The build to which the builtins were migrated; None if there was nothing to migrate."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, FenceTaken):
            self.version_before = event.version
        if isinstance(event, BuiltinsMigrated):
            self.builtins = event.build
        if isinstance(event, StepCommitted):
            rows, sizes = (event.rows_before, event.rows_after), (event.bytes_before, event.bytes_after)
            self.steps.append(StepDone(event.plan.name, event.plan.version, event.seconds, *rows, *sizes))
