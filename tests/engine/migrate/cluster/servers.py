"""Servers of Spark on loopback: a standalone cluster, and a Connect server; each process is ended by its own id."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
import pytest

from catalog.engine.spark.class_archive import ClassArchive, archive_folder

ROOT = Path(__file__).parents[4]
SPARK = Path(pyspark.__file__).parent
PROC = Path("/proc")
HOST, OTHER_HOST = "127.0.0.1", "127.0.0.2"
"""Speculation never uses the host of the first attempt, so that the workers need two."""
PATIENCE_S = 120
POLL_S = 0.05
DAEMON = "catalog.engine.spark.worker_daemon"

CONNECT = {
    "spark.connect.grpc.binding.address": HOST,
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.python.daemon.module": DAEMON,
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.port": "0",
}


def quick_java() -> str:
    """Options of a Java that lives for seconds; with the class archive that all tests share, if it is made."""
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
    archive = ClassArchive.of(archive_folder(None, os.environ), os.environ)
    if archive is not None and (file := archive.find()) is not None:
        options += [f'"-XX:SharedArchiveFile={file}"', "-Xshare:auto"]
    return " ".join(options)


def await_true(found: Callable[[], Any], what: str) -> Any:  # noqa: ANN401 - whatever is found
    """What is found as soon as there is something; it must come."""
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := found()):
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(POLL_S)
    return answer


@dataclass
class Server:
    """A program of Spark in a process group of its own; what it says is in its log."""

    name: str
    command: list[str]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        environment = {
            "JAVA_HOME": os.environ.get("JAVA_HOME", ""),
            "PATH": os.environ["PATH"],
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SPARK_DAEMON_JAVA_OPTS": quick_java(),
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOG_DIR": str(self.folder),
            "SPARK_PID_DIR": str(self.folder),
            "TMPDIR": str(self.folder),
        }
        environment = {name: value for name, value in (environment | self.environment).items() if value}
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                self.command, env=environment, stdout=output, stderr=output, start_new_session=True, cwd=self.folder
            )

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def said(self, pattern: str) -> str:
        """What a pattern's group matched in the log, as soon as it is there."""

        def found() -> re.Match[str] | None:
            assert self.process.poll() is None, f"{self.name} ended: {self.log.read_text()[-2000:]}"
            return re.search(pattern, self.log.read_text(errors="replace"))

        return str(await_true(found, f"{self.name} says {pattern!r}")[1])

    def kill(self) -> None:
        """As `kill -9` does, with whatever it started in its group."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def descendants(pid: int) -> list[int]:
    """The processes below a process."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it ended meanwhile
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found[1:]


def lives(pid: int) -> bool:
    """Whether a process is there, and not only waited for."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def python_daemons(server: int) -> list[int]:
    """The parents of the Python workers below a process; each leads a group with its workers."""

    def is_daemon(pid: int) -> bool:
        try:
            words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
            return DAEMON.encode() in words[:4] and os.getpgid(pid) == pid
        except OSError:
            return False

    return [pid for pid in descendants(server) if is_daemon(pid)]


def signal_tasks(number: signal.Signals, *servers: int) -> int:
    """Send a signal to all that works for servers in Python; answer how many groups there were."""
    count = 0
    for daemon in [daemon for server in servers for daemon in python_daemons(server)]:
        try:
            os.killpg(daemon, number)
        except ProcessLookupError:
            continue
        count += 1
    return count


@dataclass
class ConnectServer:
    server: Server
    address: str
    pages: str

    def running_jobs(self) -> list[int]:
        """Jobs that the server is at, whoever asked for them."""
        (application,) = _got(f"{self.pages}/api/v1/applications")
        jobs = _got(f"{self.pages}/api/v1/applications/{application['id']}/jobs?status=running")
        return [job["jobId"] for job in jobs]

    def await_idle(self) -> None:
        await_true(lambda: not self.running_jobs(), "the server does nothing any more")


def _got(url: str) -> Any:  # noqa: ANN401 - JSON
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own server
        return json.load(answer)


@dataclass
class Cluster:
    """A master, and a worker of one core on each of two hosts."""

    master: Server
    address: str
    folder: Path
    workers: dict[str, Server] = field(default_factory=dict)
    _started: int = 0

    def start_worker(self, host: str) -> None:
        self._started += 1
        worker = f"worker{self._started}"
        command = [str(SPARK / "bin/spark-class"), "org.apache.spark.deploy.worker.Worker", "--host", host]
        command += ["--cores", "1", "--memory", "1g", "--webui-port", "0"]
        command += ["--work-dir", str(self.folder / worker), self.address]
        self.workers[host] = Server(worker, command, self.folder, {"SPARK_LOCAL_IP": host})

    def await_workers(self) -> None:
        for worker in self.workers.values():
            worker.said(r"(Successfully registered with master)")

    def close(self) -> None:
        for server in [*self.workers.values(), self.master]:
            server.kill()


def _require() -> None:
    if not PROC.joinpath("self/stat").exists():
        pytest.skip("processes are found by /proc, and there is none")


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    _require()
    pytest.importorskip("grpc_status", reason="Connect's client needs pyspark[connect]")
    folder = tmp_path_factory.mktemp("connect")
    settings = CONNECT | {
        "spark.driver.extraJavaOptions": quick_java(),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    command = [str(SPARK / "sbin/start-connect-server.sh"), "--wait", "--master", "local[2]"]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    server = Server("connect", command, folder)
    try:
        address = server.said(r"Spark Connect server started at: (\S+)")
        port = server.said(r"Successfully started service 'SparkUI' on port (\d+)")
        yield ConnectServer(server, f"sc://{address}", f"http://{HOST}:{port}")
    finally:
        signal_tasks(signal.SIGCONT, server.process.pid)
        server.kill()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    _require()
    folder = tmp_path_factory.mktemp("cluster")
    command = [str(SPARK / "bin/spark-class"), "org.apache.spark.deploy.master.Master", "--host", HOST]
    master = Server("master", [*command, "--port", "0", "--webui-port", "0"], folder)
    made = Cluster(master, "", folder)
    try:
        made.address = master.said(r"Starting Spark master at (spark://\S+)")
        for host in (HOST, OTHER_HOST):
            made.start_worker(host)
        made.await_workers()
        yield made
    finally:
        signal_tasks(signal.SIGCONT, *(worker.process.pid for worker in made.workers.values()))
        made.close()
