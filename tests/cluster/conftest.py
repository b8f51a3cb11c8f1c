"""Processes that upgrade on servers of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.upgraders import Upgrader, upgrading_processes
from tests.contract.conftest import object_store
from tests.volatile import tmp_path

__all__ = ["object_store", "tmp_path"]


@pytest.fixture(scope="module")
def upgrader() -> Iterator[Upgrader]:
    """One for the tests of a module, whose session stays warm."""
    with upgrading_processes() as made:
        yield made.one()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One server of each kind for all of these."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            group = "connect" if item.path.stem == "test_connect" else "cluster"
            item.add_marker(pytest.mark.xdist_group(group))
            item.add_marker(pytest.mark.cluster)
