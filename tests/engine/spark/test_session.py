"""Sessions that start quietly, and what they leave behind."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog.engine.spark.class_archive import VARIABLE
from catalog.engine.spark.session import local_session
from catalog.engine.spark.session_start import SessionStart
from catalog.engine.store.catalog import Catalog
from catalog.errors import ForkedClientError, SparkStartError
from tests.engine.store.test_forks import in_a_child

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]
QUIET = """
import sys
from catalog.engine.spark.datasource import dataframe
from catalog.engine.spark.session import local_session
store, log = sys.argv[1:]
from pathlib import Path
spark = local_session(log=Path(log))
assert dataframe(spark, store, {}, "item").count() == 20
try:
    spark.read.format("catalog").option("collection", "rolls").load(store)
except Exception as error:
    assert "did you mean role" in str(error)
"""


def test_there_is_one_session(spark: SparkSession) -> None:
    """Asked again, the session that is there is answered; it listens on loopback only and shows no pages."""
    assert local_session() is spark
    assert spark.sparkContext.getConf().get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_nothing_is_printed(catalog: Catalog, store: Path, tmp_path: Path) -> None:
    """A process that queries, and meets an error, prints nothing; Spark's words are in the log, its files are gone."""
    assert catalog.ts
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = run(QUIET, str(store), str(tmp_path / "spark.log"), TMPDIR=str(scratch))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "WARN" in (tmp_path / "spark.log").read_text()
    assert [path.name for path in scratch.iterdir() if "catalog-spark" in path.name] == []


def test_workers_import_what_their_driver_does(tmp_path: Path) -> None:
    """Also where they are started beside another package of the same name."""
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "__init__.py").write_text("raise ImportError('the wrong one')")
    program = """
import os, sys
sys.path[:] = [entry for entry in sys.path if entry]
os.chdir(sys.argv[1])
from catalog.engine.spark.session import local_session

def found(batches):
    import catalog, pyarrow
    for _ in batches:
        yield pyarrow.record_batch({"path": [catalog.__file__]})

import catalog
rows = local_session(settings={"spark.master": "local[1]"}).range(1).mapInArrow(found, "path string").collect()
assert [row.path for row in rows] == [catalog.__file__], rows
"""
    done = run(program, str(tmp_path), TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_java_the_reason_is_said(tmp_path: Path) -> None:
    """Spark that cannot start is an error of ours with what Spark said, and nothing on the terminal."""
    program = """
from catalog.engine.spark.session import SparkStartError, local_session
try:
    local_session()
except SparkStartError as error:
    assert "java" in error.reason.lower(), error.reason
    assert "Java 17 or 21" in str(error)
else:
    raise SystemExit("it started")
"""
    done = run(program, JAVA_HOME=str(tmp_path), TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "reason" in str(SparkStartError("reason", "log"))


def test_the_parent_of_workers_loads_what_tasks_need_and_starts_nothing() -> None:
    """It forks them: a thread of delta-rs or of numpy would be missing there. What is not installed is left out."""
    program = """
import os, sys
from catalog.engine.spark.worker_daemon import OF_TASKS, load
load((*OF_TASKS, "a_module.that_is_missing"))
assert set(OF_TASKS) <= set(sys.modules), set(OF_TASKS) - set(sys.modules)
assert "deltalake" not in sys.modules
assert "pandas" not in sys.modules
threads = [open(f"/proc/self/task/{name}/comm").read().strip() for name in os.listdir("/proc/self/task")]
print(len([name for name in threads if not name.startswith("jemalloc")]))  # which it starts anew after a fork
"""
    done = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), VARIABLE: os.environ[VARIABLE], **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_start_that_is_given_up_leaves_a_session_that_was_there(spark: SparkSession) -> None:
    """It found the session and did not start it: others use it still."""
    start = SessionStart()
    start.begin()
    start.cancel()
    assert start.session().sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3


def test_a_forked_child_does_not_end_the_session_of_its_parent(spark: SparkSession) -> None:
    """As Python does at the exit of a child, with everything that its parent wanted done at its own; nor can it be
    used there: both would wait on one connection.
    """

    def child() -> object:
        atexit._run_exitfuncs()  # noqa: SLF001
        return local_session()

    error = in_a_child(child)
    assert isinstance(error, ForkedClientError), error
    assert "get_context('spawn')" in error.next
    assert spark.range(3).count() == 3
