"""A local SparkSession that starts quickly and writes nothing to the terminal.

Where its executors are on this machine, Spark listens on the loopback interface only; its output goes to a log file. A
session that the caller started is used as it is. Importing this loads no pyspark.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from catalog.engine.spark.class_archive import ClassArchive, archive_folder
from catalog.engine.spark.java_errors import is_of_java
from catalog.errors import ForkedClientError, SparkStartError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_EXIT_S = 60
_STARTING_POLL_S = 0.02
_GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"
_WITHOUT_INTERRUPTS = ("/bin/sh", "-c", 'trap "" INT && exec "$@"', "sh")
"""Ctrl-C reaches all programs of a terminal, and is for this process to handle."""
_LOG_LINES_SHOWN = 5
_STARTING = threading.Lock()
"""One thread at a time starts Java, and the others use what it started. `end_session` does not wait for it."""

_SETTINGS = {
    "spark.python.daemon.module": "catalog.engine.spark.worker_daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.liveUpdate.period": "0ms",
    "spark.ui.showConsoleProgress": "false",
}
_NEAR = {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
"""For executors on this machine: no other machine can connect. Executors elsewhere have to."""
_SHORT_JOBS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_JAVA_SETTING = "spark.driver.extraJavaOptions"
_CLASS_LOG = "classes.log"
_ARCHIVE_USED, _ARCHIVE_REFUSED = "Mapped dynamic region", "failed to load"
_JAVA = ["-XX:+UseSerialGC", "-XX:-UsePerfData"]
_JAVA_SHORT_JOBS = ["-XX:TieredStopAtLevel=1"]


def local_session(
    *,
    short_jobs: bool = True,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    class_archive: Path | str | None = None,
) -> SparkSession:
    """Return the session of this process; if there is none, a new one on this machine's cores, which ends with the
    process.

    `short_jobs` spares the compilers of Java and Spark, which pays for jobs of up to some seconds. `settings` are
    Spark's, and override those made here. Spark's output is appended to `log`, by default in a folder that is removed
    with the session. `class_archive` is the folder of the archive with which Java starts some seconds sooner, or `off`;
    by default the variable CATALOG_CLASS_ARCHIVE names it, else it is in the user's cache. Where there is none yet, one
    of about 160 MB is made in the background after the session.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - loaded when a session is wanted
    from pyspark.sql import SparkSession  # noqa: PLC0415

    with _STARTING:
        present = _present_session()
        if present is not None:
            return present
        if SparkContext._gateway is None:  # noqa: SLF001 - or Java is there already, with the settings it was given
            is_near = _is_near((settings or {}).get("spark.master", "local"))
            folder = Path(tempfile.mkdtemp(prefix="catalog-spark-"))
            made = _settings(folder, short_jobs=short_jobs) | (_NEAR if is_near else {}) | dict(settings or {})
            archive = ClassArchive.of(archive_folder(class_archive, os.environ), os.environ)
            java = _LocalJava(folder, log or folder / "spark.log", _worker_environment(is_near=is_near), archive)
            java.start(made, _java_options(short_jobs=short_jobs))
        with _own_interrupts():
            session = SparkSession.builder.getOrCreate()
        session.sparkContext.pythonExec = sys.executable
        return session


def _present_session() -> SparkSession | None:
    """Return the session of this process, unless its Java was killed."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - loaded when a session is wanted

    if (java := _LocalJava.present) is not None:
        if java.opened_by != os.getpid():
            raise ForkedClientError("Spark", java.opened_by, os.getpid())
        if java.is_killed():
            java.end()
    try:
        return SparkSession.getActiveSession()
    except Exception as error:
        if (java := _LocalJava.present) is None or not is_of_java(error):
            raise
        java.end()  # its connections ended before its process did
        return None


def end_session(wait_s: float = _EXIT_S) -> None:
    """End the Java of this process, as the end of the process does; after a while it is killed."""
    if (java := _LocalJava.present) is not None:
        java.end(wait_s)


def is_started() -> bool:
    """Tell if this process has a Java that was started here."""
    return _LocalJava.present is not None


def is_archive_used() -> bool:
    """Tell if the Java of this process loads classes from an archive."""
    return (java := _LocalJava.present) is not None and java.is_archive_used()


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Restore the handler of Ctrl-C, which Spark replaces when it starts by one that prints a traceback."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def find_session(spark: SparkSession | str | None, class_archive: Path | str | None = None) -> SparkSession:
    """Return the given session, one at an address (`spark://…`, `local[2]`, `sc://…`), or that of this machine."""
    address = os.environ.get("SPARK_REMOTE") or None if spark is None else spark
    if address is None:
        return local_session(class_archive=class_archive)
    return _at_address(address, class_archive) if isinstance(address, str) else address


def own_session(session: SparkSession) -> SparkSession:
    """Return a session beside the given one for statements, with views of its own; a session of a server is that
    already.

    What it runs is compiled: only then does a loop of Spark's own notice that its job was cancelled.
    """
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return session
    own = session.newSession()
    own.conf.set("spark.sql.codegen.wholeStage", "true")
    own.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    return own


def _at_address(address: str, class_archive: Path | str | None) -> SparkSession:
    if not address.startswith("sc://"):
        return local_session(settings={"spark.master": address}, class_archive=class_archive)
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        return SparkSession.builder.remote(address).getOrCreate()
    except (PySparkException, ImportError) as error:
        raise SparkStartError(str(error), address) from error


def _is_near(master: str) -> bool:
    return master.startswith(("local", "spark://127.", "spark://localhost:"))


def _java_options(*, short_jobs: bool) -> list[str]:
    return [*_JAVA, *(_JAVA_SHORT_JOBS if short_jobs else []), f'"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"']


def _settings(folder: Path, *, short_jobs: bool) -> dict[str, str]:
    return {
        "spark.master": "local[*]",
        "spark.app.name": "catalog",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **_SETTINGS,
        **(_SHORT_JOBS if short_jobs else {}),
    }


def _worker_environment(*, is_near: bool) -> dict[str, str]:
    """Return variables by which workers import the same packages as this process, wherever it was started."""
    bound = {"SPARK_LOCAL_IP": _LOOPBACK} if is_near else {}
    return {
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path),  # noqa: PTH100 - empty: here
        "PYTHONSAFEPATH": "1",  # the folder it was started in may have packages of the same names
        **bound,
    }


@dataclass(slots=True)
class _LocalJava:
    """The Java of this process, started for Spark and ended with the process."""

    present: ClassVar[_LocalJava | None] = None
    folder: Path
    """Of this session; removed at its end."""
    log: Path
    environment: Mapping[str, str]
    """Variables of Java, and of the workers that it starts."""
    archive: ClassArchive | None
    used: Path | None = None
    """The archive that Java was given."""
    process: subprocess.Popen[bytes] | None = None
    is_ended: bool = False
    opened_by: int = field(default_factory=os.getpid)

    def start(self, settings: Mapping[str, str], options: Sequence[str]) -> None:
        """Start Java and connect to it; or connect to that of spark-submit, if it runs this process."""
        from pyspark import SparkContext  # noqa: PLC0415

        _LocalJava.present = self
        atexit.register(self.end)
        try:
            gateway = _connected() if _GATEWAY_PORT in os.environ else self._launched_anyhow(settings, options)
        except BaseException:
            atexit.unregister(self.end)  # the log stays for the reader of the error; `end_session` removes it
            raise
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001

    def end(self, wait_s: float = _EXIT_S) -> None:
        """Stop Spark and wait for Java to be gone, so that nothing of the session is left behind.

        In a forked child, as it exits, it does nothing: the session is its parent's.
        """
        from pyspark import SparkContext  # noqa: PLC0415

        atexit.unregister(self.end)
        if os.getpid() != self.opened_by:
            return
        self.is_ended = True
        context, gateway = SparkContext._active_spark_context, SparkContext._gateway  # noqa: SLF001
        if context is not None:
            try:
                context.stop()
            except Exception as error:
                if not is_of_java(error):
                    raise
                context.stop()  # Java was killed; the second call ends the rest
        if gateway is not None:
            gateway.shutdown()
            SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - another session may follow
        if (process := self.process) is not None:
            if gateway is None:
                process.kill()  # it is still starting
            process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
            try:
                process.wait(wait_s)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        _LocalJava.present = None
        if self.archive is not None and self.used is None and context is not None:
            self.archive.make_later(_worker_environment(is_near=True))

    def is_killed(self) -> bool:
        """Tell if Java ended by itself: it was killed, or had too little memory."""
        return not self.is_ended and self.process is not None and self.process.poll() is not None

    def is_archive_used(self) -> bool:
        """Tell if Java loads classes from the archive, by what it says about it."""
        try:
            said = (self.folder / _CLASS_LOG).read_text(errors="replace")
        except OSError:
            return False
        return _ARCHIVE_USED in said and _ARCHIVE_REFUSED not in said

    def _launched_anyhow(self, settings: Mapping[str, str], options: Sequence[str]) -> Any:  # noqa: ANN401 - py4j has no types
        """Start Java and connect to it; if it does not start with its archive, once more without."""
        self.used = None if self.archive is None else self.archive.find()
        try:
            port, secret = self._launched(settings, options)
        except SparkStartError:
            if self.archive is None or self.used is None or self.is_ended:
                raise
            self.archive.discard(self.used)
            self.used = None
            port, secret = self._launched(settings, options)
        with _environment({_GATEWAY_PORT: str(port), "PYSPARK_GATEWAY_SECRET": secret}):
            gateway = _connected()
        gateway.proc = self.process
        return gateway

    def _launched(self, settings: Mapping[str, str], options: Sequence[str]) -> tuple[int, str]:
        """Start Java with its output in a log file; return where it listens, and its secret.

        Spark's own function cannot be interrupted, and settings alone leave lines on the terminal.
        """
        from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415

        java = " ".join([*options, *self._archive_options(), settings.get(_JAVA_SETTING, "")]).strip()
        conf = [f"--conf={name}={value}" for name, value in {**settings, _JAVA_SETTING: java}.items()]
        submitted = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        told = self.folder / "gateway"
        added = {**self.environment, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told)}
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603 - Spark's program, with our settings
                [*_WITHOUT_INTERRUPTS, f"{_find_spark_home()}/bin/spark-submit", *conf, *submitted],
                env={**os.environ, **added},
                stdin=subprocess.PIPE,  # Java ends when it is closed
                stdout=output,
                stderr=output,
            )
        while not told.exists():
            if self.process.poll() is not None or self.is_ended:
                _kill(self.process)  # `end` may have run before there was one
                raise SparkStartError(_last_lines(self.log) or "Java ended at once", str(self.log))
            time.sleep(_STARTING_POLL_S)
        raw = told.read_bytes()
        return int.from_bytes(raw[:4], "big"), raw[8:].decode()

    def _archive_options(self) -> list[str]:
        if self.used is None:
            return []
        told = f"-Xlog:cds=info,cds+dynamic=warning:file={self.folder / _CLASS_LOG}"
        return [f'"-XX:SharedArchiveFile={self.used}"', "-Xshare:auto", f'"{told}"']


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and leave nothing of it, neither an open pipe nor an entry in the table of processes."""
    process.kill()
    process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
    process.wait()


def _connected() -> Any:  # noqa: ANN401 - py4j has no types
    """Return the gateway of a Java that is there already."""
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    return launch_gateway()  # type: ignore[no-untyped-call]  # pyspark has no types there


def _last_lines(log: Path) -> str:
    return "; ".join(log.read_text(errors="replace").strip().splitlines()[-_LOG_LINES_SHOWN:])


@contextmanager
def _environment(changed: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
