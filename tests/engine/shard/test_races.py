"""Evolvers, writers and finalisers that meet, and answers that are lost: seeded, on a log that fails where it is told.

Every process may be stopped, kept waiting or left without an answer at any point of a write. Whatever was answered must
be so, whatever was refused must not, and of what is not known one of the two.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.engine.log.protocol import FaultPoint
from catalog.engine.shard.schema import Column, Schema, SchemaId
from catalog.engine.shard.schema_registry import RegisteredSchema
from catalog.engine.shard.shard import ExpectedMismatch, Ok, Shard
from catalog.errors import (
    CommitFailedError,
    IndeterminateError,
    ReaderFencedError,
    ShardFinalizedError,
    WriterSchemaError,
)
from tests.engine.log.places import DeltaPlace, LoseAnswers, MemoryPlace
from tests.engine.shard.shards import FENCE, FIRST, ID, NAME, SIZE, append, evolve, live_rows, made
from tests.engine.shard.test_compaction import Once
from tests.memory_log import LostResponseError, Memory

SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else range(150)
NOTE, FLAG = Column(3, "note", pa.string()), Column(4, "flag", pa.bool_())
ADDED = Schema.of(ID, NAME, SIZE, NOTE)
DELETED = Schema.of(ID, SIZE)
CHOICES = [ADDED, DELETED, Schema.of(ID, SIZE, NOTE), Schema.of(ID, SIZE, NOTE, FLAG), Schema.of(ID, SIZE, FLAG)]
COMMITS = [FaultPoint.COMMIT_BEFORE_LOG, FaultPoint.COMMIT_AFTER_LOG, FaultPoint.COMMIT_PROBE, FaultPoint.COMMIT_SEAL]


def test_of_two_evolvers_to_one_schema_both_succeed_with_one_commit() -> None:
    """Processes of one version converge on one id."""
    place = MemoryPlace()
    made(place)
    other = Shard.open(place.open(), FENCE)
    shard = Shard.open(place.open(Once(FaultPoint.COMMIT_BEFORE_LOG, lambda: evolve(other, ADDED))), FENCE)
    assert shard.compare_and_evolve_schema(SchemaId(0), ADDED) == Ok(SchemaId(1))
    assert [found.schema for found in shard.sequence()] == [FIRST, ADDED]


def test_of_two_evolvers_to_different_schemas_one_is_told_what_the_other_did() -> None:
    """It lost the race after it had been checked, and its schema is not registered."""
    place = MemoryPlace()
    made(place)
    other = Shard.open(place.open(), FENCE)
    shard = Shard.open(place.open(Once(FaultPoint.COMMIT_BEFORE_LOG, lambda: evolve(other, ADDED))), FENCE)
    assert shard.compare_and_evolve_schema(SchemaId(0), DELETED) == ExpectedMismatch(SchemaId(1), ADDED)
    assert [found.schema for found in shard.sequence()] == [FIRST, ADDED]
    assert sum("collection=schema" in path for path in place.memory.files) == 2


def test_a_writer_that_an_evolver_overtakes_writes_nothing() -> None:
    """It checked its schema for a state that was the newest no more: the same commit would have been the wrong one."""
    place = MemoryPlace()
    made(place)
    other = Shard.open(place.open(), FENCE)
    shard = Shard.open(place.open(Once(FaultPoint.COMMIT_BEFORE_LOG, lambda: evolve(other, ADDED))), FENCE)
    with pytest.raises(WriterSchemaError):
        append(shard, FIRST, (1, "a", 10))
    assert live_rows(shard, ADDED) == []
    assert not any("collection=batch" in path for path in place.memory.files)


def test_an_evolver_that_a_writer_overtakes_evolves_after_it() -> None:
    """Rows that were written meanwhile do not matter to it."""
    place = MemoryPlace()
    made(place)
    other = Shard.open(place.open(), FENCE)
    meet = Once(FaultPoint.COMMIT_BEFORE_LOG, lambda: append(other, FIRST, (1, "a", 10)))
    shard = Shard.open(place.open(meet), FENCE)
    assert shard.compare_and_evolve_schema(SchemaId(0), ADDED) == Ok(SchemaId(1))
    assert live_rows(shard, ADDED) == [(1, "a", 10, None)]


@pytest.mark.parametrize("use", ["append", "evolve", "compact"])
def test_whoever_is_overtaken_by_a_finalisation_learns_it_and_leaves_nothing(use: str) -> None:
    """Also if its own files were swept before it could commit them."""
    place = MemoryPlace()
    first = made(place)
    first.batch_bytes_max = 1
    append(first, FIRST, *((number, "a", 10) for number in range(6)))
    first.compact()
    first.batch_bytes_max = 10_000
    append(first, FIRST, (-3, "b", 20), (-2, "b", 20), (-1, "b", 20))
    for point in (FaultPoint.WRITE_AFTER_FILE, FaultPoint.COMMIT_BEFORE_LOG):
        own = MemoryPlace(_copied(place.memory))
        other = Shard.open(own.open(), FENCE)
        shard = Shard.open(own.open(Once(point, other.finalize)), FENCE)
        shard.batch_bytes_max = 1  # so that some files are written after the sweep
        uses: dict[str, Callable[[], object]] = {
            "append": lambda shard=shard: append(shard, FIRST, (3, "c", 30), (4, "d", 40)),  # type: ignore[misc]
            "evolve": lambda shard=shard: shard.compare_and_evolve_schema(SchemaId(0), ADDED),  # type: ignore[misc]
            "compact": shard.compact,
        }
        with pytest.raises(ShardFinalizedError):
            uses[use]()
        assert [path.partition("/")[0] for path in own.memory.files] == ["collection=finalized"]


@pytest.mark.parametrize("point", COMMITS[:2])
def test_a_lost_answer_to_an_evolution_is_no_second_one(point: FaultPoint) -> None:
    """It landed, or it can be repeated; either way there is one more schema in the end."""
    place = MemoryPlace()
    made(place)
    shard = Shard.open(place.open(LoseAnswers(point)), FENCE)
    if point is FaultPoint.COMMIT_AFTER_LOG:
        assert shard.compare_and_evolve_schema(SchemaId(0), ADDED) == Ok(SchemaId(1))
    else:
        with pytest.raises(CommitFailedError):
            shard.compare_and_evolve_schema(SchemaId(0), ADDED)
    place.memory.deliver()
    after = Shard.open(place.open(), FENCE)
    assert after.compare_and_evolve_schema(SchemaId(0), ADDED) == Ok(SchemaId(1))
    assert [found.schema for found in after.sequence()] == [FIRST, ADDED]
    assert sum("collection=schema" in path for path in place.memory.files) == 2


def test_threads_that_race_on_a_folder_lose_and_double_nothing(tmp_path: Path) -> None:
    """Writers, an evolver and a compactor at once, each with a log of its own: no fault is needed for them to meet."""
    place = DeltaPlace(str(tmp_path / "s1"))
    made(place)
    schemas = [FIRST, *(Schema.of(ID, NAME, SIZE, Column(9 + n, f"c{n}", pa.int8())) for n in range(4))]

    def write(start: int) -> list[int]:
        shard = Shard.open(place.open(), FENCE)
        own: list[int] = []
        while len(own) < 10:
            latest = shard.latest()
            assert latest is not None
            row = {column.name: None for column in latest.schema.columns} | {"id": start + len(own)}
            with suppress(WriterSchemaError):
                append(shard, latest.schema, tuple(row.values()))
                own.append(start + len(own))
        return own

    def work() -> list[int]:
        shard = Shard.open(place.open(), FENCE)
        for schema in schemas[1:]:
            evolve(shard, schema)
            shard.compact()
        return []

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(write, 100), pool.submit(write, 200), pool.submit(work), pool.submit(write, 300)]
        written = sorted(number for one in done for number in one.result())
    shard = Shard.open(place.open(), FENCE)
    assert len(written) == 30
    assert [number for (number,) in live_rows(shard, Schema.of(ID))] == written
    assert [one.schema for one in shard.sequence()] == schemas
    _check_history(shard)


@dataclass
class Faults:
    """Now and then an answer is lost, or somebody else acts at that very point."""

    chance: random.Random
    others: list[Callable[[], None]] = field(default_factory=list)
    inside: bool = False

    def __call__(self, point: FaultPoint) -> None:
        if self.inside:
            return
        if self.others and self.chance.random() < 0.2:
            self.inside = True
            try:
                self.chance.choice(self.others)()
            finally:
                self.inside = False
        if point in COMMITS and self.chance.random() < 0.15:
            raise LostResponseError(f"no answer at {point}")


@dataclass
class Ledger:
    """What processes did, and what they were told of it."""

    chance: random.Random
    acknowledged: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    registered: set[Schema] = field(default_factory=lambda: {FIRST})
    maybe_registered: set[Schema] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=count)

    def write(self, shard: Shard) -> None:
        """With the latest schema that this process knows, or with one that may be outdated."""
        latest = shard.latest()
        assert latest is not None
        schema = self.chance.choice([latest.schema, FIRST])
        number = next(self.numbers)
        row = {"id": number, "name": "a", "size": 1, "note": None, "flag": None}
        try:
            append(shard, schema, tuple(row[column.name] for column in schema.columns))
        except IndeterminateError:
            self.unknown.add(number)
        except (CommitFailedError, WriterSchemaError):
            pass
        else:
            self.acknowledged.add(number)

    def register(self, shard: Shard) -> None:
        latest = shard.latest()
        assert latest is not None
        wanted = self.chance.choice(CHOICES)
        with suppress(CommitFailedError):
            try:
                if isinstance(shard.compare_and_evolve_schema(latest.id, wanted), Ok):
                    self.registered.add(wanted)
            except IndeterminateError:
                self.maybe_registered.add(wanted)

    def compact(self, shard: Shard) -> None:
        with suppress(CommitFailedError, IndeterminateError):
            shard.compact()


@pytest.mark.parametrize("seed", SEEDS)
def test_evolvers_and_writers_that_race_lose_and_double_nothing(seed: int) -> None:
    """Rows are there once if they were acknowledged, and not if they were refused; each batch has the schema that was
    the latest at its commit, and schemas follow each other by the rules.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    place = MemoryPlace()
    made(place)
    ledger, faults = Ledger(chance), Faults(chance)
    acts = [ledger.write, ledger.write, ledger.register, ledger.compact]
    outer = [Shard.open(place.open(faults), FENCE) for _ in range(3)]
    inner = [Shard.open(place.open(faults), FENCE) for _ in range(2)]
    faults.others = [partial(act, shard) for act in acts for shard in inner]
    for _ in range(25):
        chance.choice(acts)(chance.choice(outer))
    place.memory.deliver()

    shard = Shard.open(place.open(), FENCE)
    found = [number for (number,) in live_rows(shard, Schema.of(ID))]
    assert len(found) == len(set(found))
    assert ledger.acknowledged <= set(found) <= ledger.acknowledged | ledger.unknown
    sequence = shard.sequence()
    assert [one.id for one in sequence] == list(range(len(sequence)))
    assert ledger.registered <= {one.schema for one in sequence} <= ledger.registered | ledger.maybe_registered
    _check_history(shard)


def _check_history(shard: Shard) -> None:
    """Each batch has the schema that was the latest at its commit, and each schema follows the one before."""
    for ts in range(1, shard.ts + 1):
        commit = shard.log.commit(ts)
        before = shard.replica.latest(shard.log.state(ts - 1))
        after = shard.replica.latest(shard.log.state(ts))
        assert after is not None
        for batch in shard.replica.batches(shard.log.state(ts)):
            if batch.file in commit.adds and commit.operation == "transaction":
                assert before is not None
                assert batch.run.schema_id == before.id == after.id
        if before is not None and after.id != before.id:
            follows = before.followed_by(after.schema)
            assert isinstance(follows, RegisteredSchema)
            assert follows.id == after.id
    latest = shard.latest()
    assert latest is not None
    assert shard.reader(latest.schema).snapshot().table() is not None
    for one in shard.sequence():
        with suppress(ReaderFencedError):
            shard.reader(one.schema).snapshot().table()


def _copied(memory: Memory) -> Memory:
    return Memory(dict(memory.commits), dict(memory.states), dict(memory.files), now_ms=memory.now_ms)
