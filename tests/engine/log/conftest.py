"""A memory, a folder and a bucket for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.log.places import DeltaPlace, MemoryPlace, Place
from tests.object_store import make_bucket, storage_options


@pytest.fixture
def bucket(object_store: str) -> DeltaPlace:
    return DeltaPlace(f"s3://{make_bucket(object_store)}/store/stash", storage_options(object_store))


@pytest.fixture
def folder(tmp_path: Path) -> DeltaPlace:
    return DeltaPlace(str(tmp_path / "store" / "stash"))


@pytest.fixture(params=["memory", "local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    match request.param:
        case "memory":
            return MemoryPlace()
        case "local":
            return DeltaPlace(str(tmp_path / "store" / "stash"))
        case _:
            found = request.getfixturevalue("bucket")
            assert isinstance(found, DeltaPlace)
            return found
