"""Upgrades, and reading a shard, by way of a Connect server."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.engine.shard.schema import Schema
from catalog.objects import SettingKey
from tests.conftest import run
from tests.engine.log.places import DeltaPlace
from tests.engine.migrate.cluster.fencing import fence_in_the_middle
from tests.engine.migrate.cluster.servers import ROOT, ConnectServer
from tests.engine.migrate.cluster.upgraders import Upgrader
from tests.engine.migrate.kills.verdict import Reference
from tests.engine.shard.shards import FIRST, ID, SIZE, append, evolve, made

STEP = 18
"""Fenced in the step to this version."""
READING = """
import sys
from pyspark.sql import SparkSession
from catalog.engine.spark.datasource.shard_scan import shard_dataframe
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import Fence
from catalog.engine.shard.shard import Shard

shard = Shard.open(DeltaLog(sys.argv[1]), Fence(1, 1))
session = SparkSession.builder.remote(sys.argv[2]).getOrCreate()
snapshot = shard.reader(shard.latest().schema).snapshot()
frame = shard_dataframe(session, snapshot, partition_bytes=1)
print(sorted(tuple(row) for row in frame.collect()))
"""
"""In a process of its own: one that has a classic session gets no other."""
FOLLOWING = """
import sys
from pyspark.sql import SparkSession
from catalog.engine.spark.datasource import feed

store, address, sink = sys.argv[1:]
session = SparkSession.builder.remote(address).getOrCreate()
writer = feed(session, store, {}, "setting").writeStream.option("checkpointLocation", f"{sink}-checkpoint")
writer.format("parquet").trigger(availableNow=True).start(sink).awaitTermination()
rows = session.read.parquet(sink).select("key.name", "value.value", "diff").collect()
print(sorted(tuple(row) for row in rows))
"""


@pytest.fixture(scope="module")
def reference(connect_server: ConnectServer, upgrader: Upgrader, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """A store of v14 that was upgraded by way of the server."""
    return Reference.of(tmp_path_factory.mktemp("reference"), 14, upgrader, connect_server.address)


def test_the_oldest_store_is_upgraded(reference: Reference) -> None:
    """All steps, of every form; a check of everything finds nothing."""
    reference.examine_upgraded(reference.template.with_name("undisturbed"))


def test_a_leader_that_is_fenced_stops_its_job(
    reference: Reference, connect_server: ConnectServer, upgrader: Upgrader, tmp_path: Path
) -> None:
    """The job is interrupted, although its tasks hang; nothing of the step is there, and the next leader ends it."""
    store = shutil.copytree(reference.template, tmp_path / "store")
    upgrader.upgrade(store, connect_server.address, generation=1)
    fence_in_the_middle(reference, store, upgrader, STEP, connect_server.server.process.pid)
    connect_server.await_idle()
    upgrader.upgrade(store, connect_server.address, generation=3)
    upgrader.finish()
    connect_server.await_idle()
    reference.examine_upgraded(store, deaths=1)


def test_a_shard_is_read_and_migrated_by_the_server(connect_server: ConnectServer, tmp_path: Path) -> None:
    """Batches of an old schema and of the latest, each in a task."""
    place = DeltaPlace(str(tmp_path / "s1"))
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    evolve(shard, Schema.of(ID, SIZE))
    append(shard, Schema.of(ID, SIZE), (2, 20))
    shown = run(sys.executable, "-W", "ignore", "-c", READING, place.uri, connect_server.address, cwd=ROOT)
    assert shown.splitlines()[-1] == "[(1, 10, 1), (2, 20, 1)]"


def test_a_feed_is_followed_by_the_server(connect_server: ConnectServer, tmp_path: Path) -> None:
    """Rows first; a client that comes after the first one takes its checkpoint up."""
    store = tmp_path / "store"
    command = [sys.executable, "-W", "ignore", "-c", FOLLOWING, str(store), connect_server.address, f"{tmp_path}/sink"]
    rows = [("default_cluster", "default", 1), ("default_database", "default", 1)]
    with open_catalog(store) as catalog:
        assert run(*command, cwd=ROOT).splitlines()[-1] == str(rows)
        with catalog.transaction() as tx:
            tx.delete(SettingKey(name="default_cluster"))
    assert run(*command, cwd=ROOT).splitlines()[-1] == str(sorted([*rows, ("default_cluster", "default", -1)]))
