"""Jobs on Spark: plain functions over lists of tasks, in any number of processes.

A task answers a report and blobs in buckets; blobs of one bucket meet in one place, and only what is found there comes
back. Reports and findings of successful attempts arrive once each, whatever was killed, repeated or speculated. Of
Spark only the DataFrame API is used, so that classic and Connect sessions do the same.
"""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from catalog.errors import CatalogError, RetryableError, SparkJobError, StoreUnreachableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Task = TypeVar("_Task")
Answer = tuple[object, Iterable[tuple[int, bytes]]]
"""What a task reports, and blobs by bucket."""
Watch = Callable[[int, int], None]
"""Told again and again how many tasks are done, and of how many; raising ends the job."""

_SCHEMA = "bucket int, payload binary"
_COLUMNS = pa.schema([("bucket", pa.int32()), ("payload", pa.binary())])
_REPORT, _FINDING, _ERROR = -1, -2, -3
_POLL_S = 0.2
_END_S = 60
_ATTEMPTS = 3
_REPEATED_TOO_LATE = "shuffle map stage with indeterminate output"
"""What Spark says where it lost what a task made, after others had begun to use it."""


@dataclass(slots=True)
class Outcome:
    reports: list[Any] = field(default_factory=list)
    findings: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class SparkJobs:
    """Runs jobs in a session, which is made when the first job needs it."""

    make_session: Callable[[], SparkSession]
    _session: SparkSession | None = None

    @property
    def session(self) -> SparkSession:
        if self._session is None:
            self._session = self.make_session()
        return self._session

    def tasks(self, work: Callable[[_Task], Answer], tasks: Sequence[_Task]) -> DataFrame:
        """A frame that does each task in a partition of its own."""
        return self.session.range(0, len(tasks), 1, len(tasks)).mapInArrow(_each(work, list(tasks)), _SCHEMA)

    def shuffled(
        self,
        feed: Callable[[_Task], Iterator[pa.RecordBatch]],
        tasks: Sequence[_Task],
        schema: str,
        work: Callable[[int, pa.Table], Answer],
    ) -> DataFrame:
        """A frame that does `work` with all that the tasks feed to each number in the column `part`."""
        fed = self.session.range(0, len(tasks), 1, len(tasks)).mapInArrow(_fed(feed, list(tasks)), schema)
        return fed.groupBy("part").applyInArrow(_grouped(work), _SCHEMA)

    def collect(
        self,
        frames: Sequence[DataFrame],
        watch: Watch,
        *,
        gather: Callable[[list[bytes]], Iterable[object]] | None = None,
        buckets: int = 1,
        count: int = 0,
    ) -> Outcome:
        """Run frames as one job; `gather` sees all blobs of a bucket at once."""
        outcome = Outcome()
        if not frames:
            return outcome
        frame = frames[0]
        for other in frames[1:]:
            frame = frame.unionAll(other)
        if gather is not None:
            frame = frame.repartition(buckets, "bucket").mapInArrow(_gathered(gather), _SCHEMA)
        for row in self._run(frame, watch, count):
            content = pickle.loads(row["payload"])  # noqa: S301 - written by our own tasks
            if row["bucket"] == _ERROR:
                raise content
            (outcome.reports if row["bucket"] == _REPORT else outcome.findings).append(content)
        return outcome

    def _run(self, frame: DataFrame, watch: Watch, count: int) -> list[Any]:
        """Every attempt of a task reports files of its own: if Spark had to repeat some too late, it repeats all."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return Job(self.session, frame.collect).run(watch, count)
            except SparkJobError as error:
                if _REPEATED_TOO_LATE not in str(error.__cause__):
                    raise
                frame = frame.select("*")  # planned anew: a plan remembers that it failed
        return Job(self.session, frame.collect).run(watch, count)


def answered(answer: Answer) -> Iterator[pa.RecordBatch]:
    """An answer as rows of a job's frame."""
    report, blobs = answer
    yield _row(_REPORT, pickle.dumps(report))
    for bucket, blob in blobs:
        yield _row(bucket, blob)


def guarded(rows: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The rows of an attempt; an error of ours that no other attempt would mend arrives as itself."""
    try:
        yield from rows()
    except (StoreUnreachableError, RetryableError):
        raise
    except CatalogError as error:
        yield _row(_ERROR, pickle.dumps(error))


def _each(work: Callable[[Any], Answer], tasks: list[Any]) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from guarded(lambda number=number: answered(work(tasks[number])))  # type: ignore[misc]

    return run


def _fed(
    feed: Callable[[Any], Iterator[pa.RecordBatch]], tasks: list[Any]
) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from feed(tasks[number])

    return run


def _grouped(work: Callable[[int, pa.Table], Answer]) -> Callable[[pa.Table], pa.Table]:
    def run(table: pa.Table) -> pa.Table:
        part = table["part"][0].as_py()
        return pa.Table.from_batches(list(guarded(lambda: answered(work(part, table)))), _COLUMNS)

    return run


def _gathered(gather: Callable[[list[bytes]], Iterable[object]]) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blobs: dict[int, list[bytes]] = {}
        for batch in batches:
            for bucket, payload in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                if bucket < 0:
                    yield _row(bucket, payload)
                else:
                    blobs.setdefault(bucket, []).append(payload)
        for own in blobs.values():
            for finding in gather(own):
                yield _row(_FINDING, pickle.dumps(finding))

    return run


def _row(bucket: int, payload: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([bucket], pa.int32()), pa.array([payload], pa.binary())], schema=_COLUMNS)


class Job:
    """What collects rows, in a thread of its own, so that it can be watched and ended."""

    def __init__(self, session: SparkSession, collect: Callable[[], list[Any]]) -> None:
        self._session, self._rows_of = session, collect
        self._tag = f"catalog-{uuid.uuid4().hex}"
        self._is_connect = type(session).__module__.startswith("pyspark.sql.connect")
        self._rows: list[Any] = []
        self._error: BaseException | None = None
        self._ended = threading.Event()
        """Not the thread itself: if a join is interrupted, Python takes the thread for ended."""
        self._stages: list[Any] = []
        self.is_ending = threading.Event()
        """Set as soon as it is to end: what has not begun until then need not."""

    def run(self, watch: Watch, count: int) -> list[Any]:
        thread = threading.Thread(target=self._collect, name=self._tag, daemon=True)
        if self._is_connect:
            self._session.registerProgressHandler(self._progressed)  # type: ignore[arg-type]
        thread.start()
        try:
            is_over = False
            while not is_over:
                is_over = self._ended.wait(_POLL_S)
                # Where nothing is counted Java is not asked: an interrupt in the middle of that loses the connection.
                watch(min(self._done(), count) if count else 0, count)
        except BaseException:
            self._end()
            raise
        finally:
            if self._is_connect:
                self._session.removeProgressHandler(self._progressed)  # type: ignore[arg-type]
        if self._error is not None:
            raise SparkJobError(_last_line(self._error)) from self._error
        return self._rows

    def _end(self) -> None:
        """Cancel until the job has ended: one that is only about to begin is not seen. It is given up after a while."""
        self.is_ending.set()
        deadline = time.monotonic() + _END_S
        while not self._ended.is_set() and time.monotonic() < deadline:
            with suppress(Exception):  # why it ends is what is to be told
                self._cancel()
            self._ended.wait(_POLL_S)

    def _cancel(self) -> None:
        if self._is_connect:
            self._session.interruptTag(self._tag)
        else:  # where a session knows tags of the calling thread alone
            self._session.sparkContext.cancelJobGroup(self._tag)

    def _collect(self) -> None:
        try:
            if self._is_connect:
                self._session.addTag(self._tag)
            else:
                self._session.sparkContext.setJobGroup(self._tag, "catalog", interruptOnCancel=True)
            self._rows = self._rows_of()
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            self._error = error
        finally:
            self._ended.set()

    def _done(self) -> int:
        """Tasks done of the first stage, which does the work; for display only."""
        if self._is_connect:
            return int(self._stages[0].num_completed_tasks) if self._stages else 0
        tracker = self._session.sparkContext.statusTracker()
        jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(self._tag)))
        stages = [stage for job in jobs for stage in job.stageIds]
        found = tracker.getStageInfo(min(stages)) if stages else None
        return int(found.numCompletedTasks) if found else 0

    def _progressed(self, stages: Iterable[Any] | None, *_: object, **__: object) -> None:
        self._stages = list(stages or ())


def _last_line(error: BaseException) -> str:
    """What a traceback that crossed Spark ends with."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith(("at ", "Caused by", "...", "File "))]
    return next((line for line in reversed(own) if "Error" in line or "Exception" in line), own[0] if own else "")
