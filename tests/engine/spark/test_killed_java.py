"""A killed JVM is a SparkJobError, and the next session has another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from catalog.engine.log.place import StorePlace
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT


@pytest.mark.spark
def test_a_killed_jvm_is_a_spark_job_error(tmp_path: Path) -> None:
    """In a job, while one is planned, and when a frame is asked for; the store is as it was."""
    store = tmp_path / "store"
    generate(PROJECT, store, 20, 400, 7)
    words = [sys.executable, "-m", "tests.engine.spark.killed_java", str(store)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    *refused, last = done.stdout.splitlines()
    assert (len(refused), last) == (3, "done"), done.stderr
    for line in refused:
        name, what, why, fix = line.split("|")
        assert (name, what) == ("SparkJobError", "a job on Spark failed: its Java process ended"), done.stderr
        assert why.startswith("why:  ")
        assert fix.startswith("next: find what ended Java")
    assert StorePlace.at(PROJECT, store).version() == 20
