"""Upgrades by way of a Connect server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cluster.fencing import fence_in_the_middle
from tests.cluster.servers import ConnectServer
from tests.cluster.upgraders import Upgrader
from tests.kills.verdict import Reference

STEP = 18
"""Fenced in the step to this version."""


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
