"""Sessions that start in the background, while their caller reads and checks what they are for.

Java, the Python workers and the classes of a first job take seconds to load. A thread does that, so that the first job
of the caller finds a session that has run one. A session that the caller gave is used as it is. Importing this loads
neither pyspark nor pyarrow.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.engine.spark.java_errors import java_errors
from catalog.errors import SparkStartError
from catalog.events import Observer, SparkStarted, SparkStarting, ignore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CANCEL_S = 60.0
_CANCEL_POLL_S = 0.05
_WARM_UP_SCHEMA = "bucket int, payload binary"
"""That of the engine's own jobs."""


@dataclass(slots=True)
class SessionStart:
    """The start of a session: begun once, waited for whenever the session is needed.

    >>> start = SessionStart(spark="local[2]")
    >>> start.begin()  # and read the store meanwhile
    >>> start.session().range(3).count()
    """

    spark: SparkSession | str | None = None
    """A session, or the address of a master or of a Connect server; none: this machine."""
    class_archive: Path | str | None = None
    warms_up: bool = True
    """Run a task in a worker of Python, as every step does; a query of few rows needs none."""
    observer: Observer = ignore
    """Called in the threads of callers only."""
    _began_s: float | None = None
    _elapsed_s: float | None = None
    _session: SparkSession | None = None
    _error: BaseException | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _is_told: bool = False
    _is_shared: bool = False
    """The Java of this process was there before, and is not this start's to end."""
    _opened_by: int = field(default_factory=os.getpid)
    """A forked child ends nothing as it exits."""

    @property
    def is_begun(self) -> bool:
        return self._began_s is not None

    @property
    def is_failed(self) -> bool:
        """Tell if the start has ended with an error, so that another one may succeed."""
        return self._error is not None

    @property
    def elapsed_s(self) -> float:
        """The seconds that the start took; zero if it has not ended."""
        return self._elapsed_s or 0.0

    def begin(self) -> None:
        """Start the session in the background, unless that was begun before; errors are raised by `session`."""
        if self.is_begun:
            return
        self._began_s = time.monotonic()
        if not isinstance(self.spark, str | None):
            self._session, self._is_told = self.spark, True
            self._ended.set()
            return
        from catalog.engine.spark.session import is_started  # noqa: PLC0415 - loaded when a session is wanted

        self._is_shared = is_started()
        self.observer(SparkStarting())
        atexit.register(self.cancel)
        threading.Thread(target=self._run, name="catalog-spark-start", daemon=True).start()

    def session(self) -> SparkSession:
        """Return the session once it has started; raise the error with which it did not."""
        self.begin()
        self._ended.wait()  # not the thread: if a join is interrupted, Python takes the thread for ended
        atexit.unregister(self.cancel)
        if self._error is not None:
            self._is_told = True  # the error names a log, which stays
            raise self._error
        if not self._is_told:
            self._is_told = True
            self.observer(SparkStarted(self.elapsed_s))
        assert self._session is not None  # noqa: S101 - or there is an error
        return self._session

    def cancel(self) -> None:
        """End a session that was begun here and that nobody has asked for; there is no such session afterwards."""
        if not self.is_begun or self._is_told or self._is_shared or os.getpid() != self._opened_by:
            return
        from catalog.engine.spark.session import end_session  # noqa: PLC0415 - loaded by the thread

        atexit.unregister(self.cancel)
        deadline = time.monotonic() + _CANCEL_S
        end_session()
        while not self._ended.wait(_CANCEL_POLL_S) and time.monotonic() < deadline:
            end_session()  # the thread may not have started Java before
        end_session()  # or has started it since

    def _run(self) -> None:
        try:
            from catalog.engine.spark.session import find_session  # noqa: PLC0415 - loads pyspark

            with java_errors():
                session = find_session(self.spark, self.class_archive)
                if self.warms_up:
                    warm_up(session)
            self._session = session
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error
        finally:
            self._elapsed_s = time.monotonic() - (self._began_s or 0.0)
            self._ended.set()


def warm_up(session: SparkSession) -> None:
    """Run a task as those of the engine on the executors of this process, so that the next one finds all loaded."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 - it has no types
    from pyspark.errors import PySparkException  # noqa: PLC0415

    is_connect = type(session).__module__.startswith("pyspark.sql.connect")
    if is_connect or not str(session.sparkContext.master).startswith("local"):
        return
    try:
        session.range(0, 1, 1, 1).mapInArrow(_nothing, _WARM_UP_SCHEMA).collect()
    except (PySparkException, Py4JError) as error:
        raise SparkStartError(str(error).strip().splitlines()[0], "the task that every start runs first") from error


def _nothing(batches: Iterator[Any]) -> Iterator[Any]:
    for _ in batches:
        yield from ()
