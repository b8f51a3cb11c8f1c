"""Rows of the engine that were tampered with: fsck, doctor and repair say the same of such a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalog import objects, open_catalog
from catalog.engine.log.place import StorePlace
from catalog.engine.stash.engine_rows import NOT_PROTECTED
from catalog.engine.store.leader_upgrade import open_stash
from catalog.errors import UndecodableRowError
from catalog.objects import ConfigKey, ConfigValue, FenceTokenKey, FenceTokenValue, MigrationEventKey
from catalog.tools.doctor.runner import DoctorContext, Status
from catalog.tools.doctor.store_checks import check_migrations
from catalog.tools.fsck.store import check_store
from catalog.tools.repair import diagnose, repair
from catalog.upgrade import PROJECT
from tests.earlier_builds import store_row

VERSION, FENCE = ConfigKey(name="stash_version"), FenceTokenKey(scope="store")
FUTURE: Any = objects.MigrationEventValue(
    version=23, previous=22, name="v22_to_v23", state=objects.MIGRATION_STATE_MIGRATED
)
UNKNOWN = objects.MigrationEventValue.FromString(b"\x18\x63")  # the state 99

MENDABLE: dict[str, tuple[Callable[[Any], object], str]] = {
    "another version": (
        lambda tx: tx.update(VERSION, ConfigValue(number=21)),
        "the row says 21, the mark of the log 22",
    ),
    "no version": (lambda tx: tx.delete(VERSION), "there is no row, the mark is 22"),
    "another fence": (
        lambda tx: tx.update(FENCE, FenceTokenValue(epoch=99)),
        "the row says (0, 99), the marks of the log",
    ),
    "no fence": (lambda tx: tx.delete(FENCE), "there is no row, and the marks of the log say"),
    "two fences": (
        lambda tx: tx.insert(FenceTokenKey(scope="mine"), FenceTokenValue(epoch=1)),
        "there is one fence, that of the store",
    ),
}


def tampered(tmp_path: Path, tamper: Callable[[Any], object]) -> StorePlace:
    """A store in which a program wrote rows of the engine, as every build before could."""
    open_catalog(tmp_path / "store").close()
    place = StorePlace.at(PROJECT, tmp_path / "store")
    stash = open_stash(place, place.log())
    stash.join()
    with stash.transaction(NOT_PROTECTED) as tx:
        tamper(tx)
    return place


def doctor(place: StorePlace) -> list[str]:
    found = check_migrations(DoctorContext(PROJECT, place.uri))
    return [result.found for result in found if result.grade is Status.PROBLEM]


@pytest.mark.parametrize("what", MENDABLE)
def test_fsck_doctor_and_repair_agree_about_tampered_rows_and_repair_mends_them(tmp_path: Path, what: str) -> None:
    """The log is what the engine goes by: the rows are written as it has them."""
    tamper, words = MENDABLE[what]
    place = tampered(tmp_path, tamper)
    report, diagnosis = check_store(place), diagnose(place)
    (found,) = diagnosis.contradictions
    assert words in found.found
    assert [(f"{one.where}: {one.what}", "catalog repair" in one.repair) for one in report.findings] == [
        (str(found), True)
    ]
    assert doctor(place) == [str(found)]
    assert not diagnosis.is_sound
    assert repair(place, diagnosis).rewritten == (found,)
    assert (check_store(place).findings, doctor(place), diagnose(place).is_sound) == ((), [], True)
    assert repair(place, diagnose(place)).rewritten == ()
    open_catalog(tmp_path / "store").close()


def test_fsck_doctor_and_repair_agree_about_a_forged_event(tmp_path: Path) -> None:
    """Nothing says what was there before: a copy helps."""
    place = tampered(tmp_path, lambda tx: tx.insert(MigrationEventKey(id=7), FUTURE))
    (found,) = diagnose(place).contradictions
    assert str(found).startswith('`migration_event` {"id": 7}: it says that v22_to_v23 was applied')
    assert not found.is_mendable
    (finding,) = check_store(place).findings
    assert (f"{finding.where}: {finding.what}", "restore a copy" in finding.repair) == (str(found), True)
    assert doctor(place) == [str(found)]


def test_an_event_of_an_unknown_state_is_damage_and_no_traceback(tmp_path: Path) -> None:
    """To all that read events."""
    place = tampered(tmp_path, lambda tx: store_row(tx, MigrationEventKey(id=7), UNKNOWN))
    (finding,) = check_store(place).findings
    assert "99 is no state of a run" in finding.what
    for judge in (diagnose, doctor):
        with pytest.raises(UndecodableRowError, match="its state is 99"):
            judge(place)
