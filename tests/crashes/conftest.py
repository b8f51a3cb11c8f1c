"""Processes to be killed, started ahead of need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.races.processes import Pool


@pytest.fixture(scope="module")
def victims() -> Iterator[Pool]:
    pool = Pool("tests.crashes.victim")
    yield pool
    pool.close()
