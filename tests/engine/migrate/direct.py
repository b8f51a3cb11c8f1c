"""Spark's tasks called directly: the same functions, shipped and answered through pickle, in this process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle

from catalog.engine.spark import jobs
from catalog.engine.spark.jobs import JobResult, ProgressCallback, SparkJobs, TaskOutput
from catalog.engine.spark.session import local_session
from catalog.errors import CatalogError, SparkJobError

_Task = TypeVar("_Task")


@dataclass(frozen=True, slots=True)
class Direct:
    """What a frame of a job is without Spark."""

    run: Callable[[], Iterator[pa.RecordBatch]]

    def collect(self) -> Iterator[dict[str, Any]]:
        """One row at a time, so that a job can be ended between two tasks."""
        return (row for batch in self.run() for row in batch.to_pylist())


class DirectJobs(SparkJobs):
    """Runs jobs here; a session is started only for actions that are given frames of Spark."""

    def __init__(self, began: Callable[[], None] = lambda: None, make_session: Callable[[], Any] | None = None) -> None:
        super().__init__(make_session or (lambda: local_session(settings={"spark.master": "local[2]"})))
        self.began = began
        """Called before each task."""
        self.shuffles = 0
        """How many collections went through a shuffle."""

    def tasks(self, work: Callable[[_Task], TaskOutput], groups: Sequence[Sequence[_Task]]) -> Any:  # noqa: ANN401 - no frame of Spark
        tasks = [[task] for group in groups for task in group]
        run = _shipped(jobs._each(work, tasks))  # noqa: SLF001 - what Spark's workers call

        def rows() -> Iterator[pa.RecordBatch]:
            for number in range(len(tasks)):
                self.began()
                yield from run(iter([pa.record_batch([pa.array([number])], names=["id"])]))

        return Direct(rows)

    def shuffled(
        self,
        feed: Callable[[_Task], Iterator[pa.RecordBatch]],
        tasks: Sequence[_Task],
        schema: str,
        work: Callable[[int, pa.Table], TaskOutput],
    ) -> Any:  # noqa: ANN401
        fed, grouped = _shipped(jobs._fed(feed, list(tasks))), _shipped(jobs._grouped(work))  # noqa: SLF001
        self.shuffles += 1

        def rows() -> Iterator[pa.RecordBatch]:
            numbers = [pa.record_batch([pa.array([number])], names=["id"]) for number in range(len(tasks))]
            batches = list(fed(iter(numbers)))[::-1]  # a shuffle keeps no order
            if batches:
                table = pa.Table.from_batches(batches)
                assert table.schema.names == [column.split()[0] for column in schema.split(", ")]
                for part in table["part"].unique().to_pylist():
                    self.began()
                    yield from grouped(table.filter(pc.equal(table["part"], part))).to_batches()

        return Direct(rows)

    def collect(
        self,
        frames: Sequence[Any],
        watch: ProgressCallback,
        *,
        gather: Callable[[list[bytes]], Iterable[object]] | None = None,
        buckets: int = 1,
        gathers_here: bool = False,
        count: int = 0,
    ) -> JobResult:
        del gathers_here  # everything is here
        outcome, done = JobResult(), []
        for frame in frames:
            try:
                for row in frame.collect():
                    done.append(jobs._row(row["bucket"], row["payload"]))  # noqa: SLF001
                    watch(min(len(done), count), count)
            except CatalogError:
                raise
            except Exception as error:
                raise SparkJobError(f"{type(error).__name__}: {error}") from error
        assert all(batch["bucket"][0].as_py() < buckets for batch in done)
        gathered = iter(done) if gather is None else _shipped(jobs._gathered(gather))(iter(done))  # noqa: SLF001
        for batch in gathered:
            for row in batch.to_pylist():
                content = pickle.loads(row["payload"])  # noqa: S301 - written by our own tasks
                if row["bucket"] == jobs._ERROR:  # noqa: SLF001
                    raise content
                (outcome.reports if row["bucket"] == jobs._REPORT else outcome.findings).append(content)  # noqa: SLF001
        return outcome


def _shipped(function: Any) -> Any:  # noqa: ANN401
    """As a worker gets it: nothing that it does to what it holds is seen here."""
    return pickle.loads(cloudpickle.dumps(function))  # type: ignore[no-untyped-call]  # noqa: S301
