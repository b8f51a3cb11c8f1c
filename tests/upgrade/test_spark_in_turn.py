"""Spark that is there when a process is to lead, and that is not started for nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.engine.log.place import StorePlace
from catalog.engine.spark.session_start import SessionStart
from catalog.engine.store.catalog import Mode
from catalog.engine.store.leader_upgrade import UpgradeOptions
from catalog.engine.store.leadership import LeadershipOptions, leading
from catalog.engine.store.open import open_store
from catalog.engine.store.upgrade_session import UpgradeSession
from catalog.errors import ChecksumError, SparkStartError
from catalog.events import Event, FenceTaken, SparkStarted, SparkStarting, StepAdvanced, StepCommitted, WaitingForLeader
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.upgrade.stores import log_of

ROOT = Path(__file__).parents[2]
NEEDS_SPARK = 20
LONG_S = 120.0
POLLS = 12
PATIENT = LeadershipOptions(lock_timeout_s=LONG_S, heartbeat_s=0.25)
TOLD = (WaitingForLeader, SparkStarting, SparkStarted, FenceTaken)
CANCELLED = """
import sys, time
from catalog.engine.spark.session_start import SessionStart
start = SessionStart()
start.begin()
if sys.argv[1] == "cancel":
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end and not start.elapsed_s:
        time.sleep(0.05)
    start.cancel()
    try:
        start.session()
    except Exception as error:
        print(type(error).__name__)
elif sys.argv[1] == "raise":
    raise SystemExit("a reason to end")
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    generate(PROJECT, tmp_path / "store", NEEDS_SPARK, 100, 1)
    return tmp_path / "store"


def kinds(told: Sequence[Event]) -> list[type]:
    return [type(event) for event in told if isinstance(event, TOLD)]


def upgrade(store: Path, told: list[Event], observer: object = None) -> None:
    def observe(event: Event) -> None:
        told.append(event)
        if callable(observer):
            observer(event)

    place = StorePlace.at(PROJECT, store)
    open_store(place, Mode.LEADER, PATIENT, UpgradeOptions("local[2]", observer=observe)).close()


@pytest.mark.spark
def test_spark_is_there_before_anybody_is_fenced(store: Path, spark: SparkSession) -> None:
    """From the fence on, only the steps take time."""
    told: list[Event] = []
    upgrade(store, told)
    assert kinds(told) == [SparkStarting, SparkStarted, FenceTaken]
    assert spark.range(1).count() == 1


@pytest.mark.spark
def test_spark_starts_while_a_leader_that_does_not_upgrade_is_waited_for(store: Path, spark: SparkSession) -> None:
    """It is there when that leader ends."""
    assert spark.version
    told: list[Event] = []
    started = threading.Event()

    def tell(event: Event) -> None:
        if isinstance(event, SparkStarting):
            started.set()

    waiting = threading.Thread(target=upgrade, args=(store, told, tell))
    with leading(StorePlace.at(PROJECT, store), PATIENT):
        waiting.start()
        assert started.wait(LONG_S)
        assert kinds(told) == [WaitingForLeader, SparkStarting]
    waiting.join(LONG_S)
    assert kinds(told) == [WaitingForLeader, SparkStarting, SparkStarted, FenceTaken]


@pytest.mark.spark
def test_no_spark_is_started_if_another_leader_does_the_work(
    store: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as it runs a step and is alive, it is trusted to end it."""
    assert spark.version
    first: list[Event] = []
    second: list[Event] = []
    running, watched, polls = threading.Event(), threading.Event(), []
    wait = UpgradeSession.wait

    def counted(self: UpgradeSession, *given: float) -> None:
        wait(self, *given)
        polls.append(given)
        if len(polls) == POLLS:
            watched.set()

    def hold(event: Event) -> None:
        if isinstance(event, StepAdvanced):
            running.set()
            assert watched.wait(LONG_S)

    monkeypatch.setattr(UpgradeSession, "wait", counted)
    leader = threading.Thread(target=upgrade, args=(store, first, hold))
    leader.start()
    assert running.wait(LONG_S)
    upgrade(store, second)
    leader.join(LONG_S)
    assert kinds(second) == [WaitingForLeader, FenceTaken]
    assert [event.plan.previous for event in first if isinstance(event, StepCommitted)] == [20, 21]
    assert not [event for event in second if isinstance(event, StepCommitted)]


def test_a_spark_that_does_not_start_leaves_the_present_leader(store: Path, tmp_path: Path) -> None:
    """Nobody is fenced, and nothing is written."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'out of memory' >&2\nexit 1\n")
    java.chmod(0o755)
    before = log_of(store).verify()
    program = "import sys; from catalog import open_catalog; open_catalog(sys.argv[1])"
    done = run(program, str(store), JAVA_HOME=str(tmp_path / "java"), TMPDIR=str(tmp_path))
    assert f"catalog.errors.migrations.{SparkStartError.__name__}" in done.stderr
    assert "out of memory" in done.stderr
    assert log_of(store).verify() == before


@pytest.mark.spark
def test_a_store_that_is_refused_leaves_no_java_behind(store: Path, tmp_path: Path) -> None:
    """Java was started before that was known."""
    spoil_checksum = (
        "import sys\nfrom catalog import open_catalog\nfrom catalog.engine.store import leader_upgrade\n"
        "from catalog.errors import ChecksumError\n"
        "def refuse(*given): raise ChecksumError('v19_to_v20')\n"
        "leader_upgrade._require_upgradable = refuse\n"
        "open_catalog(sys.argv[1])\n"
    )
    before = log_of(store).verify()
    done = run(spoil_checksum, str(store), TMPDIR=str(tmp_path))
    assert ChecksumError.__name__ in done.stderr
    assert log_of(store).verify() == before
    assert not list(tmp_path.glob("catalog-spark-*"))


@pytest.mark.spark
@pytest.mark.parametrize("how", [("cancel", "0"), ("cancel", "1.5"), ("cancel", "inf"), ("leave", "0"), ("raise", "0")])
def test_a_start_that_nobody_waits_for_ends_with_its_process(tmp_path: Path, how: tuple[str, str]) -> None:
    """At any moment, and after it has started: Java is gone, and so is its folder."""
    done = run(CANCELLED, *how, TMPDIR=str(tmp_path))
    assert done.returncode == (1 if how[0] == "raise" else 0)
    assert done.stderr.strip() == ("a reason to end" if how[0] == "raise" else "")
    assert not list(tmp_path.glob("catalog-spark-*"))


def test_the_session_of_the_caller_is_used_as_it_is() -> None:
    """It is neither started nor told of, and stays when the caller gives up."""
    told: list[Event] = []
    own = object()
    start = SessionStart(own, observer=told.append)  # type: ignore[arg-type]  # any session
    start.begin()
    assert start.session() is own
    start.cancel()
    assert told == []


def test_an_up_to_date_store_begins_no_session(tmp_path: Path) -> None:
    """Nor does one that is made."""
    told: list[Event] = []
    for _ in range(2):
        open_catalog(tmp_path / "new", observer=told.append).close()
    assert kinds(told) == [FenceTaken, FenceTaken]


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
