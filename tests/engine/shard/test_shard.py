"""What a shard promises its writers, on every log: the schema sequence, batches, columns by id, the end."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from catalog.engine.log.protocol import FaultPoint, Operation
from catalog.engine.shard.schema import Column, Schema, SchemaId
from catalog.engine.shard.schema_rules import EvolutionRule, Incompatible
from catalog.engine.shard.shard import ExpectedMismatch, Ok, Shard
from catalog.engine.storage.layout import new_shard_id, shard_uri
from catalog.errors import (
    ConflictError,
    NoStoreError,
    ShardFinalizedError,
    UnfitColumnError,
    UnfitSchemaError,
    WriterSchemaError,
)
from tests.engine.log.places import Crash, CrashAt, MemoryPlace, Place
from tests.engine.shard.shards import FENCE, FIRST, ID, NAME, SIZE, append, evolve, live_rows, made, table


def test_the_first_schema_is_set_and_the_next_follow_in_order(place: Place) -> None:
    """Ids count up from 0, and every process reads the same sequence."""
    shard = made(place, None)
    assert shard.latest() is None
    schemas = [FIRST, Schema.of(ID, NAME), Schema.of(ID, NAME, Column(3, "note", pa.string()))]
    assert shard.compare_and_evolve_schema(None, schemas[0]) == Ok(SchemaId(0))
    assert shard.compare_and_evolve_schema(SchemaId(0), schemas[1]) == Ok(SchemaId(1))
    assert shard.compare_and_evolve_schema(SchemaId(1), schemas[2]) == Ok(SchemaId(2))
    for one in (shard, Shard.open(place.open(), FENCE)):
        assert [(found.id, found.schema) for found in one.sequence()] == list(enumerate(schemas))


def test_evolving_is_one_commit_and_rewrites_nothing(place: Place) -> None:
    """The commit adds one file, of the collection of schemas, and removes none."""
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    before = shard.ts
    evolve(shard, Schema.of(ID, SIZE))
    assert shard.ts == before + 1
    commit = place.open().commit(before + 1)
    assert [file.collection for file in commit.adds] == ["schema"]
    assert (commit.operation, commit.removed_paths) == (Operation.TRANSACTION, ())


def test_the_latest_schema_again_is_ok_without_a_commit(place: Place) -> None:
    """Whatever was expected: the wish is fulfilled."""
    shard = made(place)
    before = shard.ts
    for expected in (None, SchemaId(0), SchemaId(7)):
        assert shard.compare_and_evolve_schema(expected, FIRST) == Ok(SchemaId(0))
    assert shard.ts == before


def test_another_latest_than_expected_is_told_and_nothing_changes(place: Place) -> None:
    """The answer has the latest id and schema, so that the caller can decide."""
    shard = made(place)
    assert shard.compare_and_evolve_schema(None, Schema.of(ID)) == ExpectedMismatch(SchemaId(0), FIRST)
    assert shard.compare_and_evolve_schema(SchemaId(1), Schema.of(ID)) == ExpectedMismatch(SchemaId(0), FIRST)
    assert made(place, None).sequence()[-1].schema == FIRST


def test_a_mismatch_on_an_empty_sequence_has_no_schema(place: Place) -> None:
    """Whoever expected one is told that there is none."""
    assert made(place, None).compare_and_evolve_schema(SchemaId(0), FIRST) == ExpectedMismatch(None, None)


def test_an_incompatible_schema_is_refused_by_the_name_of_its_column(place: Place) -> None:
    """People know columns by name, whatever they are called inside."""
    shard = made(place)
    before = shard.ts
    reason = shard.compare_and_evolve_schema(SchemaId(0), Schema.of(ID, Column(1, "title", pa.binary()), SIZE))
    assert isinstance(reason, Incompatible)
    assert reason.why == "title: a field keeps its type, from string to binary"
    assert shard.ts == before


def test_the_name_of_a_deleted_column_can_be_used_again_its_id_never(place: Place) -> None:
    """The new column is another, with a type of its own; old rows have none of it."""
    shard = made(place)
    append(shard, FIRST, (1, "old", 10))
    evolve(shard, Schema.of(ID, SIZE))
    again = Schema.of(ID, SIZE, Column(3, "name", pa.list_(pa.int8())))
    evolve(shard, again)
    append(shard, again, (2, 20, [1, 2]))
    assert live_rows(shard, again) == [(1, 10, None), (2, 20, [1, 2])]
    reason = shard.compare_and_evolve_schema(SchemaId(2), Schema.of(ID, NAME, SIZE))
    assert isinstance(reason, Incompatible)
    assert (reason.field, reason.rule) == ("name", EvolutionRule.RECREATED)
    reason = shard.compare_and_evolve_schema(SchemaId(2), Schema.of(ID, Column(1, "fresh", pa.string()), SIZE))
    assert isinstance(reason, Incompatible)
    assert (reason.field, reason.rule) == ("fresh", EvolutionRule.RECREATED)


def test_a_column_can_be_renamed(place: Place) -> None:
    """Its id stays, so its values do, and readers of the old name read on."""
    shard = made(place)
    append(shard, FIRST, (1, "a", 10))
    renamed = Schema.of(ID, Column(1, "title", pa.string()), SIZE)
    evolve(shard, renamed)
    assert shard.reader(renamed).snapshot().table().schema.names == ["id", "title", "size", "_diff"]
    assert live_rows(shard, renamed) == live_rows(shard, FIRST) == [(1, "a", 10)]


def test_rows_are_found_by_the_names_of_their_columns_and_added_up(place: Place) -> None:
    """A table in another order of columns is the same; a row twice has diff 2; what goes comes no more."""
    shard = made(place)
    two = table(Schema.of(SIZE, NAME, ID), [{"id": 1, "name": "a", "size": 10}] * 2)
    shard.append(FIRST, two)
    assert shard.reader(FIRST).snapshot().table().to_pylist() == [{"id": 1, "name": "a", "size": 10, "_diff": 2}]
    append(shard, FIRST, (1, "a", 10), diff=-2)
    assert live_rows(shard, FIRST) == []


@pytest.mark.parametrize("type_", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_floats_are_what_their_bits_are(type_: pa.DataType) -> None:
    """A zero is not the negative zero, in whatever way they compare; what is no number comes, counts and goes."""
    schema = Schema.of(Column(0, "x", type_))
    shard = made(MemoryPlace(), schema)
    append(shard, schema, (0.0,), (-0.0,), (math.nan,), (math.nan,), (-1.5,), (math.inf,), (-math.inf,), (None,))
    append(shard, schema, (0.0,), (math.nan,), diff=-1)
    assert repr(live_rows(shard, schema)) == "[(None,), (-inf,), (-1.5,), (-0.0,), (inf,), (nan,)]"


def test_rows_that_add_up_to_nothing_make_no_commit(place: Place) -> None:
    """The answer is the newest ts."""
    shard = made(place)
    before = shard.ts
    row = table(FIRST, [{"id": 1, "name": "a", "size": 10}] * 2)
    assert shard.append(FIRST, row, [1, -1]) == before
    assert shard.append(FIRST, row.slice(0, 0)) == before
    assert shard.ts == before


def test_batches_are_bounded(place: Place) -> None:
    """Rows that are too many for a batch are several, in one commit, and read as one."""
    shard = made(place)
    shard.batch_bytes_max = 200
    ts = append(shard, FIRST, *((number, "x" * 50, number) for number in range(20)))
    assert len(place.open().commit(ts).adds) > 5
    assert [row[0] for row in live_rows(shard, FIRST)] == list(range(20))


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ({"id": [1], "name": ["a"]}, "the members id, name"),
        ({"id": [1], "name": ["a"], "size": [1], "more": [1]}, "more"),
        ({"id": [None], "name": ["a"], "size": [1]}, "rows.id holds null"),
        ({"id": [1], "name": [b"a"], "size": [1]}, "rows.name holds binary"),
        ({"id": [1], "name": ["a"], "size": pa.array([2**64 - 1], pa.uint64())}, "rows.size holds numbers"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_column(place: Place, rows: dict[str, list[object]], named: str) -> None:
    """Nothing is written that could not be read back as it was."""
    shard = made(place)
    before = shard.ts
    with pytest.raises(UnfitColumnError, match=named):
        shard.append(FIRST, pa.table(rows))
    assert shard.ts == before


def test_a_writer_checks_its_schema_when_it_writes(place: Place) -> None:
    """Not before: what is registered later is written with from then on, and what evolved no longer."""
    writer, leader = made(place, None), Shard.open(place.open(), FENCE)
    with pytest.raises(WriterSchemaError, match="its latest schema, None, is not the writer's"):
        append(writer, FIRST, (1, "a", 10))
    evolve(leader, FIRST)
    append(writer, FIRST, (1, "a", 10))
    wider = Schema.of(ID, NAME, SIZE, Column(3, "note", pa.string()))
    with pytest.raises(WriterSchemaError, match="its latest schema, 0,"):
        append(writer, wider, (2, "b", 20, None))
    evolve(leader, wider)
    append(writer, wider, (2, "b", 20, "n"))
    with pytest.raises(WriterSchemaError, match="its latest schema, 1,"):
        append(writer, FIRST, (3, "c", 30))
    assert live_rows(leader, wider) == [(1, "a", 10, None), (2, "b", 20, "n")]


def test_an_append_can_be_made_for_a_ts_alone(place: Place) -> None:
    """Whoever decided by what was read there learns of any commit since."""
    shard, other = made(place), Shard.open(place.open(), FENCE)
    seen = shard.reader(FIRST).snapshot().ts
    row = table(FIRST, [{"id": 1, "name": "a", "size": 10}])
    assert other.append(FIRST, row, expected=seen) == seen + 1
    with pytest.raises(ConflictError):
        shard.append(FIRST, row, expected=seen)
    assert live_rows(shard, FIRST) == [(1, "a", 10)]


def test_a_finalised_shard_is_of_no_use_and_its_rows_are_gone(place: Place) -> None:
    """For every process, whatever it had open; again does no harm, and making it anew does not bring it back."""
    shard, other = made(place), Shard.open(place.open(), FENCE)
    ts = append(shard, FIRST, (1, "a", 10))
    snapshot = other.reader(FIRST).snapshot()
    shard.finalize()
    shard.finalize()
    assert len(list(place.open().files())) == 1
    again = Shard.create(place.open(), FENCE)
    for one in (shard, other, again):
        assert one.finalized
        for use in (
            lambda one=one: one.ts,
            lambda one=one: one.latest(),
            lambda one=one: one.compare_and_evolve_schema(None, FIRST),
            lambda one=one: append(one, FIRST, (1, "a", 10)),
            lambda one=one: one.reader(FIRST).snapshot(ts),
            lambda one=one: list(one.reader(FIRST).listen(0)),
            lambda one=one: one.due(),
            lambda one=one: one.compact(),
        ):
            with pytest.raises(ShardFinalizedError):
                use()
    with pytest.raises(ShardFinalizedError):
        snapshot.table()


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.WRITE_BEFORE_FILE,
        FaultPoint.WRITE_AFTER_FILE,
        FaultPoint.COMMIT_BEFORE_LOG,
        FaultPoint.COMMIT_AFTER_LOG,
        FaultPoint.DELETE_BEFORE_FILE,
    ],
)
def test_a_crash_while_finalising_leaves_a_shard_whole_or_finalised(place: Place, point: FaultPoint) -> None:
    """Whoever goes on finishes it, and nothing is left but the word that it is finalised."""
    append(made(place), FIRST, (1, "a", 10))
    with pytest.raises(Crash):
        Shard.open(place.open(CrashAt(point)), FENCE).finalize()
    after = Shard.open(place.open(), FENCE)
    if not after.finalized:
        assert live_rows(after, FIRST) == [(1, "a", 10)]
    after.finalize()
    assert after.finalized
    assert len(list(place.open().files())) == 1


def test_there_is_no_shard_where_none_was_made(place: Place) -> None:
    """Opening makes none; making one twice is making it once."""
    with pytest.raises(NoStoreError):
        Shard.open(place.open(), FENCE)
    append(made(place), FIRST, (1, "a", 10))
    assert live_rows(Shard.create(place.open(), FENCE), FIRST) == [(1, "a", 10)]


def test_shards_of_a_store_have_places_of_their_own() -> None:
    """Ids are relative to the store, and never given twice."""
    assert shard_uri("s3://bucket/store/", "s1") == "s3://bucket/store/shards/s1"
    assert len({new_shard_id() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ([Column(0, "a", pa.int8()), Column(0, "b", pa.int8())], "same id, 0"),
        ([Column(0, "a", pa.int8()), Column(1, "a", pa.int8())], "same name, a"),
    ],
)
def test_a_schema_with_two_columns_alike_is_refused(columns: list[Column], said: str) -> None:
    """One id is one column, and one name too at any time."""
    with pytest.raises(UnfitSchemaError, match=said):
        Schema(tuple(columns))


@pytest.mark.parametrize(
    ("type_", "path"),
    [
        (pa.dictionary(pa.int8(), pa.string()), "a"),
        (pa.null(), "a"),
        (pa.struct([("x", pa.list_(pa.large_list(pa.int8())))]), "a.x.item"),
        (pa.map_(pa.string(), pa.list_(pa.int8(), 3)), "a.value"),
        (pa.struct([("x", pa.int8()), ("x", pa.int8())]), "a.x"),
    ],
)
def test_a_type_that_a_shard_cannot_hold_is_refused_by_its_path(type_: pa.DataType, path: str) -> None:
    """When it is declared, not when rows come."""
    with pytest.raises(UnfitSchemaError) as caught:
        Column(0, "a", type_)
    assert caught.value.column == path


@pytest.mark.parametrize(("number", "name"), [(-1, "a"), (0, ""), (0, "_diff")])
def test_a_column_that_could_not_be_told_is_refused(number: int, name: str) -> None:
    """It needs a number from 0 and a name that is not taken."""
    with pytest.raises(UnfitSchemaError):
        Column(number, name, pa.int8())
