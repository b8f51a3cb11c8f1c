"""A program that makes the archive of Java's classes: `python -m catalog.engine.spark.archive_maker FOLDER`.

It starts a session, runs what the engine runs, and lets Java write an archive of all classes it loaded when it ends.
The file gets its name only when it is whole, on the disk, and Java has accepted it. Sessions start this program in the
background at the lowest priority; run by hand, it makes the archive of a container's image.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from catalog.engine.base.atomic_file import staged_path
from catalog.engine.spark.class_archive import OFF, ClassArchive, archive_folder
from catalog.engine.spark.java import find_java
from catalog.engine.spark.jobs import SparkJobs, TaskOutput
from catalog.engine.spark.session import end_session, local_session, own_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NICE = 19
_DUMP_S = 600
_ANSWER_S = 60


def main(write: Callable[[Path], str] | None = None) -> int:
    """Make the archive in the folder that is named, else in the user's cache; return 0 if it is there.

    `write` has Java write the file and returns its class path; by default that is `dump`.
    """
    os.nice(_NICE)
    archive = ClassArchive.of(archive_folder(sys.argv[1] if sys.argv[1:] else None, os.environ), os.environ)
    if archive is None:
        return 1
    if archive.find() is None and not make(archive, write or dump):
        return 1
    archive.end_attempt()
    archive.sweep()
    return 0


def make(archive: ClassArchive, write: Callable[[Path], str]) -> bool:
    """Make an archive; tell if it is there. What was begun and did not succeed is removed."""
    archive.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with staged_path(archive.folder / f"{archive.name}.jsa") as staged:
        class_path = write(staged)
        if not staged.exists() or not _is_accepted(staged, class_path):
            return False
        staged.chmod(0o600)
        _sync(staged)
        staged.replace(archive.folder / archive.file_name(staged))
        _sync(archive.folder)
    return True


def dump(staged: Path) -> str:
    """Let Java load the classes of a session, and write them to a file when it ends; return its class path."""
    dumping = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={staged}"'}
    try:
        session = local_session(settings=dumping, class_archive=OFF)
        class_path = str(session._jvm.System.getProperty("java.class.path"))  # type: ignore[union-attr]  # noqa: SLF001 - py4j has no types
        exercise(session)
    finally:
        end_session(_DUMP_S)  # when Java writes the file
    return class_path


def exercise(session: SparkSession) -> None:
    """Run jobs of every kind that the engine runs, so that Java loads their classes."""
    jobs = SparkJobs(lambda: session)
    frames = [
        jobs.tasks(_report, [[1], [2]]),
        jobs.shuffled(_feed, [1, 2], "part int, value binary", _report_part),
    ]
    jobs.collect(frames, lambda _done, _count: None, gather=lambda blobs: [len(blobs)], buckets=2, count=2)
    rows = pa.table(
        {"key": pa.array([b"a", b"b"]), "value": pa.array([{"name": "x", "id": 1}, {"name": "y", "id": 2}])}
    )
    left, right = session.createDataFrame(rows), session.createDataFrame(rows.rename_columns(["key", "other"]))
    joined = left.join(right, "key", "left").groupBy("key").count().orderBy("key")
    joined.mapInArrow(lambda batches: batches, joined.schema).collect()
    asked = own_session(session)
    asked.createDataFrame(rows).createOrReplaceTempView("rows")
    asked.sql("SELECT count(*), max(value.name) FROM rows WHERE value.id > 0 GROUP BY key ORDER BY 1").limit(
        2
    ).collect()


def _report(number: int) -> TaskOutput:
    return number, [(0, b"blob")]


def _feed(number: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"part": pa.array([number], pa.int32()), "value": pa.array([b"x"])})


def _report_part(part: int, table: pa.Table) -> TaskOutput:
    return part, [(part, bytes(table.num_rows))]


def _is_accepted(archive: Path, class_path: str) -> bool:
    """Tell if Java starts with an archive, and finds its content whole."""
    java = find_java(os.environ)
    if java is None:
        return False
    options = ["-Xshare:on", f"-XX:SharedArchiveFile={archive}", "-XX:+VerifySharedSpaces", "-XX:+UseSerialGC"]
    command = [str(java.program), *options, "-cp", class_path, "-version"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_ANSWER_S, check=False)  # noqa: S603 - the Java of this machine
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


if __name__ == "__main__":
    sys.exit(main())
