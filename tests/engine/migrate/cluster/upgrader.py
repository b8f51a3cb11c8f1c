"""A process that upgrades stores, told which by lines of its input; says on its output how far it is.

A process speaks to Spark either as ever or by Connect, for its whole life: the first store decides.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark.sql.connect.session  # noqa: F401 - loaded before the clock runs

import catalog.engine.migrate.executor
import catalog.generated.objects_pb2  # noqa: F401
from catalog import open_catalog
from catalog.engine.spark.jobs import SparkJobs, TaskOutput
from catalog.engine.spark.session import local_session
from catalog.errors import CatalogError
from catalog.events import Event, StepBegan, StepCommitted


def answer(**said: object) -> None:
    """Written at once and whole, so that it outlives the process."""
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def tell(notice: Event) -> None:
    """Of every step, when it began and ended."""
    match notice:
        case StepBegan(plan):
            answer(began=plan.version, at=time.time())
        case StepCommitted(plan):
            answer(ended=plan.version, at=time.time())
        case _:
            pass


def upgrade(told: dict[str, Any]) -> None:
    spark = told["spark"]
    if told["settings"]:
        spark = local_session(settings=told["settings"] | ({"spark.master": spark} if spark else {}))
    try:
        opened = open_catalog(
            told["store"],
            options=told["options"],
            deploy_generation=told["generation"],
            spark=spark,
            observer=tell,
        )
    except CatalogError as error:
        answer(error=type(error).__name__, text=str(error))
        return
    with opened:
        answer(done=opened.version, at=time.time())


def jobs(told: dict[str, Any]) -> None:
    """Which jobs a session of ours runs."""
    del told
    answer(jobs=list(local_session().sparkContext.statusTracker().getActiveJobsIds()))


def executors(told: dict[str, Any]) -> None:
    """How many a session of ours has."""
    del told
    known = local_session().sparkContext._jsc.sc().getExecutorMemoryStatus().size()  # noqa: SLF001 - not in Python
    answer(executors=known - 1)  # the driver is among them


def lose(told: dict[str, Any]) -> None:
    """A job whose tasks report something else at every attempt, and that stops once when all have reported."""
    held = Path(told["held"])

    def work(number: int) -> TaskOutput:
        return (number, uuid.uuid4().hex), [(0, b"blob")]

    def gather(blobs: list[bytes]) -> Iterator[int]:
        try:
            with held.open("x") as mine:
                mine.write(f"{os.getpid()}\n")
        except FileExistsError:
            yield len(blobs)
        else:
            signal.pause()

    spark = SparkJobs(local_session)
    tasks = [[number] for number in range(told["tasks"])]
    done = spark.collect([spark.tasks(work, tasks)], lambda *_: None, gather=gather, buckets=2)
    answer(reports=sorted(number for number, _ in done.reports), findings=done.findings)


def main() -> None:
    answer(ready=True)
    for line in sys.stdin:
        told = json.loads(line)
        {"upgrade": upgrade, "jobs": jobs, "executors": executors, "lose": lose}[told["do"]](told)


if __name__ == "__main__":
    main()
