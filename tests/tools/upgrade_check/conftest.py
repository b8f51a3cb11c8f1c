"""Stores to be checked, and a place for scratch copies that must be empty again afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.migrate.conftest import copy_of, templates
from tests.engine.spark.conftest import spark
from tests.volatile import tmp_path, volatile_folder

__all__ = ["copy_of", "spark", "templates", "tmp_path"]


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Where scratch copies are made; none may be left there."""
    with volatile_folder() as folder:
        yield Path(folder)
        assert list(Path(folder).iterdir()) == []
