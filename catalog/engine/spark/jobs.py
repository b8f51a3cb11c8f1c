"""Jobs on Spark: plain functions over lists of tasks, in any number of processes.

A task returns a report and blobs in buckets; blobs of one bucket meet in one place, and only the findings there come
back. Reports and findings of successful attempts arrive once each, even if tasks were killed, repeated or speculated.
Only the DataFrame API of Spark is used, so that classic and Connect sessions do the same.
"""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from catalog.engine.spark.java_errors import is_of_java, java_errors
from catalog.errors import CatalogError, RetryableError, SparkJobError, StoreUnreachableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Task = TypeVar("_Task")
TaskOutput = tuple[object, Iterable[tuple[int, bytes]]]
"""The report of a task, and blobs by bucket."""
ProgressCallback = Callable[[int, int], None]
"""Told again and again how many tasks are done, and of how many; raising ends the job."""

JOB_SCHEMA = "bucket int, payload binary"
"""The columns of a job's frame, as Spark declares them."""
JOB_COLUMNS = pa.schema([("bucket", pa.int32()), ("payload", pa.binary())])
_REPORT, _FINDING, _ERROR = -1, -2, -3
_POLL_S = 0.2
_END_S = 60
_ATTEMPTS = 3
_FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
}
"""For jobs in which every task, every job of a stage and every compilation costs more than all the rows."""
_REPEATED_TOO_LATE = "shuffle map stage with indeterminate output"
"""Spark's message if the output of a task was lost after others had begun to use it."""


@dataclass(slots=True)
class JobResult:
    reports: list[Any] = field(default_factory=list)
    findings: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class SparkJobs:
    """Jobs in a session, which is made when the first job needs it."""

    make_session: Callable[[], SparkSession]
    _session: SparkSession | None = None
    _few_rows_session: SparkSession | None = None

    @property
    def session(self) -> SparkSession:
        if self._session is None:
            with java_errors():
                self._session = self.make_session()
        return self._session

    @contextmanager
    def for_few_rows(self) -> Iterator[None]:
        """Run what is done inside in a session beside the given one, with plans for few rows.

        The given session, which may be a caller's, is not changed; its settings hold in the other one too.
        """
        given = self.session
        if self._few_rows_session is None:
            with java_errors():
                self._few_rows_session = _few_rows_session(given)
        self._session = self._few_rows_session
        try:
            yield
        finally:
            self._session = given

    def tasks(self, work: Callable[[_Task], TaskOutput], groups: Sequence[Sequence[_Task]]) -> DataFrame:
        """Return a frame that does each group of tasks in a partition of its own."""
        with java_errors():
            return self.session.range(0, len(groups), 1, len(groups)).mapInArrow(_each(work, list(groups)), JOB_SCHEMA)

    def shuffled(
        self,
        feed: Callable[[_Task], Iterator[pa.RecordBatch]],
        tasks: Sequence[_Task],
        schema: str,
        work: Callable[[int, pa.Table], TaskOutput],
    ) -> DataFrame:
        """Return a frame that calls `work` with all that the tasks feed to each number in the column `part`."""
        with java_errors():
            fed = self.session.range(0, len(tasks), 1, len(tasks)).mapInArrow(_fed(feed, list(tasks)), schema)
            return fed.groupBy("part").applyInArrow(_grouped(work), JOB_SCHEMA)

    def collect(
        self,
        frames: Sequence[DataFrame],
        watch: ProgressCallback,
        *,
        gather: Callable[[list[bytes]], Iterable[object]] | None = None,
        buckets: int = 1,
        gathers_here: bool = False,
        count: int = 0,
    ) -> JobResult:
        """Run frames as one job; `gather` receives all blobs of a bucket at once.

        With `gathers_here` blobs come to this process: for few of them that costs less than a shuffle.
        """
        outcome = JobResult()
        if not frames:
            return outcome
        frame = frames[0]
        with java_errors():
            for other in frames[1:]:
                frame = frame.unionAll(other)
            if gather is not None and not gathers_here:
                frame = frame.repartition(buckets, "bucket").mapInArrow(_gathered(gather), JOB_SCHEMA)
        blobs: dict[int, list[bytes]] = {}
        for bucket, payload in self._run(frame, watch, count):
            if bucket >= 0:
                blobs.setdefault(bucket, []).append(payload)
            elif bucket == _ERROR:
                raise pickle.loads(payload)  # noqa: S301 - written by our own tasks
            else:
                found = outcome.reports if bucket == _REPORT else outcome.findings
                found.append(pickle.loads(payload))  # noqa: S301 - as above
        if gather is not None:
            outcome.findings += [finding for own in blobs.values() for finding in gather(own)]
        return outcome

    def _run(self, frame: DataFrame, watch: ProgressCallback, count: int) -> list[Any]:
        """Run a frame; if Spark had to repeat some tasks too late, repeat all, as every attempt reports files of its
        own.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return Job(self.session, frame.collect).run(watch, count)
            except SparkJobError as error:
                if _REPEATED_TOO_LATE not in str(error.__cause__):
                    raise
                frame = frame.select("*")  # planned anew: a plan remembers that it failed
        return Job(self.session, frame.collect).run(watch, count)


def _few_rows_session(given: SparkSession) -> SparkSession:
    if is_connect(given):
        _ = given.version  # a server knows a session after its first request, and clones no other
        own: SparkSession = given.cloneSession()  # type: ignore[attr-defined] # Connect's alone
    else:  # where only Java can clone one
        own = type(given)(given.sparkContext, given._jsparkSession.cloneSession())  # noqa: SLF001
    for name, value in _FEW_ROWS.items():
        own.conf.set(name, value)
    return own


def silence_query_loggers() -> None:
    """Silence the loggers by which pyspark writes each error of a query to the terminal, with the stack of Java."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - loaded where queries are made

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def is_connect(session: SparkSession) -> bool:
    """Tell if a session is that of a Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def output_rows(output: TaskOutput) -> Iterator[pa.RecordBatch]:
    """Yield the output of a task as rows of a job's frame."""
    report, blobs = output
    yield _row(_REPORT, pickle.dumps(report))
    for bucket, blob in blobs:
        yield _row(bucket, blob)


def catalog_errors_as_rows(rows: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an attempt; send an error that another attempt would not resolve to the driver as a row."""
    try:
        yield from rows()
    except (StoreUnreachableError, RetryableError):
        raise
    except CatalogError as error:
        yield _row(_ERROR, pickle.dumps(error))


def _done_rows(work: Callable[[_Task], TaskOutput], task: _Task) -> Iterator[pa.RecordBatch]:
    yield from output_rows(work(task))


def _each(work: Callable[[Any], TaskOutput], groups: list[Any]) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def feed(group: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        for task in group:
            yield from catalog_errors_as_rows(partial(_done_rows, work, task))

    return _fed(feed, groups)


def _fed(
    feed: Callable[[Any], Iterator[pa.RecordBatch]], tasks: list[Any]
) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from feed(tasks[number])

    return run


def _grouped(work: Callable[[int, pa.Table], TaskOutput]) -> Callable[[pa.Table], pa.Table]:
    def run(table: pa.Table) -> pa.Table:
        part = table["part"][0].as_py()
        return pa.Table.from_batches(list(catalog_errors_as_rows(lambda: output_rows(work(part, table)))), JOB_COLUMNS)

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
    return pa.record_batch([pa.array([bucket], pa.int32()), pa.array([payload], pa.binary())], schema=JOB_COLUMNS)


class Job:
    """The collection of rows in a thread of its own, so that it can be watched and ended."""

    def __init__(self, session: SparkSession, collect: Callable[[], list[Any]]) -> None:
        self._session, self._rows_of = session, collect
        self._tag = f"catalog-{uuid.uuid4().hex}"
        self._is_connect = is_connect(session)
        self._rows: list[Any] = []
        self._error: BaseException | None = None
        self._ended = threading.Event()
        """Not the thread itself: if a join is interrupted, Python takes the thread for ended."""
        self._stages: list[Any] = []
        self.is_ending = threading.Event()
        """Set as soon as it is to end: what has not begun until then need not."""

    def run(self, watch: ProgressCallback, count: int) -> list[Any]:
        thread = threading.Thread(target=self._collect, name=self._tag, daemon=True)
        if self._is_connect:
            self._session.registerProgressHandler(self._progressed)  # type: ignore[arg-type]
        thread.start()
        try:
            is_over = False
            while not is_over:
                is_over = self._ended.wait(_POLL_S)
                # Where nothing is counted Java is not asked: an interrupt in the middle of that loses the connection.
                # When all is over its answer is known, and would cost some milliseconds.
                done = count if is_over else min(self._done(), count) if count else 0
                if self._error is None:
                    watch(done, count)
        except BaseException:
            self._end()
            raise
        finally:
            if self._is_connect:
                self._session.removeProgressHandler(self._progressed)  # type: ignore[arg-type]
        if self._error is not None:
            with java_errors():
                if is_of_java(self._error):
                    raise self._error
            raise SparkJobError(_last_line(self._error)) from self._error
        return self._rows

    def _end(self) -> None:
        """Cancel until the job has ended, since one that is only about to begin is not seen; give up after a while."""
        self.is_ending.set()
        deadline = time.monotonic() + _END_S
        while not self._ended.is_set() and time.monotonic() < deadline:
            with suppress(Exception):  # the reason to end it is the error to report
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
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error
        finally:
            self._ended.set()

    def _done(self) -> int:
        """Count the completed tasks of the first stage, which does the work; for display only.

        Where Java has ended, the thread that waits for the rows is told so too.
        """
        try:
            return self._counted()
        except Exception as error:
            if not is_of_java(error):
                raise
            return 0

    def _counted(self) -> int:
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
    """Return the line that a traceback which crossed Spark ends with."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith(("at ", "Caused by", "...", "File "))]
    return next((line for line in reversed(own) if "Error" in line or "Exception" in line), own[0] if own else "")
