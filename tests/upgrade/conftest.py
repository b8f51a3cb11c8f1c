"""The session that all tests of Spark share, and stores of every version, upgraded once for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.spark.conftest import spark
from tests.upgrade.upgraded import Upgraded, UpgradedStores
from tests.volatile import tmp_path, volatile_folder

__all__ = ["spark", "tmp_path"]


@pytest.fixture(scope="session")
def upgraded(spark: SparkSession) -> Iterator[UpgradedStores]:
    with volatile_folder() as folder:
        yield UpgradedStores(Path(folder), spark)


@pytest.fixture
def oldest(upgraded: UpgradedStores) -> Upgraded:
    """The store that every step was taken on."""
    return upgraded[min(upgraded.versions)]
