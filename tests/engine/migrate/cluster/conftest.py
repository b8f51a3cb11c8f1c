"""Processes that upgrade on servers of Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.migrate.cluster.upgraders import Upgrader, upgrading_processes
from tests.volatile import tmp_path

__all__ = ["tmp_path"]


@pytest.fixture(scope="module")
def upgrader() -> Iterator[Upgrader]:
    """One for the tests of a module, whose session stays warm."""
    with upgrading_processes() as made:
        yield made.one()
