"""A stream that is stopped, killed and started again beside a busy writer: each change arrives, and arrives once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.engine.store.catalog import Catalog
from catalog.objects import ItemKey, SettingKey, SettingValue
from tests.cli.terminal import variables
from tests.engine.migrate.cluster.servers import await_true
from tests.engine.spark import follower
from tests.engine.spark.conftest import item
from tests.engine.spark.follower import follow, sink_of, unfinished

pytestmark = pytest.mark.spark

SOAKED = settings.get_current_profile_name() == "soak"
KILLS = 2
STOPS_BEFORE_KILL = 9 if SOAKED else 1
CHANGES = 100 if SOAKED else 10
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(2**32))))
_BETWEEN_COMMITS_S = 0.1
_END_S = 120


def test_a_stream_survives_restarts_beside_a_busy_writer(spark: SparkSession, catalog: Catalog, store: Path) -> None:
    """What is collected is the rows of the start and every change since, once each: together, the table."""
    print("SEED", SEED)  # noqa: T201 - shown when it fails
    unfinished_after = []
    with busy_writer(store):
        for _ in range(KILLS):
            unfinished_after += stopped_and_killed(store)
    assert len(unfinished_after) == KILLS * (STOPS_BEFORE_KILL + 1)
    expected = len(unfinished_after) // 2 if SOAKED else 1
    assert sum(map(bool, unfinished_after)) > expected, "too few stops were in mid-batch"
    assert follow(spark, store, to_the_end=True).awaitTermination(_END_S)
    collected = spark.read.parquet(str(sink_of(store))).select("key.id", "value.name", "ts", "diff").collect()
    found = Counter(tuple(row) for row in collected)
    start = min(ts for _, _, ts, _ in found)
    catalog.refresh()
    rows = [told(key, value, start, 1) for key, value in catalog.rows(ItemKey, as_of=start)]
    changes = [told(*change) for change in catalog.subscribe(ItemKey, start)]
    assert len(changes) > CHANGES
    assert found == Counter(rows + changes)
    added: Counter[tuple[int, str]] = Counter()
    for (number, name, _, diff), times in found.items():
        added[number, name] += diff * times
    assert +added == Counter(told(*row, 0, 0)[:2] for row in catalog.rows(ItemKey))
    assert min(added.values()) == 0


def told(key: Any, value: Any, ts: int, diff: int) -> tuple[int, str, int, int]:  # noqa: ANN401 - messages of items
    return key.id, value.name, ts, diff


@contextmanager
def busy_writer(store: Path) -> Iterator[None]:
    """Somebody who inserts, changes and deletes items, and other rows, all the time."""
    done = threading.Event()

    def write() -> None:
        dice = random.Random(SEED)  # noqa: S311 - to be repeated
        with open_catalog(store, "member") as writer:
            count = 0
            while not done.wait(_BETWEEN_COMMITS_S):
                count += 1
                with writer.transaction() as tx:
                    for number in dice.sample(range(1, 41), dice.randrange(3)):
                        if tx.get(ItemKey(id=number)) is not None and dice.random() < 1 / 3:
                            tx.delete(ItemKey(id=number))
                        else:
                            tx.upsert(ItemKey(id=number), item(f"item {number}, change {count}"))
                    tx.upsert(SettingKey(name="count"), SettingValue(value=str(count)))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
        assert thread.is_alive(), "the writer failed"
    finally:
        done.set()
        thread.join()


def stopped_and_killed(store: Path) -> list[int]:
    """Follow the feed in a process with a JVM of its own; answer how many batches each stop left unfinished.

    At the end both are killed while a batch is under way.
    """
    with subprocess.Popen(
        [sys.executable, "-m", follower.__name__, str(store), str(STOPS_BEFORE_KILL)],
        env=variables(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = list(takewhile(lambda line: line != "following\n", process.stdout))
            before = unfinished(store)
            await_true(lambda: unfinished(store) - before, "a batch")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    return [*(int(line.split()[1]) for line in said), len(unfinished(store))]
