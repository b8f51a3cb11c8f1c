"""A store of builtins in memory and in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.builtins.stores import Store
from tests.volatile import tmp_path

__all__ = ["tmp_path"]


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(None if request.param == "memory" else str(tmp_path / "store"))
