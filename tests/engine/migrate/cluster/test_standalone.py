"""Upgrades on a standalone cluster, while its processes are stopped and killed."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.engine.migrate.cluster.fencing import fence_in_the_middle, hear_begin
from tests.engine.migrate.cluster.servers import (
    HOST,
    OTHER_HOST,
    Cluster,
    await_true,
    descendants,
    lives,
    python_daemons,
    quick_java,
    signal_tasks,
)
from tests.engine.migrate.cluster.upgraders import Upgrader
from tests.engine.migrate.kills.verdict import Reference
from tests.object_store import make_bucket, storage_options

ROWS, SEED = 1000, 7
OLDEST = 14
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "2s",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.task.duration.threshold": "2s",
    "spark.executor.memory": "512m",
}


@pytest.fixture(scope="module")
def reference(cluster: Cluster, upgrader: Upgrader, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """A store of v14 that was upgraded on the cluster; its session serves all that follow."""
    folder = tmp_path_factory.mktemp("reference")
    settings = SPECULATION | {"spark.executor.extraJavaOptions": quick_java()}
    return Reference.of(folder, OLDEST, upgrader, cluster.address, rows=ROWS, seed=SEED, settings=settings)


def test_a_store_in_a_folder_is_upgraded(reference: Reference, cluster: Cluster) -> None:
    """On both workers; a check of everything finds nothing."""
    reference.examine_upgraded(reference.template.with_name("undisturbed"))
    for worker in cluster.workers.values():
        assert python_daemons(worker.process.pid), f"{worker.name} had nothing to do"


def test_a_store_in_a_bucket_is_upgraded(
    reference: Reference, cluster: Cluster, upgrader: Upgrader, object_store: str
) -> None:
    """Executors read and write it with the same options, and make the same rows as in a folder."""
    store, options = f"s3://{make_bucket(object_store)}/store", storage_options(object_store)
    generate(PROJECT, store, OLDEST, ROWS, SEED, options=options)
    upgrader.upgrade(store, cluster.address, generation=1, options=options)
    upgrader.finish()
    reference.examine_upgraded(store, options)


def test_tasks_that_hang_are_speculated_and_killed_ones_repeated(
    reference: Reference, cluster: Cluster, upgrader: Upgrader, tmp_path: Path
) -> None:
    """A step is done while one worker's tasks hang; in a later one the other's are killed: every row is there once."""
    store = shutil.copytree(reference.template, tmp_path / "store")
    here, there = (cluster.workers[host].process.pid for host in (HOST, OTHER_HOST))
    upgrader.upgrade(store, cluster.address, generation=1)
    said = hear_begin(upgrader, 16)
    assert signal_tasks(signal.SIGSTOP, here)
    try:
        said += upgrader.hear_all("ended", "error")
    finally:
        signal_tasks(signal.SIGCONT, here)
    assert said[-1].get("ended") == 16
    hear_begin(upgrader, 18)
    lost = upgrader.spark_said("Lost task")
    await_true(lambda: signal_tasks(signal.SIGKILL, there) and upgrader.spark_said("Lost task") > lost, "one is hit")
    upgrader.finish()
    reference.examine_upgraded(store)


def test_a_leader_that_is_fenced_stops_its_job(
    reference: Reference, cluster: Cluster, upgrader: Upgrader, tmp_path: Path
) -> None:
    """The job is cancelled, although its tasks hang; nothing of the step is there, and the next leader ends it."""
    store = shutil.copytree(reference.template, tmp_path / "store")
    upgrader.upgrade(store, cluster.address, generation=1)
    fence_in_the_middle(reference, store, upgrader, 18, *(one.process.pid for one in cluster.workers.values()))
    upgrader.tell(do="jobs")
    assert upgrader.hear() == {"jobs": []}
    upgrader.upgrade(store, cluster.address, generation=3)
    upgrader.finish()
    reference.examine_upgraded(store, deaths=1)


def test_what_a_lost_worker_reported_is_reported_again(
    reference: Reference, cluster: Cluster, upgrader: Upgrader, tmp_path: Path
) -> None:
    """Spark cannot repeat some tasks alone when others have used their reports, which differ: all are repeated."""
    assert reference.rows
    await_executors(upgrader)
    held = tmp_path / "held"
    upgrader.tell(do="lose", held=str(held), tasks=8)
    pid = int(await_true(lambda: held.exists() and held.read_text(), "all have reported"))
    (host,) = (host for host, worker in cluster.workers.items() if pid in descendants(worker.process.pid))
    cluster.workers.pop(host).kill()
    cluster.start_worker(host)
    assert upgrader.hear() == {"reports": list(range(8)), "findings": [8]}


def test_a_worker_killed_in_the_middle_does_no_harm(
    reference: Reference, cluster: Cluster, upgrader: Upgrader, tmp_path: Path
) -> None:
    """Its executor dies with it, at any time of a step; the other does what is left, and every row is there once."""
    await_executors(upgrader)
    lost = upgrader.spark_said("Lost executor")
    store = shutil.copytree(reference.template, tmp_path / "store")
    upgrader.upgrade(store, cluster.address, generation=1)
    step = random.SystemRandom().choice(range(OLDEST + 1, 21))
    hear_begin(upgrader, step)
    time.sleep(random.SystemRandom().uniform(0, reference.seconds[step]))
    worker = cluster.workers.pop(OTHER_HOST)
    daemons = python_daemons(worker.process.pid)
    worker.kill()
    upgrader.finish()
    reference.examine_upgraded(store)
    assert upgrader.spark_said("Lost executor") > lost
    await_true(lambda: not [pid for pid in daemons if lives(pid)], "its Python workers end")
    cluster.start_worker(OTHER_HOST)


def await_executors(upgrader: Upgrader) -> None:
    """Both of them: one that was killed has a successor."""

    def found() -> bool:
        upgrader.tell(do="executors")
        return upgrader.hear() == {"executors": 2}

    await_true(found, "the workers have executors")
