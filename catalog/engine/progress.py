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


class Progress(Protocol):
    def began(self, plan: StepPlan) -> None:
        """A step begins."""

    def advanced(self, plan: StepPlan, rows: int, size: int) -> None:
        """About so many stored rows and bytes of the step are done."""

    def ended(self, plan: StepPlan, counts: Mapping[str, Counts]) -> None:
        """A step was committed."""


class Silent:
    def began(self, plan: StepPlan) -> None: ...

    def advanced(self, plan: StepPlan, rows: int, size: int) -> None: ...

    def ended(self, plan: StepPlan, counts: Mapping[str, Counts]) -> None: ...
