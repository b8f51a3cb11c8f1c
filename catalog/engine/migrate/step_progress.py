"""The progress of a step, and the counts of its collections."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.engine.migrate.plan import StepPlan
from catalog.events import Observer, StepAdvanced, StepBegan, StepCommitted, StepFailed


@dataclass(slots=True)
class Counts:
    """The counts of one collection, before and after a step."""

    rows_before: int = 0
    rows_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    changed: int = 0
    """Rows that stay in their collection with other bytes; for a frame only a check counts them."""
    inserted: int = 0
    deleted: int = 0


@dataclass(slots=True)
class StepProgress:
    """Reports one step to the observer, in one measure for all its jobs and attempts."""

    observer: Observer
    plan: StepPlan
    reached: float = 0.0
    began_s: float = field(default_factory=time.monotonic)

    def begin(self) -> None:
        self.observer(StepBegan(self.plan))

    def advance(self, done: int, count: int) -> None:
        """Report that so many of the tasks of a job are done."""
        if count:
            self.reached = max(self.reached, done / count)
        plan, share = self.plan, self.reached
        self.observer(StepAdvanced(plan, int(share * plan.rows_to_rewrite), int(share * plan.bytes_to_rewrite)))

    def commit(self, counts: Mapping[str, Counts]) -> None:
        self.advance(1, 1)
        self.observer(StepCommitted(self.plan, counts, self._seconds))

    def fail(self, error: BaseException, what: str) -> None:
        self.observer(StepFailed(self.plan, type(error).__name__, what, self._seconds))

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self.began_s
