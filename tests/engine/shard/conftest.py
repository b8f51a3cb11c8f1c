"""A memory and a folder for each test of the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.log.places import DeltaPlace, MemoryPlace, Place
from tests.volatile import tmp_path

__all__ = ["tmp_path"]


@pytest.fixture(params=["memory", "local"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return MemoryPlace() if request.param == "memory" else DeltaPlace(str(tmp_path / "store" / "shards" / "s1"))
