"""Processes to be killed, and stores in memory for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.stash.races.processes import Pool
from tests.volatile import tmp_path

__all__ = ["tmp_path"]


@pytest.fixture
def victims(tmp_path: Path) -> Iterator[Pool]:
    """They end before the folder that they write to."""
    assert tmp_path.is_dir()
    pool = Pool("tests.engine.stash.crashes.victim")
    yield pool
    pool.close()
