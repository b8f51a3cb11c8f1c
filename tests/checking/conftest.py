"""Stores to be checked, and a place for scratch copies that must be empty again afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import copy_of, templates
from tests.spark.conftest import spark
from tests.volatile import tmp_path, volatile_folder

__all__ = ["copy_of", "spark", "templates", "tmp_path"]


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Where scratch copies are made; none may be left there."""
    with volatile_folder() as folder:
        yield Path(folder)
        assert list(Path(folder).iterdir()) == []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
