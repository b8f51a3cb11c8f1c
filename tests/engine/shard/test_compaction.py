"""Compaction, on every log: no reader sees a difference, and what it leaves is in order."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from catalog.engine.log.protocol import FaultPoint, FileKind, Operation
from catalog.engine.shard.batches import Batch, read_batch
from catalog.engine.shard.compaction import CompactionReason, RunPolicy
from catalog.engine.shard.schema import Column, Schema
from catalog.engine.shard.shard import Shard
from tests.engine.log.places import Crash, CrashAt, MemoryPlace, Place
from tests.engine.shard.shards import FENCE, FIRST, ID, NAME, SIZE, append, evolve, live_rows, made

NOTE = Column(3, "note", pa.string())
ADDED = Schema.of(ID, NAME, SIZE, NOTE)
DELETED = Schema.of(ID, SIZE, NOTE)
NAMELESS = Schema.of(ID, SIZE)
SMALL = 300
"""Bytes of a batch that has only a few rows."""


def grown(place: Place) -> tuple[Shard, dict[int, tuple[Schema, list[tuple[Any, ...]]]]]:
    """A shard with batches from before and after each kind of evolution, and what it shows at each ts."""
    shard = made(place)
    shown: dict[int, tuple[Schema, list[tuple[Any, ...]]]] = {}
    latest = FIRST

    def note() -> None:
        shown[shard.ts] = latest, live_rows(shard, latest)

    append(shard, FIRST, (1, "a", 10), (2, "b", 20))
    note()
    append(shard, FIRST, (3, "c", 30), (3, "c", 30))
    note()
    latest = ADDED
    evolve(shard, ADDED)
    note()
    append(shard, ADDED, (2, "b", 20, None), diff=-1)
    note()
    append(shard, ADDED, (4, "d", 40, "n"))
    note()
    latest = DELETED
    evolve(shard, DELETED)
    note()
    append(shard, DELETED, (1, 10, None), (1, 10, None))
    note()
    return shard, shown


def stored(shard: Shard) -> list[tuple[Batch, pa.RecordBatch]]:
    """The batches as they are, in order."""
    return [(batch, read_batch(shard.log, batch)) for batch in shard.replica.batches(shard.replica.catch_up())]


def test_batches_from_before_and_after_migrations_become_one_of_the_latest_schema(place: Place) -> None:
    """In order, equal rows added up, what adds up to nothing gone."""
    shard, _ = grown(place)
    merged = shard.compact()
    assert merged is not None
    assert (merged.schema_id, merged.unordered) == (2, 0)
    ((batch, rows),) = stored(shard)
    assert (batch.run.schema_id, batch.file.kind) == (2, FileKind.BASE)
    assert rows.schema.names == ["0", "2", "3", "diff"]
    assert [tuple(row.values()) for row in rows.to_pylist()] == [(1, 10, None, 3), (3, 30, None, 2), (4, 40, "n", 1)]


def test_no_reader_sees_a_difference(place: Place) -> None:
    """Every ts reads as it did, with the schema of its time and with projections, before and after."""
    shard, shown = grown(place)
    newest = live_rows(shard, DELETED)
    projected = live_rows(shard, DELETED.project("size"))
    feed = [(ts, table.to_pylist()) for ts, table in shard.reader(DELETED).listen(0)]
    for _ in range(2):
        shard.compact()
        assert live_rows(shard, DELETED) == newest
        assert live_rows(shard, DELETED.project("size")) == projected
        assert {ts: (schema, live_rows(shard, schema, ts)) for ts, (schema, _) in shown.items()} == shown
        assert [(ts, table.to_pylist()) for ts, table in shard.reader(DELETED).listen(0)] == feed
    assert live_rows(shard, DELETED.project("id")) == [(1,), (1,), (1,), (3,), (3,), (4,)]


def test_a_compacted_shard_is_left_alone(place: Place) -> None:
    """Nothing to gain, no commit; neither on a shard without rows."""
    shard, _ = grown(place)
    assert made(MemoryPlace()).compact() is None
    shard.compact()
    before = shard.ts
    assert (shard.due(), shard.compact(), shard.ts) == (None, None, before)


def test_rows_that_all_went_leave_nothing(place: Place) -> None:
    """Batches that add up to nothing are removed, and none is made."""
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    append(shard, FIRST, (1, "a", 10), diff=-1)
    shard.compact()
    assert stored(shard) == []
    assert live_rows(shard, FIRST) == []


def test_many_runs_are_due_and_are_merged_a_few_at_a_time(place: Place) -> None:
    """The smallest first, until they are one."""
    shard = made(place)
    shard.compaction = RunPolicy(runs_max=4, fan_in_max=3)
    for number in range(5):
        assert shard.due() is None
        append(shard, FIRST, (number, "a", 10))
    assert shard.due() is CompactionReason.SCATTERED
    merged = shard.compact()
    assert merged is not None
    assert merged.runs == 3
    assert shard.due() is None
    assert len({batch.run.id for batch, _ in stored(shard)}) == 3


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_many_batches_are_merged_in_one_pass(seed: int) -> None:
    """Whatever comes and goes at the edges of batches, runs are merged whole: in order, each row once, bounded."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    shard = made(MemoryPlace())
    shard.batch_bytes_max, shard.compaction = SMALL, RunPolicy(fan_in_max=100)
    left: dict[tuple[Any, ...], int] = {}
    for _ in range(4):
        for diff in (1, -1):
            there = [row for row, found in left.items() for _ in range(found)]
            new = [(chance.randrange(60), chance.choice("ab"), chance.randrange(2)) for _ in range(60)]
            own = new if diff > 0 else chance.sample(there, len(there) // 2)
            append(shard, FIRST, *own, diff=diff)
            for row in own:
                left[row] = left.get(row, 0) + diff
        shard.compact()
    expected = sorted((*row, diff) for row, diff in left.items() if diff)
    found = stored(shard)
    assert len(found) > 3
    assert len({batch.run.id for batch, _ in found}) == 1
    assert [tuple(row.values()) for _, rows in found for row in rows.to_pylist()] == expected
    assert all(rows.nbytes <= SMALL for _, rows in found)


def test_a_run_goes_on_after_all_that_is_held_has_cancelled_out() -> None:
    """What a run begins with went again, batch for batch; what it goes on with is still there."""
    shard = made(MemoryPlace())
    shard.batch_bytes_max = SMALL
    append(shard, FIRST, *((number, "a", 1) for number in range(60)))
    while shard.compact():
        pass
    first = stored(shard)[0][1].num_rows
    assert first < 30
    append(shard, FIRST, *((number, "a", 1) for number in range(first)), diff=-1)
    shard.compact()
    assert [row[0] for row in live_rows(shard, FIRST)] == list(range(first, 60))


def test_rows_that_became_equal_are_one_across_batches() -> None:
    """Deleting the last column keeps a run in order, and leaves one row at the end of a batch and in the next."""
    shard = made(MemoryPlace())
    shard.batch_bytes_max = SMALL
    append(shard, FIRST, *((number // 40, "a", number) for number in range(80)))
    while shard.compact():
        pass
    assert len(stored(shard)) > 3
    evolve(shard, Schema.of(ID, NAME))
    merged = shard.compact()
    assert merged is not None
    assert merged.unordered == 0
    ((_, rows),) = stored(shard)
    assert [tuple(row.values()) for row in rows.to_pylist()] == [(0, "a", 40), (1, "a", 40)]


def unordered_run(place: Place) -> Shard:
    """A run of several batches, whose first column but one is deleted: by the rest it is not in order."""
    shard = made(place, Schema.of(NAME, ID, SIZE))
    shard.batch_bytes_max = SMALL
    append(shard, Schema.of(NAME, ID, SIZE), *((chr(97 + 7 * n % 26), n, n % 3) for n in range(60)))
    shard.compact()
    evolve(shard, NAMELESS)
    return shard


def test_a_run_that_a_deletion_left_out_of_order_is_noted_and_put_in_order_next(place: Place) -> None:
    """In the metadata of each batch, so that anyone can tell; until then and afterwards rows read the same."""
    shard = unordered_run(place)
    before = live_rows(shard, NAMELESS)
    assert shard.order_ever_changed()
    assert shard.due() is None
    merged = shard.compact()
    assert merged is not None
    assert merged.unordered > 1
    assert all(batch.run.unordered for batch, _ in stored(shard))
    other = Shard.open(place.open(), FENCE)
    assert (other.due(), live_rows(other, NAMELESS)) == (CompactionReason.UNORDERED, before)
    while shard.due():
        shard.compact()
        assert live_rows(shard, NAMELESS) == before
    shard.compact()
    found = stored(shard)
    assert not any(batch.run.unordered for batch, _ in found)
    assert [tuple(row.values())[:-1] for _, rows in found for row in rows.to_pylist()] == before


def test_a_run_of_one_batch_is_sorted_at_once() -> None:
    """It is held as a whole anyway."""
    shard = made(MemoryPlace(), Schema.of(NAME, ID, SIZE))
    append(shard, Schema.of(NAME, ID, SIZE), ("a", 2, 0), ("b", 1, 0))
    evolve(shard, NAMELESS)
    merged = shard.compact()
    assert merged is not None
    assert merged.unordered == 0
    ((batch, rows),) = stored(shard)
    assert not batch.run.unordered
    assert rows.column("0").to_pylist() == [1, 2]


def test_a_compaction_is_of_the_schema_that_was_the_latest_when_it_was_asked_for() -> None:
    """What evolves while it works is taken up by the next; what is written meanwhile stays beside it."""
    place = MemoryPlace()
    append(made(place), FIRST, (1, "a", 10))
    other = Shard.open(place.open(), FENCE)
    append(other, FIRST, (2, "b", 20))

    def meanwhile() -> None:
        evolve(other, ADDED)
        append(other, ADDED, (3, "c", 30, "n"))

    shard = Shard.open(place.open(Once(FaultPoint.COMMIT_BEFORE_LOG, meanwhile)), FENCE)
    merged = shard.compact()
    assert merged is not None
    assert merged.schema_id == 0
    assert sorted(batch.run.schema_id for batch, _ in stored(shard)) == [0, 1]
    assert live_rows(shard, ADDED) == [(1, "a", 10, None), (2, "b", 20, None), (3, "c", 30, "n")]
    shard.compact()
    assert [batch.run.schema_id for batch, _ in stored(shard)] == [1]


def test_of_two_compactions_one_wins_and_the_other_leaves_nothing() -> None:
    """Each removes exactly what it read, so no row is there twice; what the loser wrote is deleted."""
    place = MemoryPlace()
    append(made(place), FIRST, (1, "a", 10))
    other = Shard.open(place.open(), FENCE)
    append(other, FIRST, (2, "b", 20))
    shard = Shard.open(place.open(Once(FaultPoint.COMMIT_BEFORE_LOG, other.compact)), FENCE)
    assert shard.compact() is None
    assert live_rows(shard, FIRST) == [(1, "a", 10), (2, "b", 20)]
    operations = [place.memory.commits[version].operation for version in sorted(place.memory.commits)]
    assert operations.count(Operation.CONSOLIDATE) == 1
    committed = {file.path for commit in place.memory.commits.values() for file in commit.adds}
    assert set(place.memory.files) == committed


@pytest.mark.parametrize(
    "point", [FaultPoint.WRITE_AFTER_FILE, FaultPoint.COMMIT_BEFORE_LOG, FaultPoint.COMMIT_AFTER_LOG]
)
def test_a_crash_changes_no_row(place: Place, point: FaultPoint) -> None:
    """Stopped anywhere, a compaction happened or did not."""
    shard, shown = grown(place)
    newest = live_rows(shard, DELETED)
    with pytest.raises(Crash):
        Shard.open(place.open(CrashAt(point)), FENCE).compact()
    after = Shard.open(place.open(), FENCE)
    assert live_rows(after, DELETED) == newest
    after.compact()
    assert live_rows(after, DELETED) == newest
    assert {ts: (schema, live_rows(after, schema, ts)) for ts, (schema, _) in shown.items()} == shown


class Once:
    """Do something the first time that a point is passed."""

    def __init__(self, point: FaultPoint, act: Callable[[], object]) -> None:
        self.point, self.act = point, act
        self.done = False

    def __call__(self, point: FaultPoint) -> None:
        if point is self.point and not self.done:
            self.done = True
            self.act()
