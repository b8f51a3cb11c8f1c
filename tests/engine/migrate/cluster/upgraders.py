"""Processes that upgrade, in process groups of their own, to be watched and killed."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from tests.engine.migrate.cluster.servers import HOST, PATIENCE_S, ROOT, await_true, lives, python_daemons

Said = dict[str, Any]
NOTHING: Mapping[str, str] = MappingProxyType({})


class Upgrader:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONPATH": path, "TMPDIR": str(folder), "SPARK_LOCAL_IP": HOST}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.migrate.cluster.upgrader"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: value for name, value in environment.items() if name != "SPARK_REMOTE"},
            start_new_session=True,
            text=True,
            cwd=ROOT,
        )
        self._said: queue.Queue[Said | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def upgrade(
        self,
        store: Path | str,
        spark: str | None,
        *,
        generation: int,
        options: Mapping[str, str] = NOTHING,
        settings: Mapping[str, str] = NOTHING,
    ) -> None:
        """Begin; `hear` tells how it goes."""
        self.tell(
            do="upgrade",
            store=str(store),
            spark=spark,
            generation=generation,
            options=dict(options),
            settings=dict(settings),
        )

    def tell(self, **told: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()

    def hear(self, timeout_s: float = PATIENCE_S) -> Said | None:
        """The next that it says; none when it has ended."""
        return self._said.get(timeout=timeout_s)

    def hear_all(self, *last: str) -> list[Said]:
        """All that it says, until one of these; none of these when it has ended."""
        found: list[Said] = []
        while (said := self.hear()) is not None:
            found.append(said)
            if not said.keys().isdisjoint(last):
                break
        return found

    def finish(self) -> list[Said]:
        """All that it says until the store is upgraded, which it must be."""
        said = self.hear_all("done", "error")
        assert said, "the process ended"
        assert "done" in said[-1], said
        return said

    def spark_said(self, words: str) -> int:
        """How often the log of its Spark has these words."""
        return sum(log.read_text(errors="replace").count(words) for log in self.folder.glob("*/spark.log"))

    def kill(self) -> None:
        """As `kill -9` does, with its JVM; the Python workers of that JVM must see it and end."""
        workers = python_daemons(self.process.pid)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        await_true(lambda: not any(map(lives, workers)), "the Python workers end")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):
                self._said.put(json.loads(line))
        self._said.put(None)


class Upgraders:
    """The processes of one test. One stands by, so that the next is there as soon as it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all: list[Upgrader] = []
        self._ready = self._start()

    def one(self) -> Upgrader:
        found, self._ready = self._ready, self._start()
        assert found.hear() == {"ready": True}
        return found

    def close(self) -> None:
        for upgrader in self._all:
            upgrader.kill()
            for stream in (upgrader.process.stdin, upgrader.process.stdout):
                assert stream is not None
                with suppress(BrokenPipeError):  # it ended before it was told something
                    stream.close()

    def _start(self) -> Upgrader:
        self._all.append(Upgrader(self._folder))
        return self._all[-1]


@contextmanager
def upgrading_processes() -> Iterator[Upgraders]:
    with TemporaryDirectory(prefix="catalog-upgraders-", ignore_cleanup_errors=True) as folder:
        made = Upgraders(Path(folder))
        try:
            yield made
        finally:
            made.close()
