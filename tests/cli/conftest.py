"""The session that the tests of Spark use too, and stores to be copied."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from catalog.engine.log.place import StorePlace
from catalog.engine.migrate.executor import upgrade
from catalog.engine.storage.heartbeat import release
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.cli.commands import call
from tests.cli.terminal import is_setting
from tests.engine.migrate.stores import lead
from tests.engine.spark.conftest import spark
from tests.gate.conftest import template, tree
from tests.volatile import tmp_path, volatile_folder

__all__ = ["spark", "template", "tmp_path", "tree"]

CURRENT = PROJECT.current
ROWS, SEED = 100, 5
Stores = Callable[..., Path]
_Test = TypeVar("_Test", bound=Callable[..., None])


def on_spark(test: _Test) -> _Test:
    """For tests that need a JVM; they share one."""
    marked: _Test = pytest.mark.spark(test)
    return marked


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have settings of their own."""
    for name in [name for name in os.environ if is_setting(name)]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def templates() -> Iterator[Callable[[int, int], Path]]:
    """Stores that nobody writes to, made when they are first asked for: of a version, or led from it to another.

    Those steps run their tasks here and need no JVM, up to version 19 and from 21 on.
    """
    with volatile_folder() as folder:

        def made(version: int, until: int) -> Path:
            store = Path(folder, f"v{version}-v{until}")
            if not store.exists():
                if version == CURRENT:
                    call("init", "--store", store)
                else:
                    generate(PROJECT, store, version, ROWS, SEED)
                if until != version:
                    leader = lead(store)
                    upgrade(leader, until)
                    place = StorePlace.at(PROJECT, store)
                    release(place.storage, leader.journal.fence, place.identity().id)  # nobody waits for it
            return store

        yield made


@pytest.fixture
def store_of(templates: Callable[[int, int], Path], tmp_path: Path) -> Stores:
    """A copy of a store of a version, or of one that was led from there to another, each time the same."""

    def copied(version: int = CURRENT, until: int | None = None) -> Path:
        number = len(list(tmp_path.iterdir()))
        return Path(shutil.copytree(templates(version, until or version), tmp_path / f"store{number}"))

    return copied
