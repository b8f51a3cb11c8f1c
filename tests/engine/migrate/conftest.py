"""A store of each version, to be copied; tests that need a JVM share one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.volatile import tmp_path, volatile_folder

__all__ = ["tmp_path"]

ROWS, SEED = 300, 7


@pytest.fixture(scope="session")
def templates() -> Iterator[Callable[[int], Path]]:
    """Stores that nobody writes to, made when they are first asked for."""
    with volatile_folder() as folder:

        def made(version: int) -> Path:
            store = Path(folder, f"v{version}")
            if not store.exists():
                generate(PROJECT, store, version, ROWS, SEED)
            return store

        yield made


@pytest.fixture
def copy_of(templates: Callable[[int], Path], tmp_path: Path) -> Callable[[int], Path]:
    """A new store of a version, each time the same."""

    def copied(version: int) -> Path:
        store = tmp_path / f"v{version}-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(templates(version), store)
        return store

    return copied
