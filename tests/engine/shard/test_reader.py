"""What a shard promises its readers, on every log: snapshots, feeds, waiting, and when they are fenced."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.shard.schema import Column, Schema
from catalog.engine.shard.shard import Shard
from catalog.errors import (
    MissingFileError,
    NoSuchVersionError,
    ReaderFencedError,
    RetiredError,
    TableTooLargeError,
    TimedOutError,
    UnfitSchemaError,
)
from tests.engine.log.places import MemoryPlace, Place
from tests.engine.shard.shards import FENCE, FIRST, ID, NAME, SIZE, append, evolve, live_rows, made, rows

LOOSE_ID = Column(0, "id", pa.int64())
NOTE = Column(3, "note", pa.string())
ADDED = Schema.of(ID, NAME, SIZE, NOTE)
RELAXED = Schema.of(LOOSE_ID, NAME, SIZE)
DELETED = Schema.of(ID, SIZE)


def test_a_snapshot_shows_the_rows_at_a_ts(place: Place) -> None:
    """Each ts has its own, for ever, whatever happens afterwards; before the first schema there are none."""
    shard = made(place, None)
    evolve(shard, FIRST)
    first = append(shard, FIRST, (1, "a", 10))
    second = append(shard, FIRST, (2, "b", 20))
    third = append(shard, FIRST, (1, "a", 10), diff=-1)
    shown = [live_rows(shard, FIRST, ts) for ts in (0, 1, first, second, third)]
    assert shown == [[], [], [(1, "a", 10)], [(1, "a", 10), (2, "b", 20)], [(2, "b", 20)]]


def test_a_reader_of_the_latest_schema_is_not_fenced(place: Place) -> None:
    """The first consequence: migrating to it does nothing, and never fails."""
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    for latest in (ADDED, Schema.of(LOOSE_ID, NAME, SIZE, NOTE), Schema.of(LOOSE_ID, SIZE, NOTE)):
        evolve(shard, latest)
        assert live_rows(shard, latest)[0][0] == 1
        assert list(shard.reader(latest).listen(0))


@pytest.mark.parametrize(
    "change",
    [Schema.of(ID, SIZE), Schema.of(ID, NAME), Schema.of(LOOSE_ID, SIZE), Schema.of(ID, SIZE, NOTE), Schema.of(SIZE)],
)
def test_a_projection_is_not_fenced_by_what_it_leaves_out(place: Place, change: Schema) -> None:
    """The second consequence: a reader of some columns reads on, whatever becomes of the others."""
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    kept = {column for column in change.columns if column in FIRST.columns}
    projections = [FIRST.project(column.name) for column in FIRST.columns if column in kept]
    readers = [shard.reader(projection) for projection in projections]
    before = [rows(reader.snapshot()) for reader in readers]
    evolve(shard, change)
    assert [rows(reader.snapshot()) for reader in readers] == before
    assert [rows(happened) for reader in readers for _, happened in reader.listen(0)] == before


def test_a_reader_of_a_column_that_was_made_nullable_is_fenced(place: Place) -> None:
    """The third consequence: it could not say what a null is."""
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    reader = shard.reader(FIRST.project("id", "size"))
    evolve(shard, RELAXED)
    with pytest.raises(ReaderFencedError, match="id: a nullable field stays nullable") as caught:
        reader.snapshot()
    assert (caught.value.schema_id, caught.value.field) == (1, "id")
    assert live_rows(shard, FIRST.project("name", "size")) == [("a", 10)]


def test_a_reader_of_a_column_that_was_deleted_is_fenced(place: Place) -> None:
    """The fourth consequence: it would make the column anew, all nulls."""
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    reader = shard.reader(FIRST.project("name"))
    evolve(shard, DELETED)
    with pytest.raises(ReaderFencedError, match="name: a deleted field is never used again") as caught:
        reader.snapshot()
    assert (caught.value.schema_id, caught.value.field) == (1, "name")


def test_a_reader_is_not_fenced_by_an_addition(place: Place) -> None:
    """It reads what it knows of; a reader that is ahead of the shard reads nulls."""
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    assert live_rows(shard, ADDED) == [(1, "a", 10, None)]
    evolve(shard, ADDED)
    append(shard, ADDED, (2, "b", 20, "n"))
    assert live_rows(shard, FIRST) == [(1, "a", 10), (2, "b", 20)]


def test_a_reader_that_was_ahead_is_fenced_if_the_column_came_otherwise(place: Place) -> None:
    """Two may have meant different columns by one id."""
    shard = made(place)
    reader = shard.reader(ADDED)
    assert rows(reader.snapshot()) == []
    evolve(shard, Schema.of(ID, NAME, SIZE, Column(3, "note", pa.int8())))
    with pytest.raises(ReaderFencedError, match="note: a field keeps its type"):
        reader.snapshot()


def test_a_schema_is_checked_in_the_state_that_is_read(place: Place) -> None:
    """What was readable at a ts is so for as long as it is retained: a read has one answer."""
    shard = made(place)
    ts = append(shard, FIRST, (1, "a", 10))
    evolve(shard, DELETED)
    reader = shard.reader(FIRST)
    assert rows(reader.snapshot(ts)) == [(1, "a", 10)]
    with pytest.raises(ReaderFencedError):
        reader.snapshot(ts + 1)


def test_a_snapshot_stays_what_it_was_when_the_schema_evolves(place: Place) -> None:
    """It is of one state, and is read to its end."""
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    snapshot = shard.reader(FIRST).snapshot()
    evolve(shard, DELETED)
    append(shard, DELETED, (2, 20))
    shard.compact()
    assert rows(snapshot) == [(1, "a", 10)]


def test_a_feed_has_every_commit_after_a_ts(place: Place) -> None:
    """In order, with what came and went; a compaction is none."""
    shard = made(place)
    first = append(shard, FIRST, (1, "a", 10))
    second = append(shard, FIRST, (1, "a", 10), diff=-1)
    shard.compact()
    third = append(shard, FIRST, (3, "c", 30))
    found = [(ts, happened.to_pylist()) for ts, happened in shard.reader(FIRST.project("id")).listen(first)]
    assert found == [(second, [{"id": 1, "_diff": -1}]), (third, [{"id": 3, "_diff": 1}])]
    assert [ts for ts, _ in shard.reader(FIRST).listen(0, until=second)] == [first, second]
    assert list(shard.reader(FIRST).listen(third)) == []


def test_a_feed_looks_again_whenever_the_schema_evolves(place: Place) -> None:
    """All that was committed before is told, then the error comes: never rows of a shape nobody asked for."""
    shard = made(place)
    first = append(shard, FIRST, (1, "a", 10))
    evolve(shard, ADDED)
    second = append(shard, ADDED, (2, "b", 20, "n"))
    evolve(shard, Schema.of(ID, SIZE, NOTE))
    append(shard, Schema.of(ID, SIZE, NOTE), (3, 30, "n"))
    feed = shard.reader(FIRST).listen(0)
    assert [(ts, rows(happened)) for ts, happened in (next(feed), next(feed))] == [
        (first, [(1, "a", 10)]),
        (second, [(2, "b", 20)]),
    ]
    with pytest.raises(ReaderFencedError, match="name"):
        next(feed)
    with pytest.raises(ReaderFencedError):
        list(shard.reader(FIRST).listen(shard.ts))
    assert [rows(happened) for _, happened in shard.reader(FIRST.project("id", "size")).listen(0)] == [
        [(1, 10)],
        [(2, 20)],
        [(3, 30)],
    ]


def test_a_ts_that_is_yet_to_come_can_be_waited_for() -> None:
    """The reader looks again until it is there; here somebody commits while it pauses."""
    place = MemoryPlace()
    shard, writer = made(place), Shard.open(place.open(), FENCE)
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        append(writer, FIRST, (len(waited), "a", 10))

    shard.pause = pause
    wanted = shard.ts + 3
    assert len(rows(shard.reader(FIRST).snapshot(wanted, wait_s=60))) == 3
    assert len(waited) == 3
    assert [ts for ts, _ in shard.reader(FIRST).listen(wanted, until=wanted + 2, wait_s=60)] == [wanted + 1, wanted + 2]


def test_waiting_has_a_deadline_and_not_waiting_says_what_is_there() -> None:
    """The clock is asked before each pause, and no pause goes beyond it."""
    shard = made(MemoryPlace())
    now = [0.0]
    shard.clock, shard.pause = lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds)
    with pytest.raises(TimedOutError, match="ts 9 of memory:"):
        shard.reader(FIRST).snapshot(9, wait_s=1)
    assert now[0] == pytest.approx(1)
    with pytest.raises(NoSuchVersionError, match="the newest ts that can be read is 1"):
        shard.reader(FIRST).snapshot(9)
    with pytest.raises(NoSuchVersionError):
        list(shard.reader(FIRST).listen(9))


def test_what_is_no_longer_retained_is_refused_by_name(place: Place) -> None:
    """From the frontier on every ts reads as before; a snapshot that was kept for too long says so too."""
    shard = made(place)
    first = append(shard, FIRST, (1, "a", 10))
    kept = shard.reader(FIRST).snapshot(first)
    append(shard, FIRST, (2, "b", 20))
    shard.compact()
    place.wait(10_000)
    ts = append(shard, FIRST, (3, "c", 30))
    before = live_rows(shard, FIRST, ts - 1)
    clean(place.open(), shard.state, Policy(retention_ms=5_000, orphan_ms=0))
    assert live_rows(shard, FIRST, ts - 1) == before
    for read in (
        lambda: shard.reader(FIRST).snapshot(first),
        lambda: list(shard.reader(FIRST).listen(first)),
        kept.table,
    ):
        with pytest.raises(RetiredError, match=f"the earliest ts that can be read is {ts - 1}"):
            read()


@pytest.mark.slow
def test_rows_beyond_what_a_table_can_hold_are_read_by_batches() -> None:
    """A batch has 64 MiB at most; a table of more than 2 GiB is refused and never cut short."""
    schema = Schema.of(ID, Column(1, "text", pa.binary()))
    shard = made(MemoryPlace(), schema)
    append(shard, schema, *((number, b"x" * 2**20) for number in range(100)))
    snapshot = shard.reader(schema).snapshot()
    assert sorted(batch.num_rows for batch in snapshot.batches()) == [37, 63]
    assert all(batch.nbytes <= 64 * 2**20 for batch in snapshot.batches())
    assert snapshot.table().num_rows == 100
    with pytest.raises(TableTooLargeError):
        replace(snapshot, pieces=snapshot.pieces * 21).table()


def test_a_lost_file_is_damage() -> None:
    """A retained ts whose rows are not there is never read as if it had none."""
    place = MemoryPlace()
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    snapshot = shard.reader(FIRST).snapshot()
    place.memory.files.clear()
    with pytest.raises(MissingFileError):
        snapshot.table()


def test_a_projection_needs_columns_that_are_there() -> None:
    """A slip of the pen is told at once."""
    with pytest.raises(UnfitSchemaError, match="nam"):
        FIRST.project("nam")
    assert FIRST.project("size", "id") == Schema.of(ID, SIZE)


def test_a_reader_can_ask_whether_order_ever_changed(place: Place) -> None:
    """For the shard by its history, for a reader by what its columns have been compared by."""
    shard = made(place)
    assert not shard.order_ever_changed()
    evolve(shard, ADDED)
    evolve(shard, FIRST)
    assert not shard.order_ever_changed()
    evolve(shard, DELETED)
    assert shard.order_ever_changed()
    assert not shard.reader(Schema.of(ID)).order_ever_changed()
    assert shard.reader(Schema.of(SIZE)).order_ever_changed()
