"""Shards as parts of a store: checked, copied, removed, compacted, vacuumed, and migrated by a check of an upgrade."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.builtins import AUDIT_EVENTS, DECLARED
from catalog.cli.commands.debug_stats import measure
from catalog.cli.context import StoreTarget
from catalog.engine.base.fence import Fence
from catalog.engine.base.project import BuildVersion, Project
from catalog.engine.builtins.declaration import Builtin, Declaration, Instruction, Mechanism
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace
from catalog.engine.shard.schema import Column, Schema, SchemaId
from catalog.engine.shard.shard import Shard
from catalog.engine.stash.engine_rows import NOT_PROTECTED
from catalog.engine.storage.layout import shard_uri
from catalog.errors import UnfitShardIdError
from catalog.objects import SettingKey, SettingValue, UnfinalizedShardKey, UnfinalizedShardValue
from catalog.tools.fsck.findings import FsckCode, FsckReport, Severity
from catalog.tools.fsck.store import check_store
from catalog.tools.remove import plan_removal, remove_store
from catalog.tools.repair import diagnose, repair
from catalog.tools.upgrade_check.check import check_upgrade
from catalog.tools.upgrade_check.report import StepOutcome
from catalog.upgrade import PROJECT
from tests.cli.commands import call
from tests.engine.builtins.test_start import open_as, shard_of, store, template
from tests.upgrade.stores import files_of

__all__ = ["store", "template"]


def checked(place: Path, project: Project = PROJECT) -> FsckReport:
    return check_store(StorePlace.at(project, place))


def audit_shard(place: Path) -> str:
    with open_as(place, "read-only") as reader:
        return shard_of(reader, "audit_events")


def opened(place: Path, shard: str) -> Shard:
    return Shard.open(DeltaLog(shard_uri(str(place), shard)), Fence(0, 0))


def found(report: FsckReport) -> list[tuple[FsckCode, str]]:
    return [(finding.code, finding.where.split("/")[0]) for finding in report.findings]


def test_a_store_with_its_shards_is_in_order(store: Path) -> None:
    """Entries, files and rows of shards are counted with those of the stash."""
    alone = replace(PROJECT, builtins=None)
    report = checked(store)
    assert report.ok
    assert report.files > len(list((store / "stash").rglob("*.parquet")))
    assert checked(store, alone).files == report.files, "shards are checked by themselves too"


def test_a_shard_that_is_lost_is_told(store: Path) -> None:
    """By the builtin that uses it."""
    shutil.rmtree(store / "shards" / audit_shard(store))
    assert found(checked(store)) == [(FsckCode.SHARD, "shards")]


def test_a_shard_that_was_given_up_and_is_used_is_told(store: Path) -> None:
    """Nobody may finalise what a mapping names."""
    opened(store, audit_shard(store)).finalize()
    assert found(checked(store)) == [(FsckCode.SHARD, "shards")]


@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_damaged_file_of_a_shard_is_told_by_its_path(store: Path, how: str) -> None:
    """And the rest is checked."""
    shard = audit_shard(store)
    (file,) = (store / "shards" / shard / "collection=batch").glob("*.parquet")
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-7])
    (finding,) = (one for one in checked(store).findings if one.severity is Severity.ERROR)
    assert finding.code in {FsckCode.MISSING, FsckCode.CORRUPT, FsckCode.UNREADABLE}
    assert finding.where == f"shards/{shard}/collection=batch/{file.name}"


def test_a_schema_that_nobody_recorded_is_told(store: Path) -> None:
    """An error, unless a newer build has begun and not finished."""
    wider = Schema((*AUDIT_EVENTS.schema.columns, Column(8, "session", pa.string())))
    opened(store, audit_shard(store)).compare_and_evolve_schema(SchemaId(0), wider)
    (finding,) = checked(store).findings
    assert (finding.code, finding.severity) == (FsckCode.SCHEMA, Severity.ERROR)


def test_a_shard_that_nothing_refers_to_is_told_and_is_no_damage(store: Path) -> None:
    """A finalised one is left out: its log says so for ever."""
    for name in ("s1", "s2"):
        Shard.create(DeltaLog(shard_uri(str(store), name)), Fence(0, 1))
    opened(store, "s2").finalize()
    report = checked(store)
    assert [(finding.code, finding.where) for finding in report.findings] == [(FsckCode.UNUSED, "shards/s1")]
    assert report.ok


def test_a_shard_that_a_read_only_process_keeps_is_no_finding(store: Path) -> None:
    """An upgrade may be in preparation for as long as it takes."""
    own = changed(Mechanism.REPLACEMENT)
    open_as(store, "read-only", own, 1).close()
    assert checked(store).findings == ()


def changed(*mechanisms: Mechanism) -> Project:
    wider = replace(AUDIT_EVENTS, schema=Schema((*AUDIT_EVENTS.schema.columns, Column(8, "session", pa.string()))))
    builtins: tuple[Builtin, ...] = tuple(own if own.name != wider.name else wider for own in DECLARED.builtins)
    told = tuple(Instruction(BuildVersion(0, 3), wider.name, mechanism) for mechanism in mechanisms)
    declared = Declaration(BuildVersion(0, 3), builtins, told)
    return replace(PROJECT, build=declared.build, builtins=lambda: declared)


def test_a_removal_takes_shards_along(store: Path) -> None:
    """All of their files and folders, and nothing that is not theirs."""
    (store / "shards" / "notes.txt").write_text("mine")
    plan = plan_removal(StorePlace.at(PROJECT, store))
    assert {file.path for file in plan.files} == files_of(store).keys() - {"shards/notes.txt"}
    removed = remove_store(StorePlace.at(PROJECT, store), "test")
    assert removed.others == ("shards/notes.txt",)
    assert [path.name for path in store.rglob("*")] == ["shards", "notes.txt"]


@pytest.mark.parametrize(
    ("mechanisms", "outcome", "evolved", "replaced"),
    [
        ((), StepOutcome.FAILED, (), ()),
        ((Mechanism.EVOLUTION,), StepOutcome.OK, ("catalog.audit_events",), ()),
        ((Mechanism.REPLACEMENT,), StepOutcome.OK, (), ("catalog.audit_events",)),
    ],
    ids=["uninstructed", "evolution", "replacement"],
)
def test_a_check_of_an_upgrade_judges_builtins_as_a_leader_does(
    store: Path,
    tmp_path: Path,
    mechanisms: tuple[Mechanism, ...],
    outcome: StepOutcome,
    evolved: tuple[str, ...],
    replaced: tuple[str, ...],
) -> None:
    """It migrates those of the copy; of the store and its shards not a byte changes."""
    before = files_of(store)
    (tmp_path / "scratch").mkdir()
    verdict = check_upgrade(StorePlace.at(changed(*mechanisms), store), scratch=tmp_path / "scratch")
    assert files_of(store) == before
    assert list((tmp_path / "scratch").iterdir()) == []
    assert verdict.builtins is not None
    assert (verdict.ok, verdict.builtins.outcome) == (outcome is StepOutcome.OK, outcome)
    assert (verdict.builtins.evolved, verdict.builtins.replaced) == (evolved, replaced)
    if outcome is StepOutcome.FAILED:
        assert verdict.builtins.error is not None
        assert "no instruction says how to migrate it" in verdict.builtins.error.what
        assert "(0.3.0, catalog.audit_events, EVOLUTION)" in verdict.builtins.error.next


def test_compaction_and_vacuum_measure_the_store(store: Path) -> None:
    """And bring builtins up to date; `stats` tells of all that was measured."""
    environment = StoreTarget(PROJECT, str(store))
    with open_as(store) as leader, leader.transaction() as tx:
        tx.insert(SettingKey(name="a"), SettingValue(value="1"))
    first = measure(environment).measures
    call("debug", "compact", "--store", store)
    call("debug", "vacuum", "--store", store, "--retention", "0s", "--yes")
    measures = measure(environment).measures
    times = sorted({own.measured_at for own in measures})
    assert len(times) == 3
    assert measures[: len(first)] == first
    settings = [own.rows for own in measures if own.collection == "setting"]
    assert settings == [2, 3, 3]
    assert checked(store).ok


def test_a_torn_entry_of_a_shard_is_kept(store: Path) -> None:
    """It was never acknowledged; what it would have said of the stash follows again."""
    shard = audit_shard(store)
    newest = max((store / "shards" / shard / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:-20])
    environment = StoreTarget(PROJECT, str(store))
    diagnosis = diagnose(environment.place)
    assert [(torn.id, torn.damaged.version) for torn in diagnosis.shards] == [(shard, int(newest.stem))]
    assert not diagnosis.is_sound
    (path,) = repair(environment.place, diagnosis).kept_of_shards
    assert (store / path).is_file()
    assert diagnose(environment.place).is_sound
    with open_as(store) as leader:
        assert leader.builtin("audit_events").num_rows == 1


def test_no_row_leads_out_of_the_store(store: Path) -> None:
    """Finalising deletes: what a row names is looked for among the shards of its store and nowhere else."""
    with open_as(store, "member") as member, member._stash.transaction(NOT_PROTECTED) as tx:  # noqa: SLF001 - as no program can
        tx.insert(UnfinalizedShardKey(shard="../../precious"), UnfinalizedShardValue(reason="by mistake"))
        tx.insert(UnfinalizedShardKey(shard="shards/u1-2"), UnfinalizedShardValue(reason="by its path"))
    with open_as(store) as leader:
        assert [key.shard for key, _ in leader.rows(UnfinalizedShardKey)] == ["../../precious"]
    assert opened(store, "u1-2").finalized
    with pytest.raises(UnfitShardIdError):
        shard_uri(str(store), "../stash")
