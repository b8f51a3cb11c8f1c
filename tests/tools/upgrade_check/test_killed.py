"""A check that is killed, anywhere: the store is untouched, and the next check sweeps what it left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.engine.base.scratch_folder import scratch_folder, sweep
from catalog.engine.log.place import StorePlace
from catalog.tools.upgrade_check.check import check_upgrade
from catalog.upgrade import PROJECT
from tests.upgrade.stores import files_of

Stores = Callable[[int], Path]


def killed(store: Path, scratch: Path, points: int, sessions: str) -> str:
    """Check a store in a process of its own, killed when it has passed so many points; answers where that was."""
    words = [sys.executable, "-m", "tests.tools.upgrade_check.checker", str(store), str(scratch), str(points), sessions]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        place = process.stdout.readline().strip()
        assert place.startswith("at "), "it ended before it could be killed"
        process.kill()
        process.wait()
    return place


@pytest.mark.parametrize("points", [0, 1, 7, 40])
def test_a_killed_check_leaves_the_store_as_it_was_and_a_copy_for_the_next_to_sweep(
    copy_of: Stores, scratch: Path, points: int
) -> None:
    """Wherever it was, between steps or within one."""
    store, current = copy_of(14), copy_of(PROJECT.current)
    before = files_of(store)
    killed(store, scratch, points, "none")
    assert files_of(store) == before
    assert len(list(scratch.iterdir())) == 1
    assert check_upgrade(StorePlace.at(PROJECT, current), scratch=scratch).ok


@pytest.mark.spark
def test_a_check_killed_with_its_jvm_leaves_the_store_as_it_was(copy_of: Stores, scratch: Path) -> None:
    """In the middle of a job on Spark."""
    store, current = copy_of(18), copy_of(PROJECT.current)
    before = files_of(store)
    assert killed(store, scratch, 1, "own") == "at a task of v18_to_v19"
    assert files_of(store) == before
    assert check_upgrade(StorePlace.at(PROJECT, current), scratch=scratch).ok


def test_the_copy_of_a_process_that_lives_is_not_swept(tmp_path: Path) -> None:
    """Only what nobody holds any more, and nothing of another name."""
    with scratch_folder(tmp_path, "catalog-check-") as folder:
        other = tmp_path / "catalog-savepoint-1"
        other.mkdir()
        abandoned = tmp_path / "catalog-check-abandoned"
        (abandoned / "stash").mkdir(parents=True)
        sweep(tmp_path, "catalog-check-")
        assert sorted(tmp_path.iterdir()) == sorted([folder, other])
    assert sorted(tmp_path.iterdir()) == [other]
