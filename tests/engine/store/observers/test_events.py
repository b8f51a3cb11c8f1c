"""Everything that happens to a store as it is opened is told, in order, and whoever is told can do no harm."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.actions import per_row
from catalog.engine.migrate.executor import upgrade
from catalog.errors import NotInitializedError, StepRefusedError
from catalog.events import (
    BuiltinsMigrated,
    Closed,
    Event,
    Failed,
    FenceTaken,
    Initialized,
    Maintained,
    Opening,
    Ready,
    StepAdvanced,
    StepBegan,
    StepCommitted,
    StepFailed,
    WaitingForLeader,
    ignore,
    together,
)
from catalog.objects import SettingKey, SettingValue
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import lead, project_with, version_of

BEHIND = PROJECT.current - 1


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A store of which the next step rewrites no rows, and needs no JVM."""
    generate(PROJECT, tmp_path / "older", BEHIND, 100, seed=1)
    return tmp_path / "older"


def kinds(notices: Sequence[Event]) -> list[type]:
    return [type(notice) for notice in notices if not isinstance(notice, StepAdvanced)]


def test_a_new_store_is_told_of(tmp_path: Path, told: list[Event]) -> None:
    """From the first look to the last; each notice has the facts of its moment."""
    with open_catalog(tmp_path / "new", observer=told.append) as cat:
        assert kinds(told) == [Opening, FenceTaken, Initialized, BuiltinsMigrated, Ready]
        begun, fence, _, builtins, ready = told
        assert begun == Opening(str(tmp_path / "new"), "catalog", "leader", str(PROJECT.build), PROJECT.current)
        assert isinstance(fence, FenceTaken)
        assert (fence.version, fence.epoch) == (None, 1)
        assert isinstance(builtins, BuiltinsMigrated)
        assert (builtins.created, builtins.evolved, builtins.replaced) == (4, 0, 0)
        assert isinstance(ready, Ready)
        assert (ready.version, ready.epoch, ready.ts) == (cat.version, cat.epoch, cat.ts)
        assert ready.seconds > 0
    assert told[-1] == Closed(PROJECT.current)
    cat.close()
    assert kinds(told).count(Closed) == 1


def test_an_upgrade_is_told_of(older: Path, told: list[Event]) -> None:
    """Each step begins, and is committed with what it came to; the store is ready only then."""
    open_catalog(older, deploy_generation=1, observer=told.append).close()
    assert kinds(told) == [Opening, FenceTaken, StepBegan, StepCommitted, BuiltinsMigrated, Ready, Closed]
    (done,) = [notice for notice in told if isinstance(notice, StepCommitted)]
    assert (done.plan.previous, done.plan.version) == (BEHIND, PROJECT.current)
    assert done.rows_before == done.rows_after == sum(own.rows_before for own in done.counts.values()) > 0
    assert done.bytes_before == done.bytes_after > 0
    assert done.seconds > 0
    ready = told[-2]
    assert isinstance(ready, Ready)
    assert (ready.version, version_of(older)) == (PROJECT.current, PROJECT.current)


def test_a_step_that_fails_is_told_of(older: Path, told: list[Event]) -> None:
    """By its error, and with nothing after it."""

    def refuse(_key: object, _value: object) -> None:
        raise ValueError("this row is strange")

    runner = lead(older, project_with(BEHIND, per_row("role", refuse)))
    runner.observer = told.append
    with pytest.raises(StepRefusedError) as caught:
        upgrade(runner)
    assert kinds(told) == [StepBegan, StepFailed]
    failed = told[-1]
    assert isinstance(failed, StepFailed)
    assert (failed.code, failed.what) == ("StepRefusedError", caught.value.what)
    assert failed.plan.previous == BEHIND


def test_a_store_that_cannot_be_opened_is_told_of(tmp_path: Path, told: list[Event]) -> None:
    """As its error says it."""
    open_catalog(tmp_path / "new").close()
    for mode, place in (("read-only", tmp_path / "nothing"), ("member", tmp_path / "nothing")):
        told.clear()
        with pytest.raises(Exception, match=r"nothing") as caught:
            open_catalog(place, mode, observer=told.append)
        assert kinds(told) == [Opening, Failed]
        failed = told[-1]
        assert isinstance(failed, Failed)
        assert failed.code == type(caught.value).__name__
        assert failed.next


def test_a_leader_that_is_waited_for_is_told_of(tmp_path: Path, told: list[Event]) -> None:
    """Who it is, and for how long; then who leads now."""
    with open_catalog(tmp_path / "new"):
        open_catalog(tmp_path / "new", lock_timeout_s=0.5, observer=told.append).close()
    assert kinds(told) == [Opening, WaitingForLeader, FenceTaken, Ready, Closed]
    waiting, fence = told[1:3]
    assert isinstance(waiting, WaitingForLeader)
    assert waiting.holder.endswith(f":{os.getpid()}")
    assert (waiting.epoch, waiting.timeout_s) == (1, 0.5)
    assert isinstance(fence, FenceTaken)
    assert (fence.epoch, fence.waited_s >= 0.5) == (2, True)


def test_maintenance_is_told_of(tmp_path: Path, told: list[Event]) -> None:
    """Merged files and checkpoints, when there are any; not every commit."""
    with open_catalog(tmp_path / "new", observer=told.append) as cat:
        for number in range(40):
            with cat.transaction() as tx:
                tx.insert(SettingKey(name=f"setting {number}"), SettingValue(value="x"))
    found = [notice for notice in told if isinstance(notice, Maintained)]
    assert 0 < len(found) < 20
    assert any("setting" in notice.consolidated for notice in found)
    assert any(notice.checkpoint is not None for notice in found)
    assert all(notice.postponed is None for notice in found)


def test_a_read_only_store_of_before_stays_open_as_it_is_made_again(older: Path, told: list[Event]) -> None:
    """Refreshing it closes nothing that anybody has."""
    with open_catalog(older, "read-only", observer=told.append) as cat:
        assert kinds(told)[-1] is Ready
        cat.refresh()
        assert Closed not in kinds(told)
    assert kinds(told).count(Closed) == 1


def test_an_observer_that_raises_harms_nothing(older: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The store is upgraded all the same; the log of Python has each kind of error once, and it is told on."""
    told: list[Event] = []

    def raise_always(notice: Event) -> None:
        told.append(notice)
        raise (KeyError("first") if isinstance(notice, Opening) else RuntimeError("later"))

    with caplog.at_level(logging.WARNING, "catalog"), open_catalog(older, observer=raise_always) as cat:
        assert cat.version == PROJECT.current
    assert kinds(told) == [Opening, FenceTaken, StepBegan, StepCommitted, BuiltinsMigrated, Ready, Closed]
    warnings = [record.getMessage() for record in caplog.records if record.name == "catalog"]
    assert len(warnings) == 2
    assert "KeyError: 'first'" in warnings[0]
    assert "RuntimeError: later" in warnings[1]
    assert caplog.records[0].exc_info is not None


def test_an_observer_can_be_interrupted(tmp_path: Path) -> None:
    """Whoever presses Ctrl-C means the whole."""

    def interrupt(_notice: Event) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_catalog(tmp_path / "new", observer=interrupt)


def test_several_observers_are_told_whatever_one_of_them_raises() -> None:
    """In their order; complaints go where they are wanted."""
    told: list[Event] = []
    complaints: list[str] = []

    def fail(_notice: Event) -> None:
        raise OSError(28, "no space")

    both = together(fail, None, told.append, ignore, complain=complaints.append)
    for version in (1, 2):
        both(Closed(version))
    assert told == [Closed(1), Closed(2)]
    assert len(complaints) == 1
    assert "no space" in complaints[0]


def test_what_is_no_error_of_ours_is_told_in_words() -> None:
    """Whatever it was that ended an opening."""
    assert Failed.of(NotInitializedError("x"), 1.0).code == "NotInitializedError"
    assert Failed.of(ZeroDivisionError("oh"), 1.0).what == "unexpected ZeroDivisionError: oh"
    assert Failed.of(KeyboardInterrupt(), 1.0).what == "it was stopped"
