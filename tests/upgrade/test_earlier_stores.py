"""Stores made by earlier code: they open, upgrade and undo under this build.

The archives under `tests/golden/stores` were made once, by the program as it was before its modules were moved: one
store generated at version 20, and one generated at version 18 and upgraded to version 22. They are never made again.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import STASH_VERSION, open_catalog
from catalog.engine.log.place import StorePlace
from catalog.engine.migrate.undo import undo
from catalog.engine.store.leader_upgrade import UpgradeOptions, apply_migrations, run_steps
from catalog.engine.store.leadership import LeadershipOptions, leading
from catalog.events import Event, StepCommitted
from catalog.tools.fsck.findings import FsckCode, Severity
from catalog.tools.fsck.store import check_store
from catalog.upgrade import PROJECT
from tests.migrations.plain import Stored
from tests.upgrade.stores import files_of, rows_at, steps_of

pytestmark = pytest.mark.spark

STORES = Path(__file__).parents[1] / "golden" / "stores"
GENERATED, UPGRADED = "v20", "v18_upgraded_to_v22"
OF_BUILTINS = {"builtin_mapping", "id_alloc", "storage_metadata", "unfinalized_shard"}
LEADER = LeadershipOptions(None)


@pytest.fixture
def earlier(tmp_path: Path, request: pytest.FixtureRequest) -> StorePlace:
    """An unpacked store that earlier code made."""
    with tarfile.open(STORES / f"{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path / "store", filter="data")
    return StorePlace.at(PROJECT, tmp_path / "store")


def rows(place: StorePlace, ts: int | None = None) -> Stored:
    """Read the rows of every collection that has any, now or at a ts."""
    return {name: found for name, found in rows_at(Path(place.uri), ts).items() if found}


def project_rows(found: Stored) -> Stored:
    """Leave out the collections to which a leader writes when it migrates the builtins."""
    return {name: own for name, own in found.items() if name not in OF_BUILTINS}


def undo_to(place: StorePlace, version: int) -> dict[int, Stored]:
    """Undo step by step; return the rows at each version on the way."""
    found: dict[int, Stored] = {}
    with leading(place, LEADER) as leader:
        while leader.system_rows.version > version:
            undo(leader.system_rows, PROJECT)
            found[leader.system_rows.version] = rows(place)
    return found


@pytest.mark.parametrize(
    ("earlier", "version"), [(GENERATED, 20), (UPGRADED, 22)], indirect=["earlier"], ids=[GENERATED, UPGRADED]
)
def test_an_earlier_store_is_sound_and_can_be_read(earlier: StorePlace, version: int, spark: SparkSession) -> None:
    """At its own version, and upgraded in a scratch copy; the store itself stays as it was."""
    before = files_of(Path(earlier.uri))
    assert earlier.version() == version
    findings = check_store(earlier, every_state=True).findings
    assert {(finding.code, finding.severity) for finding in findings} == {(FsckCode.NO_DIGEST, Severity.NOTE)}
    with open_catalog(earlier.uri, "debug") as catalog:
        assert catalog.version == version
        assert rows(earlier)
    with open_catalog(earlier.uri, "read-only", spark=spark) as catalog:
        assert catalog.version == STASH_VERSION
    assert files_of(Path(earlier.uri)) == before


@pytest.mark.parametrize("earlier", [GENERATED], indirect=True)
def test_a_store_of_earlier_code_is_upgraded_and_undone_to_exactly_its_rows(
    earlier: StorePlace, spark: SparkSession
) -> None:
    """Each step back restores the rows that were there before that step; applied again, members can join."""
    at = {20: rows(earlier)}
    with leading(earlier, LEADER) as leader:
        for version in range(21, STASH_VERSION + 1):
            run_steps(earlier, leader.log, leader.fence, UpgradeOptions(spark, until=version))
            at[version] = rows(earlier)
    undone = undo_to(earlier, 20)
    assert undone == {version: at[version] for version in range(20, STASH_VERSION)}
    assert check_store(earlier, every_state=True).ok
    assert apply_migrations(earlier, LEADER, UpgradeOptions(spark, reapply=True)) == (20, STASH_VERSION)
    open_catalog(earlier.uri, "member").close()
    assert check_store(earlier, every_state=True).ok


@pytest.mark.parametrize("earlier", [UPGRADED], indirect=True)
def test_steps_that_earlier_code_applied_are_undone_and_applied_again(earlier: StorePlace, spark: SparkSession) -> None:
    """A leader has nothing to do; then every step is taken back to version 18 and applied by this build."""
    at = {version: rows(earlier, step.version) for version, step in steps_of(Path(earlier.uri)).items()}
    events: list[Event] = []
    open_catalog(earlier.uri, observer=events.append).close()
    assert [event for event in events if isinstance(event, StepCommitted)] == []
    undone = undo_to(earlier, 18)
    assert undone.keys() == {*range(18, 22)}
    assert check_store(earlier, every_state=True).ok
    again = UpgradeOptions(spark, reapply=True)
    assert apply_migrations(earlier, LEADER, again) == (18, STASH_VERSION)
    for version, step in steps_of(Path(earlier.uri)).items():
        assert project_rows(rows(earlier, step.version)) == project_rows(at[version])
    assert check_store(earlier, every_state=True).ok
    open_catalog(earlier.uri, "member").close()
