"""The success criteria of builtin schema migration, each as a test, in memory and in a folder."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from catalog.engine.builtins.declaration import Builtin, Declaration, Instruction, Mechanism, fingerprint
from catalog.engine.builtins.migrate import BuiltinMigrator, run_leader
from catalog.engine.builtins.replacement_shards import MIGRATION_SHARD, Logs
from catalog.engine.log.protocol import FaultPoint
from catalog.engine.shard.schema import Column, Schema
from catalog.engine.shard.shard import Ok
from catalog.errors import (
    BuiltinOvertakenError,
    BuiltinsTooNewError,
    FencedError,
    NoStoreError,
    ShardFinalizedError,
    UnfitEvolutionError,
    UninstructedSchemaError,
    WriterSchemaError,
)
from tests.engine.builtins.releases import build, name
from tests.engine.builtins.stores import Store
from tests.engine.log.places import Crash, CrashAt
from tests.engine.shard.test_compaction import Once

ID = Column(0, "id", pa.int64(), nullable=False)
NOTE, MARK = Column(1, "note", pa.string()), Column(2, "mark", pa.string())
KEPT = Builtin(name("k"), Schema.of(ID))
EVOLVING, REPLACED = name("e"), name("r")


def release(number: int, evolving: Schema, replaced: Schema, *instructions: Instruction) -> Declaration:
    return Declaration(build(number), (KEPT, Builtin(EVOLVING, evolving), Builtin(REPLACED, replaced)), instructions)


TO_2 = (Instruction(build(2), EVOLVING, Mechanism.EVOLUTION), Instruction(build(2), REPLACED, Mechanism.REPLACEMENT))
TO_3 = (*TO_2, Instruction(build(3), EVOLVING, Mechanism.EVOLUTION))
TO_4 = (*TO_3, Instruction(build(4), REPLACED, Mechanism.REPLACEMENT))
R1 = release(1, Schema.of(ID), Schema.of(ID))
R2 = release(2, Schema.of(ID, NOTE), Schema.of(NOTE), *TO_2)
R3 = release(3, Schema.of(ID, NOTE, MARK), Schema.of(NOTE), *TO_3)
R4 = release(4, Schema.of(ID, NOTE, MARK), Schema.of(ID, MARK), *TO_4)


def test_a_new_store_has_every_builtin_after_its_first_leader(store: Store) -> None:
    """Ids, shards, schemas and fingerprints; the version last."""
    outcome = store.lead(R1)
    stored = store.stored(R1)
    assert stored.version == stored.begun == build(1)
    assert sorted(mapped.id for mapped in stored.builtins.values()) == [1, 2, 3]
    for builtin in R1.builtins:
        mapped, used = stored.builtins[builtin.name], outcome.used[builtin.name]
        assert (mapped.id, mapped.shard, mapped.fingerprint) == (used.id, used.shard, builtin.fingerprint)
        latest = store.shard(mapped.shard).latest()
        assert latest is not None
        assert latest.schema == builtin.schema
    assert store.lead(R1).used == outcome.used == store.read(R1).used


def test_a_new_builtin_is_empty_to_whoever_only_reads_until_a_leader_makes_it(store: Store) -> None:
    """Reading writes nothing to the stash, not even an id."""
    before = store.ts()
    outcome = store.read(R1)
    assert all((used.id, used.shard) == (None, None) for used in outcome.used.values())
    assert store.ts() == before
    with pytest.raises(NoStoreError):
        store.shard(MIGRATION_SHARD)


def test_a_leader_evolves_and_replaces_as_it_is_told(store: Store) -> None:
    """Rows stay where the schema evolves, and go with the shard where it is replaced."""
    first = store.lead(R1)
    for text in "ker":
        store.write(first, text, {"id": 7})
    second = store.lead(R2)
    assert store.rows(second, "k") == [{"id": 7}]
    assert store.rows(second, "e") == [{"id": 7, "note": None}]
    assert store.rows(second, "r") == []
    assert second.used[EVOLVING].shard == first.used[EVOLVING].shard
    stored = store.stored(R2)
    assert stored.version == build(2)
    assert {str(n): mapped.fingerprint for n, mapped in stored.builtins.items()} == dict(R2.fingerprints())


def test_a_leader_finalises_what_it_replaced_and_forgets_it(store: Store) -> None:
    """Nothing is left of it but a log that says so."""
    first = store.lead(R1)
    second = store.lead(R2)
    old = first.used[REPLACED].shard
    assert old is not None
    assert old != second.used[REPLACED].shard
    assert store.shard(old).finalized
    assert store.records().unfinalized() == ()
    assert {entry.build for entry in store.entries()} == {build(2)}


def test_reading_evolves_nothing(store: Store) -> None:
    """It looks whether the new schema could follow, and reads with it; the stash and the shard stay as they are."""
    first = store.lead(R1)
    store.write(first, "e", {"id": 7})
    shard = first.used[EVOLVING].shard
    assert shard is not None
    before, ts = store.ts(), store.shard(shard).ts
    outcome = store.read(R3)
    assert store.rows(outcome, "e") == [{"id": 7, "note": None, "mark": None}]
    assert (store.ts(), store.shard(shard).ts) == (before, ts)
    with pytest.raises(WriterSchemaError):
        store.write(outcome, "e", {"id": 8, "note": None, "mark": None})


def test_after_an_aborted_upgrade_an_upgrade_to_a_lower_build_and_the_running_one_work(store: Store) -> None:
    """Whatever a reading process of build 4 has left behind, builds 1, 2 and 3 start as if it had not been."""
    first = store.lead(R1, generation=1)
    for text in "ker":
        store.write(first, text, {"id": 7})
    store.read(R4, generation=2)
    assert store.lead(R1, generation=1).used == first.used
    assert store.read(R1, generation=1).used == first.used
    second = store.lead(R2, generation=3)
    assert store.rows(second, "e") == [{"id": 7, "note": None}]
    third = store.lead(R3, generation=4)
    assert third.used[REPLACED].shard == second.used[REPLACED].shard
    fourth = store.lead(R4, generation=5)
    assert store.rows(fourth, "e") == [{"id": 7, "note": None, "mark": None}]
    left = [entry for entry in store.entries() if (entry.build, entry.generation) != (build(4), 5)]
    assert left == []


def test_two_upgrades_to_one_build_with_different_generations_do_not_meet(store: Store) -> None:
    """Each has its own replacement shards; the one that leads clears those of earlier generations away."""
    store.lead(R1, generation=1)
    one, other = store.read(R2, generation=2), store.read(R2, generation=3)
    assert one.used[REPLACED].shard != other.used[REPLACED].shard
    assert {entry.generation for entry in store.entries() if entry.build == build(2)} == {2, 3}
    led = store.lead(R2, generation=2)
    assert led.used == one.used
    kept = other.used[REPLACED].shard
    assert kept is not None
    assert not store.shard(kept).finalized
    last = store.lead(R2, generation=3)
    assert last.used == led.used  # the store is at build 2: nothing is replaced again
    taken = store.lead(R2, generation=4)
    assert taken.used == led.used
    assert store.shard(kept).finalized


def test_a_leader_does_not_disturb_a_reader_of_a_higher_build(store: Store) -> None:
    """Its replacement shards stay, and what it reads by its own schema can still be read."""
    first = store.lead(R1, generation=1)
    store.write(first, "e", {"id": 7})
    reader = store.read(R4, generation=3)
    store.lead(R2, generation=2)
    assert store.rows(reader, "e") == [{"id": 7, "note": None, "mark": None}]
    assert store.rows(reader, "r") == []
    again = store.read(R4, generation=3)
    assert again.used == reader.used
    led = store.lead(R4, generation=3)
    assert led.used == reader.used


def test_a_leader_fences_processes_of_lower_builds_out(store: Store) -> None:
    """With an error that names the build to use."""
    store.lead(R1)
    store.lead(R2)
    for start in (store.lead, store.read):
        with pytest.raises(BuiltinsTooNewError, match=r"build 0.2.0 has migrated them"):
            start(R1)


def test_a_patch_that_changed_nothing_can_be_taken_back(store: Store) -> None:
    """A lower build starts if every schema is its own; the store stays migrated to the higher one."""
    first = store.lead(R3)
    patch = release(4, Schema.of(ID, NOTE, MARK), Schema.of(NOTE), *TO_3)
    assert store.lead(patch).used == first.used
    assert store.version(patch) == build(4)
    back = store.lead(R3)
    assert (back.used, back.plan.overtaken_by) == (first.used, build(4))
    assert store.version(R3) == build(4)


def test_a_changed_schema_without_an_instruction_fails(store: Store) -> None:
    """Before anything is written, in both modes."""
    store.lead(R1)
    before = store.ts()
    with pytest.raises(UninstructedSchemaError, match=r"catalog\.e is not that of the store"):
        store.read(release(2, Schema.of(ID, NOTE), Schema.of(ID)))
    process = store.process(release(2, Schema.of(ID, NOTE), Schema.of(ID)))
    process.stash.join()
    with pytest.raises(UninstructedSchemaError):
        run_leader(process)
    assert store.ts() == before


def test_an_evolution_that_the_rules_do_not_allow_fails_by_its_field(store: Store) -> None:
    """The instruction is wrong, and says so before anything is registered."""
    store.lead(R1)
    wrong = release(2, Schema.of(Column(0, "id", pa.string())), Schema.of(ID), TO_2[0])
    for start in (store.read, store.lead):
        with pytest.raises(UnfitEvolutionError, match="id: a field keeps its type") as caught:
            start(wrong)
        assert caught.value.field == "id"


def test_an_object_that_is_no_longer_declared_is_given_up_by_its_instruction(store: Store) -> None:
    """Its rows of the stash go, and its shard is finalised."""
    first = store.lead(R1)
    without = Declaration(build(2), R1.builtins[:2], (TO_2[1],))
    store.lead(without)
    old = first.used[REPLACED].shard
    assert old is not None
    assert store.shard(old).finalized
    assert REPLACED not in store.stored(without).builtins


MOMENTS = [
    FaultPoint.COMMIT_BEFORE_LOG,
    FaultPoint.COMMIT_AFTER_LOG,
    FaultPoint.WRITE_AFTER_FILE,
    FaultPoint.CREATE_AFTER_LOG,
]


@pytest.mark.parametrize("point", MOMENTS)
def test_processes_of_one_build_that_race_converge(store: Store, point: FaultPoint) -> None:
    """A reader that another overtakes at any write ends with the same shards; so does the leader after them."""
    store.lead(R1)
    found = []
    one = store.read(R2, reached=Once(point, lambda: found.append(store.read(R2))))
    assert [outcome.used for outcome in found] == [one.used]
    assert store.lead(R2).used == one.used
    assert len(store.entries()) == 1


@pytest.mark.parametrize("point", MOMENTS)
def test_a_reader_that_the_leader_of_its_build_overtakes_uses_what_that_does(store: Store, point: FaultPoint) -> None:
    """The entry of a build and generation stays as long as it may lead."""
    store.lead(R1)
    found = []
    one = store.read(R2, reached=Once(point, lambda: found.append(store.lead(R2))))
    assert [outcome.used for outcome in found] == [one.used]


def test_an_evolver_that_its_like_overtakes_is_done() -> None:
    """The same schema is registered once."""
    store = Store(None)
    shard = store.lead(R1).used[EVOLVING].shard
    assert shard is not None
    meet = Once(FaultPoint.COMMIT_BEFORE_LOG, lambda: _register(store, shard, R2))
    process = store.process(R2)
    process.stash.take_over(1, "test")
    logs = process.logs
    used = run_leader(_with_logs(process, lambda text: store.place(text).open(meet) if text == shard else logs(text)))
    assert used.used[EVOLVING].shard == shard
    assert [one.id for one in store.shard(shard).sequence()] == [0, 1]


def test_an_evolver_that_a_lower_build_overtakes_tries_again() -> None:
    """Its schema follows that one too."""
    store = Store(None)
    shard = store.lead(R1).used[EVOLVING].shard
    assert shard is not None
    meet = Once(FaultPoint.COMMIT_BEFORE_LOG, lambda: _register(store, shard, R2))
    process = store.process(R3)
    process.stash.take_over(1, "test")
    logs = process.logs
    run_leader(_with_logs(process, lambda text: store.place(text).open(meet) if text == shard else logs(text)))
    assert [one.schema for one in store.shard(shard).sequence()] == [
        Schema.of(ID), Schema.of(ID, NOTE), Schema.of(ID, NOTE, MARK)
    ]  # fmt: skip


def test_an_evolver_that_a_newer_leader_overtakes_halts() -> None:
    """Also where the rules would let its schema follow: it would delete a column of the newer build for ever."""
    store = Store(None)
    shard = store.lead(R1).used[EVOLVING].shard
    assert shard is not None
    meet = Once(FaultPoint.COMMIT_BEFORE_LOG, lambda: store.lead(R3, generation=2))
    process = store.process(R2)
    process.stash.take_over(1, "test")
    logs = process.logs
    with pytest.raises(FencedError):
        run_leader(_with_logs(process, lambda text: store.place(text).open(meet) if text == shard else logs(text)))
    latest = store.shard(shard).latest()
    assert latest is not None
    assert latest.schema == Schema.of(ID, NOTE, MARK)


def test_a_schema_that_nobody_recorded_and_ours_cannot_follow_halts() -> None:
    """Whoever registered it, this build cannot go on."""
    store = Store(None)
    shard = store.lead(R1).used[EVOLVING].shard
    assert shard is not None
    other = Schema.of(ID, Column(1, "note", pa.int8()))
    assert isinstance(store.shard(shard).compare_and_evolve_schema(store.shard(shard).sequence()[-1].id, other), Ok)
    for start in (store.read, store.lead):
        with pytest.raises(BuiltinOvertakenError, match="note: a field keeps its type"):
            start(R2)


def test_a_leader_that_stopped_midway_keeps_lower_builds_away(store: Store) -> None:
    """It may have registered schemas: a lower build must not follow those by deleting what it does not know."""
    shard = store.lead(R1).used[EVOLVING].shard
    assert shard is not None
    process = store.process(R3, generation=2)
    process.stash.take_over(2, "test")
    logs = process.logs
    stopped = CrashAt(FaultPoint.COMMIT_AFTER_SYNC)
    with pytest.raises(Crash):
        run_leader(_with_logs(process, lambda text: store.place(text).open(stopped) if text == shard else logs(text)))
    assert (store.version(R3), store.stored(R3).begun) == (build(1), build(3))
    for lower in (R1, R2):
        with pytest.raises(BuiltinsTooNewError, match=r"build 0.3.0 has migrated them, or has begun to"):
            store.lead(lower, generation=3)
    assert store.lead(R4, generation=4).plan.after == build(1)


def test_a_leader_that_stopped_before_it_changed_anything_keeps_the_running_build(store: Store) -> None:
    """All that is there is what that build uses."""
    first = store.lead(R1)
    process = store.process(R3, generation=2)
    process.stash.take_over(2, "test")
    with pytest.raises(Crash):
        run_leader(_with_logs(process, lambda text: store.place(text).open(CrashAt(FaultPoint.WRITE_BEFORE_FILE))))
    assert store.stored(R3).begun == build(3)
    assert store.lead(R1, generation=3).used == first.used


def test_a_reader_whose_shard_was_given_up_makes_another(store: Store) -> None:
    """A leader of a higher build that had nothing to do has cleared its entry away, and has not finished."""
    store.lead(R1)
    first = store.read(R2, generation=1)
    old = first.used[REPLACED].shard
    assert old is not None
    records = store.process(R1, generation=1)
    records.stash.take_over(1, "test")
    given_up = records.begin()
    given_up.condemn({old: "for a test"})
    records.commit(given_up)
    again = store.read(R2, generation=1)
    assert again.used[REPLACED].shard != old
    own = {entry.shard for entry in store.entries() if entry.build == build(2)}
    assert own == {again.used[REPLACED].shard}
    assert store.lead(R2, generation=1).used == again.used
    with pytest.raises(ShardFinalizedError):
        store.shard(old).latest()


def test_the_fingerprint_in_the_store_is_that_of_the_schema(store: Store) -> None:
    """By which every later build tells whether it has changed."""
    store.lead(R1)
    assert store.stored(R1).builtins[EVOLVING].fingerprint == fingerprint(Schema.of(ID))


def _register(store: Store, shard: str, declared: Declaration) -> None:
    found = store.shard(shard)
    latest = found.latest()
    assert latest is not None
    schema = next(builtin.schema for builtin in declared.builtins if builtin.name == EVOLVING)
    assert isinstance(found.compare_and_evolve_schema(latest.id, schema), Ok)


def _with_logs(process: BuiltinMigrator, logs: Logs) -> BuiltinMigrator:
    return replace(process, logs=logs)
