"""How far a step is, and what it came to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.engine.plan import StepPlan
from catalog.notices import Observer, StepAdvanced, StepBegan, StepCommitted, StepFailed


@dataclass(slots=True)
class Counts:
    """Of one collection, before and after a step."""

    rows_before: int = 0
    rows_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    changed: int = 0
    """Rows that stay in their collection with other bytes; what a frame does to rows is told by a check alone."""
    inserted: int = 0
    deleted: int = 0


@dataclass(slots=True)
class Meter:
    """Tells of one step: how far it is, in one measure for all the jobs and attempts that it takes."""

    observer: Observer
    plan: StepPlan
    reached: float = 0.0
    began_s: float = field(default_factory=time.monotonic)

    def begin(self) -> None:
        self.observer(StepBegan(self.plan))

    def advance(self, done: int, count: int) -> None:
        """So many of the tasks of a job are done."""
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
