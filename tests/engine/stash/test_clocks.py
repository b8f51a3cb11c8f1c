"""Clocks that are wrong: nothing that was acknowledged is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from catalog.constraints import CONSTRAINTS
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.protocol import FaultHook, FaultPoint, no_fault
from catalog.engine.stash.stash import Stash
from catalog.errors import FilesLostError
from catalog.generated import objects_pb2 as types
from tests.engine.stash.test_stash import REGISTRY
from tests.object_store import make_bucket, storage_options

HOUR_S = 3600
SKEWS_S = [sign * hours * HOUR_S for hours in (1, 25, 24 * 8, 24 * 366) for sign in (1, -1)]
HASTY = Policy(checkpoint_every=2, clean_every=4)
"""Cleans often, and keeps what the default policy keeps."""


@dataclass
class SkewedPlace:
    """A place of a real storage, opened by processes whose clocks are wrong by some seconds."""

    uri: str
    options: dict[str, str]

    def open(self, skew_s: float, reached: FaultHook = no_fault, policy: Policy = HASTY) -> Stash:
        log = DeltaLog(self.uri, self.options, reached=reached, clock=lambda: time.time() + skew_s)
        log.create("made")
        stash = Stash.open(log, REGISTRY, CONSTRAINTS, policy)
        stash.replica.row_version = 22
        return stash

    def lead(self, skew_s: float) -> Stash:
        stash = self.open(skew_s)
        stash.take_over(0, "leader")
        return stash

    def join(self, skew_s: float, reached: FaultHook = no_fault) -> Stash:
        stash = self.open(skew_s, reached)
        stash.join()
        return stash


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> SkewedPlace:
    if request.param == "local":
        return SkewedPlace(str(tmp_path / "stash"), {})
    address = request.getfixturevalue("object_store")
    return SkewedPlace(f"s3://{make_bucket(address)}/stash", storage_options(address))


def put(stash: Stash, name: str) -> int:
    with stash.transaction() as tx:
        tx.upsert(types.SettingKey(name=name), types.SettingValue(value=name))
    return stash.ts


def names(stash: Stash, as_of: int | None = None) -> set[str]:
    return {types.SettingKey.FromString(key).name for key, _ in stash.view(as_of).rows("setting")}


def meanwhile(point: FaultPoint, do: Callable[[], object]) -> FaultHook:
    """Do something once, when a log has reached a point."""
    left = [do]

    def reached(passed: FaultPoint) -> None:
        if passed is point and left:
            left.pop()()

    return reached


@pytest.mark.parametrize("skew_s", SKEWS_S)
def test_a_wrong_clock_sweeps_no_file_that_another_is_about_to_commit(place: SkewedPlace, skew_s: int) -> None:
    """Age is told by the clock of the place, so a process whose clock is wrong deletes no file of a live writer."""
    sweeper = place.lead(skew_s)

    def sweep() -> None:
        sweeper.refresh()
        clean(sweeper.log, sweeper.state, HASTY)

    for point in (FaultPoint.WRITE_AFTER_FILE, FaultPoint.COMMIT_BEFORE_LOG):
        writer = place.join(0, meanwhile(point, sweep))
        put(writer, point)
        assert names(place.open(0)) == names(writer) >= {point}


@pytest.mark.parametrize("skew_s", [SKEWS_S[-2], SKEWS_S[-1]])
def test_a_wrong_clock_retires_no_state_that_is_retained(place: SkewedPlace, skew_s: int) -> None:
    """Retention is measured by the clock of the place, whatever the clocks of writers and cleaners say."""
    wrong, right = place.lead(skew_s), place.join(0)
    history = {put(stash, f"{number}"): number for number, stash in enumerate((wrong, right) * 3)}
    for stash in (wrong, right):
        stash.refresh()
        clean(stash.log, stash.state, HASTY)
    assert {len(names(right, ts)) - number for ts, number in history.items()} == {1}
    assert right.state.frontier == 0


def test_a_sweep_is_a_commit_so_no_clock_at_all_is_trusted(place: SkewedPlace) -> None:
    """Even if every file seems old, a writer whose file is swept writes it again before it commits."""
    sweeper = place.lead(0)

    for point in (FaultPoint.WRITE_AFTER_FILE, FaultPoint.COMMIT_BEFORE_LOG):
        writer = place.join(0, meanwhile(point, lambda: clean_now(sweeper)))
        put(writer, point)
        assert names(place.open(0)) == names(writer) >= {point}


def test_a_compaction_is_given_up_when_its_files_may_be_swept(place: SkewedPlace) -> None:
    """Merged files are not bound to one ts, so a sweep since they were written ends the compaction."""
    sweeper = place.lead(0)
    for number in range(3):
        put(sweeper, f"{number}")

    compactor = place.join(0, meanwhile(FaultPoint.COMMIT_BEFORE_LOG, lambda: clean_now(sweeper)))
    compactor.consolidate("setting")
    assert names(place.open(0)) == {"0", "1", "2"}


def clean_now(stash: Stash) -> None:
    stash.refresh()
    clean(stash.log, stash.state, Policy(orphan_ms=-10_000))


def test_a_commit_whose_file_is_deleted_meanwhile_is_not_acknowledged(tmp_path: Path) -> None:
    """Another program may delete a file during the commit: the commit says so instead of success."""
    place = SkewedPlace(str(tmp_path / "stash"), {})
    place.lead(0)

    def delete() -> None:
        next(Path(place.uri).glob("collection=setting/tail-*")).unlink()

    writer = place.join(0, meanwhile(FaultPoint.COMMIT_BEFORE_LOG, delete))
    with pytest.raises(FilesLostError, match=r"is in the log, but its file collection=setting/tail-0\.1-"):
        put(writer, "lost")
