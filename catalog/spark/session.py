"""A local SparkSession that starts quickly and says nothing on the terminal.

Where its executors are on this machine, Spark listens on the loopback interface only; whatever it has to say goes to a
log file. A session that somebody else started is used as it is. Importing this loads no pyspark.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from catalog.errors import SparkStartError

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_EXIT_S = 60
_LOG_LINES_SHOWN = 5

_SETTINGS = {
    "spark.python.daemon.module": "catalog.spark.daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.liveUpdate.period": "0ms",
    "spark.ui.showConsoleProgress": "false",
}
_NEAR = {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
"""Where executors are on this machine: nobody else can connect. Executors elsewhere have to."""
_SHORT_JOBS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_JAVA_SETTING = "spark.driver.extraJavaOptions"
_ARCHIVE = "classes.jsa"
_JAVA = ["-XX:+UseSerialGC", "-XX:-UsePerfData"]
_JAVA_SHORT_JOBS = ["-XX:TieredStopAtLevel=1"]


def local_session(
    *,
    short_jobs: bool = True,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    archive: Path | None = None,
) -> SparkSession:
    """The session of this process; if there is none, a new one on this machine's cores, which ends with the process.

    `short_jobs` spares the compilers of Java and Spark, which pays for jobs of up to some seconds. `settings` are
    Spark's, and stand above those made here. What Spark says is appended to `log`, by default in a folder that goes
    with the session. With an `archive` of Java's classes, Java starts some seconds sooner; the first session that names
    one makes it as it ends, about 160 MB. Name it after the versions of Java and Spark: one of another version is of no
    use, and does no harm.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - loaded when a session is wanted
    from pyspark.sql import SparkSession  # noqa: PLC0415

    present = SparkSession.getActiveSession()
    if present is not None:
        return present
    is_near = _is_near((settings or {}).get("spark.master", "local"))
    with _environment(_worker_environment(is_near=is_near)):
        if SparkContext._gateway is None:  # noqa: SLF001 - or Java is there already, with the settings it was given
            folder = Path(tempfile.mkdtemp(prefix="catalog-spark-"))
            made = _settings(folder, short_jobs=short_jobs) | (_NEAR if is_near else {}) | dict(settings or {})
            java = [*_java_options(short_jobs=short_jobs), *_archive_options(archive, folder)]
            made[_JAVA_SETTING] = " ".join([*java, made.get(_JAVA_SETTING, "")]).strip()
            conf = SparkConf(loadDefaults=False).setAll(list(made.items()))
            _launch(conf, log or folder / "spark.log", lambda gateway: _end(gateway, folder, archive))
        with _own_interrupts():
            return SparkSession.builder.getOrCreate()


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Spark takes Ctrl-C over when it starts, and answers it with a traceback: whoever had it keeps it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def find_session(spark: SparkSession | str | None) -> SparkSession:
    """A session that was given, one at an address (`spark://…`, `local[2]`, `sc://…`), or that of this machine."""
    if spark is None:
        return _at_address(remote) if (remote := os.environ.get("SPARK_REMOTE")) else local_session()
    return _at_address(spark) if isinstance(spark, str) else spark


def own_session(session: SparkSession) -> SparkSession:
    """One beside it for statements, with views of its own; where a server gave it, it is that already.

    What it runs is compiled: only then does a loop of Spark's own see that its job was cancelled.
    """
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return session
    own = session.newSession()
    own.conf.set("spark.sql.codegen.wholeStage", "true")
    own.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    return own


def _at_address(address: str) -> SparkSession:
    if not address.startswith("sc://"):
        return local_session(settings={"spark.master": address})
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


def _archive_options(archive: Path | None, folder: Path) -> list[str]:
    if archive is None:
        return []
    if archive.exists():
        return [f'"-XX:SharedArchiveFile={archive.absolute()}"', "-Xshare:auto"]
    return [f'"-XX:ArchiveClassesAtExit={folder / _ARCHIVE}"']


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
    """Workers import what this process would, wherever it was started."""
    bound = {"SPARK_LOCAL_IP": _LOOPBACK} if is_near else {}
    return {
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path),  # noqa: PTH100 - empty: here
        "PYTHONSAFEPATH": "1",  # the folder it was started in may have packages of the same names
        **bound,
    }


def _launch(conf: SparkConf, log: Path, end: Callable[[Any], None]) -> None:
    """Start Java with its output in a log file; settings alone leave lines on the terminal."""
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    with log.open("ab") as output:
        try:
            gateway = _launched(launch_gateway, conf, output)
        except (PySparkException, OSError) as error:
            raise SparkStartError(_last_lines(log) or str(error), str(log)) from error
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001
    atexit.register(end, gateway)


def _launched(launch_gateway: Callable[..., Any], conf: SparkConf, output: IO[bytes]) -> Any:  # noqa: ANN401 - py4j has no types
    with warnings.catch_warnings():
        # The fork runs nothing but the start of another program, whatever threads there are.
        warnings.simplefilter("ignore", DeprecationWarning)
        return launch_gateway(conf, popen_kwargs={"stdout": output, "stderr": output})


def _end(gateway: Any, folder: Path, archive: Path | None) -> None:  # noqa: ANN401 - py4j has no types
    """Stop Spark and wait for Java to be gone, so that nothing of the session is left behind."""
    from pyspark import SparkContext  # noqa: PLC0415

    context = SparkContext._active_spark_context  # noqa: SLF001
    if context is not None:
        context.stop()
    gateway.shutdown()
    process = gateway.proc
    if process is not None:
        process.stdin.close()
        try:
            process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
    made = folder / _ARCHIVE
    if archive is not None and made.exists():
        _keep(made, archive)
    shutil.rmtree(folder, ignore_errors=True)


def _keep(made: Path, archive: Path) -> None:
    """Put an archive in its place, whole from the first moment that others can see it."""
    beside = archive.with_name(f"{archive.name}.{os.getpid()}")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, beside)
        beside.replace(archive)
    except OSError:
        beside.unlink(missing_ok=True)  # the next session starts as slowly as this one


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
