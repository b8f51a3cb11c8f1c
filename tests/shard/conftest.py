"""A memory and a folder for each test of the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.places import DeltaPlace, MemoryPlace, Place


@pytest.fixture(params=["memory", "local"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return MemoryPlace() if request.param == "memory" else DeltaPlace(str(tmp_path / "store" / "shards" / "s1"))
