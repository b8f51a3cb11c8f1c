"""Processes that upgrade and are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.upgraders import Upgraders, upgrading_processes
from tests.volatile import tmp_path

__all__ = ["tmp_path"]


@pytest.fixture
def upgraders() -> Iterator[Upgraders]:
    with upgrading_processes() as made:
        yield made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One Connect server for all of these."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("connect"))
            item.add_marker(pytest.mark.cluster)
