"""What only Spark itself can show: frames in and out, and the same rows as without it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from catalog.actions import Action, frame, per_row
from catalog.engine.log.protocol import AppTxn
from catalog.engine.migrate import partitions, step_job
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.partitions import divide
from catalog.engine.migrate.violations import RowRule
from catalog.engine.spark.jobs import SparkJobs
from catalog.engine.spark.session import local_session
from catalog.engine.stash.registry import encode
from catalog.errors import FencedError, MigrationFailedError
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import (
    append,
    events_of,
    findings_of,
    lead,
    project_with,
    rows_of,
    state_of,
    version_of,
)
from tests.engine.migrate.test_partitions import cluster
from tests.engine.migrate.test_wrong_migrations import refused

pytestmark = pytest.mark.spark
Stores = Callable[[int], Path]
Frames = Mapping[str, DataFrame]
new: Any = PROJECT.types(22)


def spark_jobs() -> SparkJobs:
    return SparkJobs(lambda: local_session(settings={"spark.master": "local[2]"}))


def audited(frames: Frames, ids: Any) -> Frames:  # noqa: ANN401 - a column
    """Settings as they are, and a copy of each audit row with another id."""
    rows = frames["audit_log"].select(sf.struct(ids.cast("decimal(20,0)").alias("id")).alias("key"), sf.col("value"))
    return {"setting": frames["setting"], "audit_log": rows}


def numbered(frames: Frames, next_id: int, step: int = 1) -> Frames:
    return audited(frames, sf.lit(next_id) + step * (sf.expr("row_number() over (order by key.id)") - 1))


def adding(change: Callable[..., Frames]) -> Action:
    return frame(change, reads=("setting", "audit_log"), writes=("setting",), into=("audit_log",), ids="audit_log")


def test_ids_of_a_frame_that_are_dense_are_given_out(copy_of: Stores) -> None:
    """And the allocator goes on after them."""
    store = copy_of(21)
    before = rows_of(store)
    upgrade(lead(store, project_with(21, adding(numbered))))
    after = rows_of(store)
    assert len(after["audit_log"]) == 2 * len(before["audit_log"])
    allocator = encode(new.IdAllocKey(name="audit_log"))
    first, following = (new.IdAllocValue.FromString(dict(r["id_alloc"])[allocator]).next_id for r in (before, after))
    assert following == first + len(before["audit_log"])
    assert findings_of(store) == []


@pytest.mark.parametrize(
    ("change", "rule", "found"),
    [
        (partial(numbered, step=2), RowRule.KEY, "and should be dense from"),
        (lambda frames, next_id: numbered(frames, next_id + 5), RowRule.KEY, "and should be dense from"),
        (lambda frames, next_id: audited(frames, sf.lit(next_id)), RowRule.KEY, 'audit_log {"id": '),
        (lambda frames, _next_id: audited(frames, sf.col("key.id")), RowRule.KEY, "audit_log"),
    ],
    ids=["gaps", "elsewhere", "one for all", "those that are there"],
)
def test_ids_of_a_frame_that_are_not_dense_are_refused(
    copy_of: Stores, change: Callable[..., Frames], rule: RowRule, found: str
) -> None:
    """They would be given out again, or never."""
    error = refused(copy_of(21), 21, adding(change))
    assert error.rule == rule
    assert found in error.what


def test_a_frame_that_leaves_a_reference_dangling_is_refused(copy_of: Stores) -> None:
    """From a collection that it does not touch."""
    error = refused(
        copy_of(21),
        21,
        frame(lambda frames: {"role": frames["role"].limit(0)}, reads=("role",), writes=("role",)),
    )
    assert error.rule == RowRule.REFERENCE
    assert 'refers to role {"id": {' in error.what


def test_a_frame_makes_rows_of_exactly_what_it_declares(copy_of: Stores) -> None:
    """Nothing of the others is known to be right."""
    store = copy_of(21)
    action = frame(lambda frames: {**frames}, reads=("setting", "role"), writes=("setting",))
    with pytest.raises(MigrationFailedError, match="declares rows of setting and made rows of setting, role"):
        upgrade(lead(store, project_with(21, action)))
    assert version_of(store) == 21
    assert state_of(store).app_txns[AppTxn.RUNNING_STEP] == 0
    assert [event.state.name for event in events_of(store)] == ["ERROR"]


def fails(_frames: Frames) -> Frames:
    raise KeyError("owner")


def takes_nothing() -> Frames:
    return {}


def of_settings(*columns: str) -> Callable[[Frames], Frames]:
    return lambda frames: {"setting": frames["setting"].selectExpr(*columns)}


WRONG_RESULTS: dict[str, tuple[Callable[..., Any], str]] = {
    "nothing": (lambda _frames: None, "its frame returned None; needed: a dict with a DataFrame for each of setting"),
    "a list": (lambda frames: [frames["setting"]], "its frame returned the list [DataFrame[key: "),
    "a frame": (lambda frames: frames["setting"], "its frame returned the DataFrame DataFrame[key: "),
    "no frame": (lambda _frames: {"setting": "x"}, "returned the str 'x' for setting; needed: a DataFrame"),
    "less than it declares": (lambda _frames: {}, "its frame declares rows of setting and made rows of none"),
    "what it did not read": (
        lambda frames: {"setting": frames["role"]},
        "LookupError: the frame does not read role: its `reads` are setting (test_on_spark.py, line ",
    ),
    "other columns": (
        of_settings("key as k", "value"),
        "made setting with the columns k, value; needed: key and value",
    ),
    "an unknown column": (of_settings("nosuch"), "with name `nosuch` cannot be resolved. Did you mean"),
    "an exception": (fails, "KeyError: 'owner' (test_on_spark.py, line "),
    "a wrong number of arguments": (takes_nothing, "takes 0 positional arguments but 1 was given"),
    "an exception in a row": (
        of_settings("key", "named_struct('value', raise_error('no idea')) AS value"),
        "its frame raised SparkRuntimeException: [USER_RAISED_EXCEPTION] no idea",
    ),
}


@pytest.mark.parametrize("mistake", WRONG_RESULTS)
def test_a_wrong_result_of_a_frame_says_what_to_correct_and_where_to_try_it(
    copy_of: Stores, mistake: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is no lack of a migration, and no run of the gate would find it."""
    change, found = WRONG_RESULTS[mistake]
    store = copy_of(21)
    before = rows_of(store)
    with pytest.raises(MigrationFailedError) as caught:
        upgrade(lead(store, project_with(21, frame(change, reads=("setting",), writes=("setting",)))))
    what, why, fix = str(caught.value).splitlines()
    assert what.startswith("v21_to_v22 was not applied: ")
    assert found in what
    assert "the gate reads what a migration declares" in why
    assert fix.startswith("next: correct v21_to_v22.py, and try it on a copy: `catalog debug upgrade-check`")
    assert (version_of(store), rows_of(store)) == (21, before)
    assert [event.state.name for event in events_of(store)] == ["ERROR"]
    assert "QueryContextLogger" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("tail_bytes_max", [2**30, -1], ids=["direct", "shuffled"])
def test_spark_makes_the_same_rows_as_its_tasks_called_directly(
    copy_of: Stores, monkeypatch: pytest.MonkeyPatch, tail_bytes_max: int
) -> None:
    """In several parts, with ids that are given out in each."""
    monkeypatch.setattr("catalog.engine.log.data_files._GROUP_ROWS_MAX", 3)
    monkeypatch.setattr(step_job, "divide", partial(divide, part_bytes=1000))
    monkeypatch.setattr(partitions, "TAIL_BYTES_MAX", tail_bytes_max)
    old: Any = PROJECT.types(19)
    stores = copy_of(19), copy_of(19)
    for store in stores:
        owner = old.RoleKey.FromString(rows_of(store)["role"][0][0]).id
        append(store, "cluster", *(cluster(old, number, owner) for number in range(200, 220)))
    direct, runner = lead(stores[0]), lead(stores[1])
    runner.jobs = spark_jobs()
    upgrade(direct, until=20)
    upgrade(runner, until=20)
    assert rows_of(stores[0]) == rows_of(stores[1])
    assert findings_of(stores[1]) == []


def test_what_breaks_a_rule_on_spark_is_told_as_it_is(copy_of: Stores) -> None:
    """A violation comes back from a worker, and so does what a migration raised there."""

    def fail(key: Any, _value: Any) -> None:  # noqa: ANN401
        raise LookupError(f"no idea what {key.name} is")

    store = copy_of(21)
    runner = lead(store, project_with(21, per_row("setting", fail)))
    runner.jobs = spark_jobs()
    with pytest.raises(Exception, match="LookupError: no idea what"):
        upgrade(runner)
    assert version_of(store) == 21


def test_a_job_ends_when_another_leader_takes_over(copy_of: Stores) -> None:
    """Its tasks are not waited for."""
    store, started = copy_of(21), time.monotonic()
    taken = []

    def wait(_key: Any, _value: Any) -> None:  # noqa: ANN401
        time.sleep(600)

    def take_over() -> Any:  # noqa: ANN401
        taken.append(lead(store))
        return local_session(settings={"spark.master": "local[2]"})

    runner = lead(store, project_with(21, per_row("setting", wait)))
    runner.jobs = SparkJobs(take_over)
    with pytest.raises(FencedError):
        upgrade(runner)
    assert time.monotonic() - started < 300
    assert (len(taken), version_of(store)) == (1, 21)
