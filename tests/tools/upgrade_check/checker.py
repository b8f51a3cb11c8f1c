"""A process that checks a store, says where it is, and waits there to be killed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from catalog.engine.base.project import Project
from catalog.engine.log.place import StorePlace
from catalog.engine.spark.jobs import SparkJobs
from catalog.events import Event, StepAdvanced, StepBegan, StepCommitted
from catalog.tools.upgrade_check.check import check_upgrade
from catalog.upgrade import PROJECT
from tests.engine.migrate.direct import DirectJobs

BY_TASKS = 20
"""Steps up to here run without a session."""


@dataclass
class Halting:
    """Waits for ever when so many things were told."""

    left: int

    def reach(self, place: str) -> None:
        if self.left == 0:
            sys.stdout.write(f"at {place}\n")
            sys.stdout.flush()
            sys.stdin.read()  # until it is killed
        self.left -= 1

    def __call__(self, notice: Event) -> None:
        match notice:
            case StepBegan(plan):
                self.reach(f"the beginning of {plan.name}")
            case StepAdvanced(plan):
                self.reach(f"a task of {plan.name}")
            case StepCommitted(plan):
                self.reach(f"the end of {plan.name}")
            case _:
                pass


def main(store: str, scratch: str, points: str, sessions: str) -> None:
    halting = Halting(int(points))
    project: Project = PROJECT
    make: Callable[..., object] = SparkJobs
    if sessions == "none":
        project = replace(PROJECT, current=BY_TASKS)
        make = lambda make_session: DirectJobs(lambda: halting.reach("a task"), make_session)  # noqa: E731
    with mock.patch("catalog.engine.spark.jobs.SparkJobs", make):
        spark: Any = object() if sessions == "none" else None  # a session that nothing asks for
        check_upgrade(StorePlace.at(project, store), spark=spark, scratch=Path(scratch), observer=halting)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
