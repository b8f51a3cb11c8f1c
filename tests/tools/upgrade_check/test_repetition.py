"""Migrations that make other rows at every run: the check runs a sample of each step twice and tells what differs."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from catalog.actions import Action, columnar, delete, frame, insert, per_row
from catalog.engine.migrate.violations import RowRule, Violation
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import project_with, rows_of
from tests.engine.migrate.test_wrong_migrations import same
from tests.tools.upgrade_check.checks import checked, checked_directly

Stores = Callable[[int], Path]
v22: Any = PROJECT.types(22)


def renamed(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    value.name += uuid.uuid4().hex
    return same("Database", key, value)


def stamped(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    value.value = f"{time.perf_counter_ns()}"
    return same("Setting", key, value)


def moved(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    key.name = f"{key.name} {random.random()}"  # noqa: S311
    return same("Setting", key, value)


def sometimes(_key: Any, _value: Any) -> bool:  # noqa: ANN401
    return random.random() < 0.5  # noqa: S311


def numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Depend on how rows are divided into batches, and on nothing else that changes."""
    values = pa.StructArray.from_arrays([pa.array([f"number {row}" for row in range(batch.num_rows)])], names=["value"])
    return pa.record_batch([batch["key"], values], names=["key", "value"])


def spelt_out() -> Iterator[tuple[Message, Message]]:
    yield v22.SettingKey(name="made"), v22.SettingValue(value=uuid.uuid4().hex)


def found(store: Path, scratch: Path, action: Action) -> Violation:
    verdict = checked_directly(store, scratch, project_with(21, action))
    (step,) = verdict.steps
    assert not verdict.ok
    return next(own for own in step.violations if own.rule is RowRule.REPEATED)


def test_a_function_that_gives_another_result_at_every_run_is_told_by_key_and_field(
    copy_of: Stores, scratch: Path
) -> None:
    """Random numbers and clocks, in a value and in a key, with the number of rows."""
    store = copy_of(21)
    rows = rows_of(store)
    database = found(store, scratch, per_row("database", renamed))
    assert (database.collection, database.key[:6]) == ("database", '{"id":')
    assert database.found.startswith("value.name is '")
    assert database.found.endswith(f"of the same stored rows ({len(rows['database'])} rows of a sample)")
    assert found(store, scratch, per_row("setting", stamped)).found.startswith("value.value is '")
    setting = found(store, scratch, per_row("setting", moved))
    assert (setting.key[:9], setting.found[:13]) == ('{"name": ', "key.name is '")


def test_a_result_that_depends_on_the_division_into_batches_is_told(copy_of: Stores, scratch: Path) -> None:
    """The second run has other batches than the first one."""
    store = copy_of(21)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("catalog.tools.upgrade_check.repetition._UNEVEN", 1)
        assert "'number 0' in the next" in found(store, scratch, columnar("setting", numbered)).found


def test_deletions_and_insertions_that_differ_at_every_run_are_told(copy_of: Stores, scratch: Path) -> None:
    """A condition that draws lots, and rows that are spelt out with a random number."""
    store = copy_of(21)
    deleted = found(store, scratch, delete("comment", sometimes))
    assert (deleted.collection, deleted.key[:1]) == ("comment", "{")
    inserted = found(store, scratch, insert("setting", spelt_out))
    assert (inserted.key, inserted.found[:16]) == ('{"name": "made"}', "value.value is '")


def drawn(frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    drawn = F.struct(F.concat(F.col("value.value"), F.rand().cast("string")).alias("value"))
    return {"setting": frames["setting"].select("key", drawn.alias("value"))}


def told_the_time(frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"setting": frames["setting"].selectExpr("key", "struct(string(current_timestamp()) as value) as value")}


@pytest.mark.spark
def test_a_frame_that_gives_another_result_at_every_run_is_told(
    copy_of: Stores, scratch: Path, spark: SparkSession
) -> None:
    """Spark's own random numbers and clock."""
    store = copy_of(21)
    for change in (drawn, told_the_time):
        wrong = frame(change, reads=("setting",), writes=("setting",))
        (step,) = checked(store, scratch, spark, project_with(21, wrong)).steps
        (violation,) = step.violations
        assert violation.rule is RowRule.REPEATED
        assert violation.found.startswith("value.value is '")
