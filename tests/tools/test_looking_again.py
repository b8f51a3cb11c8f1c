"""A store that others change, and whose retention ends, while it is read as a whole: never called damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.engine.log.maintenance import Policy
from catalog.engine.log.place import StorePlace
from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.engine.spark.datasource.scan import find
from catalog.engine.store.snapshot import StoreSnapshot
from catalog.errors import RetiredError
from catalog.objects import SettingKey, SettingValue
from catalog.tools.copy import Copied, copy_store
from catalog.tools.doctor.runner import DoctorContext, Status
from catalog.tools.doctor.store_checks import check_log
from catalog.tools.fsck.findings import Severity
from catalog.tools.fsck.store import check_store
from catalog.tools.history import read_timeline
from catalog.tools.vacuum import vacuum_store
from catalog.upgrade import PROJECT
from tests.meanwhile import Meanwhile, outcomes
from tests.volatile import volatile_folder

KEY = SettingKey(name="colour")
EVERY = {"fsck": 13, "copy": 61, "debug": 31, "leader": 31}
"""Of these, with hundreds of reads, others work before every so many; of anything else before every fifth."""


class Store:
    """A store, and what others do to it meanwhile: transactions, compaction, and a vacuum of all that is past."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "store"
        self.place = StorePlace.at(PROJECT, self.folder)
        self.made = count()
        self._write(5, "leader")
        self.work = Meanwhile.of(self.folder, self._others, folder)

    def _write(self, number: int, mode: str = "member") -> None:
        with open_catalog(self.folder, mode) as cat:
            for value in range(number):
                with cat.transaction() as tx:
                    tx.upsert(KEY, SettingValue(value=str(value)))

    def _others(self) -> None:
        self._write(45)
        vacuum_store(self.place, Policy(retention_ms=0, orphan_ms=0))
        self._write(3)

    def outcomes(self, act: Callable[[], object], name: str = "") -> Iterator[object]:
        return outcomes(self.work, self.folder, act, EVERY.get(name, 5))


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with volatile_folder() as folder:
        yield Store(Path(folder))


@pytest.mark.parametrize("mode", ["leader", "member", "read-only", "debug"])
def test_a_store_opens_whatever_others_do_meanwhile(store: Store, mode: str) -> None:
    """Every mode opens a store that others write, compact and vacuum between any two reads, and can refresh."""

    def opened() -> int:
        with open_catalog(store.folder, mode) as cat:
            return cat.refresh()

    for found in store.outcomes(opened, mode):
        assert isinstance(found, int), found


def test_fsck_finds_nothing_wrong_whatever_others_do_meanwhile(store: Store) -> None:
    """A check during which retention ends has no finding but files that a vacuum will sweep."""
    check = store.outcomes(lambda: check_store(store.place, every_state=True).findings, "fsck")
    for found in islice(check, 9):  # of the stash; the others are of shards, one like the other
        assert isinstance(found, tuple), found
        assert [one for one in found if one.severity is not Severity.SWEEPABLE] == []


def test_doctor_finds_nothing_wrong_whatever_others_do_meanwhile(store: Store) -> None:
    """Files that were retired since the log was read are not called missing."""
    for found in store.outcomes(lambda: list(check_log(DoctorContext(PROJECT, str(store.folder))))):
        assert isinstance(found, list), found
        assert {result.grade for result in found} == {Status.OK}, found


def test_a_copy_is_whole_whatever_others_do_meanwhile(store: Store, tmp_path: Path) -> None:
    """A copy begins again with the newest state when the one it reads is retired."""
    for found in store.outcomes(lambda: copy_store(store.place, target(tmp_path, store)), "copy"):
        assert isinstance(found, Copied), found
        assert check_store(StorePlace.at(PROJECT, found.target)).ok


def target(folder: Path, store: Store) -> StorePlace:
    return StorePlace.at(PROJECT, folder / f"copy{next(store.made)}")


def test_a_history_is_read_or_retired_whatever_others_do_meanwhile(store: Store) -> None:
    """Rows of the engine that were retired while a history is read are not called missing."""
    for found in store.outcomes(lambda: read_timeline(StoreSnapshot.of(store.place).system_rows).lines):
        assert isinstance(found, tuple | RetiredError), found


def test_a_plan_of_spark_is_made_whatever_others_do_meanwhile(store: Store) -> None:
    """A data frame finds its files in a newest state that is retired meanwhile, and says so only if its own is."""
    request = ReadOptions.of_options({"path": str(store.folder), "collection": "setting"})
    for found in store.outcomes(lambda: find(request).files):
        assert isinstance(found, tuple), found
