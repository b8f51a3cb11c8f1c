"""What is told of a running upgrade, to whoever shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from catalog.engine.plan import StepPlan


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


class Progress(Protocol):
    def began(self, plan: StepPlan) -> None:
        """A step begins."""

    def advanced(self, plan: StepPlan, rows: int, size: int) -> None:
        """About so many of the stored rows and bytes to be rewritten are done: never fewer than before, at last all."""

    def ended(self, plan: StepPlan, counts: Mapping[str, Counts]) -> None:
        """A step was committed."""


class Silent:
    def began(self, plan: StepPlan) -> None: ...

    def advanced(self, plan: StepPlan, rows: int, size: int) -> None: ...

    def ended(self, plan: StepPlan, counts: Mapping[str, Counts]) -> None: ...


@dataclass(slots=True)
class Meter:
    """How far a step is, in one measure for all the jobs and attempts that it takes."""

    progress: Progress
    plan: StepPlan
    reached: float = 0.0

    def advance(self, done: int, count: int) -> None:
        """So many of the tasks of a job are done."""
        if count:
            self.reached = max(self.reached, done / count)
        plan, share = self.plan, self.reached
        self.progress.advanced(plan, int(share * plan.rows_to_rewrite), int(share * plan.bytes_to_rewrite))
