"""Migrations that are wrong: a check tells everything that they break, and whether they can run at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from google.protobuf.message import Message
from pyspark.sql import DataFrame, SparkSession

from catalog.actions import Action, columnar, delete, frame, insert, per_row, retire, undecided, wire_compatible
from catalog.engine.base.project import Project
from catalog.engine.migrate.violations import LISTED_MAX, RowRule
from catalog.tools.upgrade_check.report import StepOutcome, UpgradeReport
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import append, module_of, project_with, rows_of
from tests.engine.migrate.test_wrong_migrations import SETTING, WRONG, everyone, one_key, same
from tests.tools.upgrade_check.checks import checked, checked_directly, of, row
from tests.tools.upgrade_check.checks import insert as store_rows

Stores = Callable[[int], Path]
v18: Any = PROJECT.types(18)
v20: Any = PROJECT.types(20)
v21: Any = PROJECT.types(21)
v22: Any = PROJECT.types(22)
AGAIN = 77_001


def chain_with(version: int, *actions: Action) -> Project:
    """The project with another migration from a version, and its own before and after."""
    module = module_of(version, *actions)
    return replace(
        PROJECT,
        migration_from=lambda found, build: module if found == version else PROJECT.migration_from(found, build),
    )


def assert_whole(verdict: UpgradeReport) -> None:
    """Nothing is left in the copy that breaks a rule."""
    assert verdict.after is not None
    assert verdict.after.findings == ()


@pytest.mark.parametrize("mistake", WRONG)
def test_whatever_a_wrong_migration_breaks_is_set_aside(copy_of: Stores, scratch: Path, mistake: str) -> None:
    """It fails under the rule that a start would name, and of what it broke nothing is left."""
    rule, found, actions = WRONG[mistake]
    store = copy_of(21)
    append(store, "setting", (*SETTING, 1))
    verdict = checked_directly(store, scratch, project_with(21, *actions))
    (step,) = verdict.steps
    assert (verdict.ok, step.outcome, step.error) == (False, StepOutcome.FAILED, None)
    assert any(found in str(violation) for violation in step.violations if violation.rule == rule)
    assert sum(own.set_aside for own in step.collections) >= step.counts[rule] > 0
    assert_whole(verdict)


def test_of_one_key_for_all_one_row_stays(copy_of: Stores, scratch: Path) -> None:
    """The others are counted, each of them once."""
    store = copy_of(21)
    rows = len(rows_of(store)["setting"])
    (step,) = checked_directly(store, scratch, project_with(21, per_row("setting", one_key))).steps
    assert step.counts == {RowRule.KEY: rows - 1}
    assert (of(step, "setting"), step.collections[0].rows_after) == ((rows - 1, 0), 1)


def unlike_none(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    value.name = f"one of {key.id % 7}"
    return same("Cluster", key, value)


def test_of_rows_that_are_alike_one_stays_with_what_refers_to_it(copy_of: Stores, scratch: Path) -> None:
    """What refers to the others is left out, and is no fault."""
    store = copy_of(21)
    clusters = [row("cluster", v21.ClusterKey(id=5_000 + n), v21.ClusterValue(name=f"c{n}")) for n in range(700)]
    replicas = [
        row("cluster_replica", v21.ClusterReplicaKey(id=5_000 + n), v21.ClusterReplicaValue(cluster_id=5_000 + n))
        for n in range(700)
    ]
    store_rows(store, [*clusters, *replicas])
    present = rows_of(store)
    verdict = checked_directly(store, scratch, project_with(21, per_row("cluster", unlike_none)))
    (step,) = verdict.steps
    assert step.counts == {RowRule.UNIQUE: len(present["cluster"]) - 7}
    assert of(step, "cluster") == (len(present["cluster"]) - 7, 0)
    assert len(step.violations) == LISTED_MAX
    kept = {own.collection: own.rows_after for own in step.collections}
    assert (kept["cluster"], of(step, "cluster_replica")[0]) == (7, 0)
    assert kept["cluster_replica"] + step.left_out == len(present["cluster_replica"])
    assert 690 <= step.left_out < len(present["cluster_replica"])
    assert_whole(verdict)


def test_a_hundred_thousand_rows_that_refer_to_nothing_are_all_set_aside(copy_of: Stores, scratch: Path) -> None:
    """And the next step runs on what is left."""
    store, count = copy_of(20), 100_000
    referred = v20.ItemKey.FromString(rows_of(store)["item"][0][0]).id
    store_rows(
        store,
        [
            row("comment", v20.CommentKey(item_id=referred, column=1_000 + n), v20.CommentValue(comment="?"))
            for n in range(count)
        ],
    )
    comments = [v20.CommentKey.FromString(key) for key, _ in rows_of(store)["comment"]]
    of_items = sum(comment.HasField("item_id") for comment in comments)
    verdict = checked_directly(store, scratch, chain_with(20, retire("timestamp"), delete("item", everyone)))
    wrong, following = verdict.steps
    assert wrong.counts == {RowRule.REFERENCE: of_items}
    assert of_items > count
    assert len(wrong.violations) == LISTED_MAX
    assert of(wrong, "comment") == (of_items, 0)
    assert (following.name, following.outcome) == ("v21_to_v22", StepOutcome.OK)
    assert_whole(verdict)


def odd_only(batch: pa.RecordBatch) -> pa.RecordBatch:
    if pc.any(pc.equal(pc.bit_wise_and(batch["key"].field("id"), 1), 1)).as_py():
        raise LookupError("odd")
    return batch


def spoilt(key: Any, value: Any) -> Iterator[tuple[Message, Message]]:  # noqa: ANN401
    """An item, and its comment, of which the item cannot be written."""
    item, own = same("Item", key, value)
    yield item, own.FromString(own.SerializeToString() + b"\xa0\x06\x01")
    yield v22.CommentKey(item_id=key.id, column=999_999), v22.CommentValue(comment="new")


def test_rows_that_a_batch_cannot_take_are_all_found(copy_of: Stores, scratch: Path) -> None:
    """Each by itself, however many there are."""
    store = copy_of(21)
    store_rows(
        store,
        [row("cluster", v21.ClusterKey(id=5_001 + n), v21.ClusterValue(name=f"c{n}")) for n in range(1_000)],
    )
    clusters = [v21.ClusterKey.FromString(key).id for key, _ in rows_of(store)["cluster"]]
    odd = sum(number % 2 for number in clusters)
    verdict = checked_directly(store, scratch, project_with(21, columnar("cluster", odd_only)))
    (step,) = verdict.steps
    assert step.counts == {RowRule.CHANGE: odd}
    assert (of(step, "cluster")[0], odd > 5 * LISTED_MAX) == (odd, True)
    assert step.collections[0].rows_after == len(clusters) - odd
    assert_whole(verdict)


def test_what_is_made_beside_a_row_that_cannot_be_written_is_left_out(copy_of: Stores, scratch: Path) -> None:
    """It refers to what is not there, through no fault of its own."""
    store = copy_of(21)
    present = rows_of(store)
    verdict = checked_directly(store, scratch, project_with(21, per_row("item", spoilt, into=("comment",))))
    (step,) = verdict.steps
    items = len(present["item"])
    assert step.counts == {RowRule.ENCODE: items}
    assert (of(step, "item"), of(step, "comment")[0]) == ((items, 0), 0)
    assert of(step, "comment")[1] >= items
    assert_whole(verdict)


def but_one(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    if key.id.user == AGAIN:
        raise LookupError("no idea what to do")
    return same("Role", key, value)


def owned_by_the_new(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    value.owner_id.CopyFrom(v21.RoleId(user=AGAIN))
    return same("Database", key, value)


def test_what_refers_to_a_row_that_is_there_again_stays(copy_of: Stores, scratch: Path) -> None:
    """A row was set aside, and the step makes another of the same key."""
    store = copy_of(21)
    store_rows(store, [row("role", v21.RoleKey(id=v21.RoleId(user=AGAIN)), v21.RoleValue(name="again"))])
    verdict = checked_directly(
        store,
        scratch,
        project_with(
            21,
            per_row("role", but_one),
            insert("role", lambda: [(v22.RoleKey(id=v22.RoleId(user=AGAIN)), v22.RoleValue(name="again"))]),
            per_row("database", owned_by_the_new),
        ),
    )
    (step,) = verdict.steps
    assert (step.counts, step.left_out) == ({RowRule.CHANGE: 1}, 0)
    assert of(step, "database") == (0, 0)
    assert_whole(verdict)


def test_a_collection_that_is_left_behind_is_told_and_later_steps_run(copy_of: Stores, scratch: Path) -> None:
    """It is set aside as a whole."""
    store = copy_of(20)
    rows = len(rows_of(store)["timestamp"])
    wrong, following = checked_directly(store, scratch, chain_with(20, wire_compatible("role"))).steps
    assert wrong.counts == {RowRule.COLLECTION: 1}
    assert of(wrong, "timestamp") == (rows, 0)
    assert following.outcome is StepOutcome.OK


def raising(_batch: pa.RecordBatch) -> pa.RecordBatch:
    raise NameError("nobody wrote this")


def other_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.rename_columns(["key", "worth"])


def few_together(batch: pa.RecordBatch) -> pa.RecordBatch:
    if batch.num_rows > 1:
        raise ValueError("too many")
    return batch


def no_rows() -> list[Any]:
    raise LookupError("no rows")


@pytest.mark.parametrize(
    ("action", "what"),
    [
        (undecided("cluster"), "it does not say yet what happens to cluster"),
        (columnar("cluster", raising), "its change of cluster fails on no rows at all: NameError: nobody wrote this"),
        (columnar("cluster", other_columns), "its change of cluster fails on no rows at all: "),
        (columnar("database", few_together), "takes every row by itself, and fails on "),
        (insert("cluster", no_rows), "LookupError: no rows"),
    ],
)
def test_a_step_that_cannot_run_is_told_and_those_after_it_do_not_run(
    copy_of: Stores, scratch: Path, action: Action, what: str
) -> None:
    """What happened, why and what to do next; the steps before it are judged all the same."""
    verdict = checked_directly(copy_of(18), scratch, chain_with(19, action))
    assert [step.outcome for step in verdict.steps] == [
        StepOutcome.OK,
        StepOutcome.FAILED,
        StepOutcome.NOT_RUN,
        StepOutcome.NOT_RUN,
    ]
    error = verdict.steps[1].error
    assert error is not None
    assert what in error.what
    assert error.why
    assert error.next
    assert (verdict.ok, verdict.after) == (False, None)
    assert [step.name for step in verdict.steps][2:] == ["v20_to_v21", "v21_to_v22"]
    assert verdict.steps[2].summary


def test_an_exception_of_a_migration_names_its_file_and_line(copy_of: Stores, scratch: Path) -> None:
    """Of a row, of a batch, and of a function that makes rows."""
    store = copy_of(21)
    store_rows(store, [row("role", v21.RoleKey(id=v21.RoleId(user=AGAIN)), v21.RoleValue(name="again"))])
    for action, function in (
        (per_row("role", but_one), but_one),
        (columnar("cluster", odd_only), odd_only),
        (columnar("cluster", raising), raising),
        (insert("cluster", no_rows), no_rows),
    ):
        (step,) = checked_directly(store, scratch, project_with(21, action)).steps
        told = step.error.what if step.error else step.violations[0].found
        first = function.__code__.co_firstlineno
        assert any(f"(test_wrong_steps.py, line {first + n})" in told for n in (1, 2)), told


def test_an_exception_of_this_projects_own_migration_names_its_file(copy_of: Stores, scratch: Path) -> None:
    """Though it is in the same package as the engine."""
    store = copy_of(18)
    comments = [v18.ColumnComment(position=1, comment="?")] * 2
    value = v18.ItemValue(name="x", schema_id=1, owner_id=v18.RoleId(system=2), column_comments=comments)
    store_rows(store, [row("item", v18.ItemKey(id=70_000), value)])
    step = checked_directly(store, scratch, replace(PROJECT, current=19)).steps[0]
    assert "two comments on column 1 (v18_to_v19.py, line " in str(step.violations)


def keys_alone(frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"setting": frames["setting"].select("key")}


def texts_for_values(frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"setting": frames["setting"].selectExpr("key", "'text' as value")}


def failing_on_spark(frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"setting": frames["setting"].where("raise_error('broken') is null")}


def some_null(frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"setting": frames["setting"].selectExpr("key", "if(key.name < 'odd 050', null, value) as value")}


def swapped(frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    """One row changed, one gone, one new and one twice."""
    kept = frames["setting"].where("key.name != 'odd 001'")
    changed = kept.selectExpr("key", "named_struct('value', if(key.name = 'odd 002', 'other', value.value)) as value")
    new = frames["setting"].where("key.name = 'odd 003'")
    renamed = new.selectExpr("named_struct('name', 'new') as key", "value")
    return {"setting": changed.unionAll(renamed).unionAll(new)}


@pytest.mark.spark
def test_what_a_frame_makes_is_told_row_by_row_or_as_its_error(
    copy_of: Stores, scratch: Path, spark: SparkSession
) -> None:
    """Columns that are none are the step's error, a value that is none is its row's; the others are counted by key."""
    store = copy_of(21)
    store_rows(
        store, [row("setting", v21.SettingKey(name=f"odd {n:03}"), v21.SettingValue(value="?")) for n in range(120)]
    )
    present = len(rows_of(store)["setting"])
    for change, what in (
        (keys_alone, "value"),
        (texts_for_values, "its frame makes no rows of setting: "),
        (failing_on_spark, "broken"),
    ):
        wrong = frame(change, reads=("setting",), writes=("setting",))
        (step,) = checked(store, scratch, spark, project_with(21, wrong)).steps
        assert step.error is not None
        assert what in step.error.what, change.__name__
    counting = frame(swapped, reads=("setting",), writes=("setting",))
    (step,) = checked(store, scratch, spark, project_with(21, counting)).steps
    (own,) = step.collections
    assert (own.changed, own.inserted, own.deleted, own.set_aside) == (1, 2, 1, 1)
    assert step.counts == {RowRule.KEY: 1}
    nulls = frame(some_null, reads=("setting",), writes=("setting",))
    (step,) = checked(store, scratch, spark, project_with(21, nulls)).steps
    (own,) = step.collections
    assert step.counts[RowRule.ENCODE] == own.set_aside
    assert own.rows_after == present - own.set_aside
    assert 50 <= own.set_aside < present
    assert (own.inserted, own.deleted) == (0, 0)
    assert {violation.key for violation in step.violations} >= {f'{{"name": "odd {n:03}"}}' for n in range(50)}
