"""Processes that upgrade and are killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.migrate.cluster.upgraders import Upgraders, upgrading_processes
from tests.volatile import tmp_path

__all__ = ["tmp_path"]


@pytest.fixture
def upgraders() -> Iterator[Upgraders]:
    with upgrading_processes() as made:
        yield made
