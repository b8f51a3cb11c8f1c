"""Processes that can be killed, an object store, and generated stores of any version."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.engine.stash.races.processes import Pool
from tests.object_store import make_bucket, storage_options
from tests.volatile import tmp_path, volatile_folder

__all__ = ["tmp_path"]

ROWS, SEED = 400, 7


@pytest.fixture
def victims(tmp_path: Path) -> Iterator[Pool]:
    """They end before the folder that they write to."""
    assert tmp_path.is_dir()
    pool = Pool("tests.engine.store.victim")
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def templates() -> Iterator[Callable[[int], Path]]:
    with volatile_folder() as folder:

        def template(version: int) -> Path:
            store = Path(folder, str(version))
            if not store.exists():
                generate(PROJECT, store, version, ROWS, SEED)
            return store

        yield template


@pytest.fixture
def store_at(templates: Callable[[int], Path], tmp_path: Path) -> Callable[[int], Path]:
    """Make a store of a version, which a test may do anything to."""

    def make(version: int) -> Path:
        shutil.copytree(templates(version), tmp_path / "store")
        return tmp_path / "store"

    return make


@pytest.fixture
def store_bucket(object_store: str) -> tuple[str, dict[str, str]]:
    """The address of a place in an object store, and what is needed to reach it."""
    return f"s3://{make_bucket(object_store)}/stores", storage_options(object_store)
