"""Upgrades as a process of their own meets them: what they load, start and print."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog import STASH_VERSION, open_catalog
from catalog.engine.log.protocol import AppTxn, LogState
from catalog.engine.migrate.plan import plan_step
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.migrations.plain import ENGINE, golden
from tests.upgrade.stores import load, log_of, rows_at, steps_of

ROOT = Path(__file__).parents[2]
OPENING = """
import sys
from catalog import open_catalog
with open_catalog(sys.argv[1], deploy_generation=1) as catalog:
    print(catalog.version, *(name for name in sys.modules if name.split(".")[0] in {"pyspark", "py4j", "pandas"}))
"""
QUIET = """
import sys
from catalog import open_catalog
with open_catalog(sys.argv[1], deploy_generation=1) as catalog:
    assert catalog.version == int(sys.argv[2])
"""
NEEDS_SPARK = 20

Open = Callable[[Path], tuple[str, bool]]


@pytest.fixture
def open_apart(tmp_path: Path) -> Open:
    """Open a store in a process of its own; answer what it printed, and whether it started Java."""
    java, started = tmp_path / "java" / "bin" / "java", tmp_path / "started"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch '{started}'\nexit 1\n")
    java.chmod(0o755)

    def run(store: Path) -> tuple[str, bool]:
        environment = {"JAVA_HOME": str(java.parents[1]), "PATH": f"{java.parent}:/usr/bin:/bin"}
        done = subprocess.run(
            [sys.executable, "-c", OPENING, str(store)],
            env={**environment, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr, started.exists()

    return run


def test_an_up_to_date_store_is_opened_without_spark(open_apart: Open, tmp_path: Path) -> None:
    """No JVM is started and nothing of pyspark loaded."""
    open_catalog(tmp_path / "store").close()
    assert open_apart(tmp_path / "store") == (f"{STASH_VERSION}\n", False)


def test_steps_that_touch_no_row_take_a_store_on_without_spark(open_apart: Open, tmp_path: Path) -> None:
    """Types change, files stay: the commits have rows of the engine's and nothing else."""
    first = first_without_spark()
    if first == STASH_VERSION:
        pytest.skip("the newest step rewrites rows")
    store = tmp_path / "store"
    generate(PROJECT, store, first, 300, 5)
    before = rows_at(store)
    files = log_of(store).state(log_of(store).verify()).files
    assert open_apart(store) == (f"{STASH_VERSION}\n", False)
    steps = steps_of(store)
    assert list(steps) == list(range(first + 1, STASH_VERSION + 1))
    for step in steps.values():
        assert {file.collection for file in step.adds} <= ENGINE
        assert step.removed_paths == ()
    state = log_of(store).state(steps[STASH_VERSION].version)
    assert state.app_txns[AppTxn.STASH_VERSION] == STASH_VERSION
    assert files.keys() <= state.files.keys()
    assert rows_at(store, state.version) == before, "builtins come after the steps"


def test_steps_that_rewrite_rows_start_spark(open_apart: Open, tmp_path: Path) -> None:
    """The tests above would see it."""
    load(tmp_path / "store", NEEDS_SPARK, golden(NEEDS_SPARK))
    printed, started = open_apart(tmp_path / "store")
    assert "Spark did not start" in printed
    assert started


@pytest.mark.spark
def test_an_upgrade_prints_nothing(tmp_path: Path) -> None:
    """Neither Spark nor anything else has a word for the terminal, where some programs say more than to a file."""
    store = tmp_path / "store"
    load(store, NEEDS_SPARK - 1, golden(NEEDS_SPARK - 1))
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", QUIET, str(store), str(STASH_VERSION)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), **_java()},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        check=False,
        timeout=300,
    )
    os.set_blocking(ours, False)
    try:
        printed = os.read(ours, 65_536)
    except BlockingIOError:
        printed = b""
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.returncode, printed.decode()) == (0, "")
    assert list(steps_of(store)) == list(range(NEEDS_SPARK, STASH_VERSION + 1))


def first_without_spark() -> int:
    """The lowest version from which no step to the newest rewrites rows."""
    nothing = LogState(0, {}, {})
    steps = [plan_step(PROJECT, nothing, version) for version in range(PROJECT.minimum, STASH_VERSION)]
    return max((step.version for step in steps if step.needs_spark), default=PROJECT.minimum)


def _java() -> dict[str, str]:
    home = os.environ.get("JAVA_HOME")
    return {"JAVA_HOME": home} if home else {}
