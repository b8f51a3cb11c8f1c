"""Collections that a frame reads: nothing of a stored row is lost, however its rows reach Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from catalog.actions import frame
from catalog.engine.log.protocol import AppTxn
from catalog.engine.migrate import frame_input
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.plan import plan_step
from catalog.engine.migrate.step_execution import execute
from catalog.engine.migrate.step_progress import StepProgress
from catalog.engine.migrate.violations import RowRule
from catalog.engine.spark import collection_frame
from catalog.engine.spark.datasource import dataframe
from catalog.engine.spark.jobs import SparkJobs
from catalog.engine.spark.session import local_session
from catalog.engine.stash.registry import encode
from catalog.errors import CorruptFileError, StepRefusedError
from catalog.events import ignore
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import append, findings_of, lead, open_log, project_with, rows_of, state_of, version_of
from tests.engine.migrate.test_wrong_migrations import UNKNOWN

pytestmark = pytest.mark.spark
Stores = Callable[[int], Path]
Frames = Mapping[str, DataFrame]
old: Any = PROJECT.types(20)
READ = ("item", "schema", "comment")
"""By the step from version 20."""
BROKEN = b"\xff\xff"


@pytest.fixture
def spark() -> SparkSession:
    return local_session(settings={"spark.master": "local[2]"})


@pytest.fixture(params=["local", "tasks"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which rows reach Spark."""
    if request.param == "tasks":
        by_tasks(monkeypatch)


def by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks read every collection, a row group each."""
    monkeypatch.setattr(collection_frame, "LOCAL_BYTES_MAX", 0)
    monkeypatch.setattr(frame_input, "PIECE_BYTES", 1)
    monkeypatch.setattr("catalog.engine.log.data_files._GROUP_ROWS_MAX", 50)


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize(
    ("collection", "value", "rule"),
    [
        ("schema", encode(old.SchemaValue(name="x")) + UNKNOWN, RowRule.UNKNOWN_FIELDS),
        ("item", encode(old.ItemValue(name="x")) + UNKNOWN, RowRule.UNKNOWN_FIELDS),
        ("comment", BROKEN, RowRule.DECODE),
    ],
)
def test_a_stored_row_that_would_lose_something_is_refused(
    copy_of: Stores, collection: str, value: bytes, rule: RowRule
) -> None:
    """Also if the frame only joins it, or would have deleted it."""
    store = copy_of(20)
    key = {
        "schema": old.SchemaKey(id=98_765),
        "item": old.ItemKey(id=98_765),
        "comment": old.CommentKey(item_id=98_765),
    }
    append(store, collection, (encode(key[collection]), value, 1))
    with pytest.raises(StepRefusedError) as caught:
        upgrade(lead(store), until=21)
    assert caught.value.rule == rule
    assert f"{collection} {{" in caught.value.what
    assert "98765" in caught.value.what
    assert version_of(store) == 20
    assert state_of(store).app_txns[AppTxn.RUNNING_STEP] == 0


@pytest.mark.usefixtures("_way")
def test_a_check_finds_every_such_row_at_once(copy_of: Stores) -> None:
    """So that they are set aside together, and the step runs again without them."""
    store = copy_of(20)
    schemas = [encode(old.SchemaKey(id=number)) for number in (98_765, 98_766)]
    append(store, "schema", *((key, UNKNOWN, 1) for key in schemas))
    comment = encode(old.CommentKey(item_id=98_765))
    append(store, "comment", (comment, BROKEN, 1))
    runner = lead(store)
    plan = plan_step(PROJECT, runner.journal.state, 20)
    result = execute(runner.step_context(plan, StepProgress(ignore, plan), is_thorough=True))
    assert result.bad_stored.keys == {"schema": {*schemas}, "comment": {comment}}
    assert result.bad_stored.violations.counts == {RowRule.UNKNOWN_FIELDS: 2, RowRule.DECODE: 1}
    assert not result.bad_new


def test_rows_and_files_are_the_same_whoever_reads(copy_of: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Orphans of the base and of the tail go, with their comments, and audit rows have the same ids."""
    stores = copy_of(20), copy_of(20)
    for store in stores:
        items = [old.ItemKey(id=number) for number in (98_765, 98_766, 98_767)]
        value = old.ItemValue(name="orphan", schema_id=98_765)
        append(store, "item", *((encode(key), encode(value), 1) for key in items))
        append(store, "comment", (encode(old.CommentKey(item_id=98_765)), encode(old.CommentValue(comment="?")), 1))
        append(store, "item", (encode(items[2]), encode(value), -1))
    upgrade(lead(stores[0]), until=21)
    by_tasks(monkeypatch)
    upgrade(lead(stores[1]), until=21)
    assert rows_of(stores[0]) == rows_of(stores[1])
    audit = [PROJECT.types(21).AuditLogValue.FromString(value) for _, value in rows_of(stores[0])["audit_log"]]
    assert [row.object_id for row in audit if row.object_name == "orphan"] == ["98765", "98766"]
    assert findings_of(stores[1]) == []


@pytest.mark.usefixtures("_way")
def test_a_migration_sees_the_columns_of_the_data_source(copy_of: Stores, spark: SparkSession) -> None:
    """Names, types, nullability and rows; its frames, and the session that made them, can be used as ever."""
    store, names = copy_of(21), ("item", "role", "storage_metadata", "setting")
    seen: dict[str, tuple[StructType, list[str]]] = {}

    def look(frames: Frames) -> Frames:
        seen.update({name: (own.schema, sorted(map(str, own.collect()))) for name, own in frames.items()})
        again = frames["setting"].sparkSession.range(3).count()
        assert again == 3
        return {"setting": frames["setting"]}

    before = spark.conf.get("spark.sql.shuffle.partitions"), spark.conf.get("spark.sql.adaptive.enabled")
    expected = {name: dataframe(spark, str(store), {}, name, project=PROJECT.name) for name in names}
    runner = lead(store, project_with(21, frame(look, reads=names, writes=("setting",))))
    runner.jobs = SparkJobs(lambda: spark)
    wanted = {name: (own.schema, sorted(map(str, own.collect()))) for name, own in expected.items()}
    upgrade(runner)
    assert seen == wanted
    assert (spark.conf.get("spark.sql.shuffle.partitions"), spark.conf.get("spark.sql.adaptive.enabled")) == before
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0  # noqa: SLF001 - all that Spark still holds


@pytest.mark.usefixtures("_way")
def test_a_damaged_file_is_told_as_itself(copy_of: Stores) -> None:
    """The driver and the tasks both raise the error of the file."""
    store = copy_of(20)
    file = next(file for file in state_of(store).files.values() if file.collection == "comment")
    path = Path(open_log(store).uri) / file.path
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(CorruptFileError):
        upgrade(lead(store), until=21)
    assert version_of(store) == 20
