"""Random sequences of schemas and rows: what is read is what would be read of rows that had been rewritten."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.engine.shard.array_migration import ArrayMigration
from catalog.engine.shard.compaction import RunPolicy
from catalog.engine.shard.row_order import consolidate
from catalog.engine.shard.schema import DIFF, SchemaId
from catalog.engine.shard.schema_rules import Incompatible, TrackedSchema, backward_compatible
from catalog.engine.shard.shard import Ok, Shard
from catalog.errors import ReaderFencedError
from tests.engine.log.places import MemoryPlace
from tests.engine.shard.model import Author, Node, converted, frozen, reachable
from tests.engine.shard.shards import FENCE

Written = list[tuple[dict[str, Any], int]]
"""Rows by the ids of their columns, and diffs."""
slow = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
)


@slow
@given(st.data())
def test_any_reachable_schema_reads_what_rewritten_rows_would_give(data: st.DataObject) -> None:
    """Whatever evolved, was written and was compacted in whatever order; and who is not reachable is fenced."""
    author = Author(data)
    shard = Shard.create(MemoryPlace().open(), FENCE)
    shard.compaction, shard.batch_bytes_max = (
        RunPolicy(runs_max=2, fan_in_max=2),
        data.draw(st.sampled_from([40, 400, 10_000])),
    )
    history = [author.first()]
    assert shard.compare_and_evolve_schema(None, history[0].schema) == Ok(SchemaId(0))
    written: Written = []
    times: list[tuple[int, Node, Written]] = []
    for _ in range(data.draw(st.integers(1, 6))):
        latest = history[-1]
        match data.draw(st.sampled_from(["evolve", "append", "retract", "compact"])):
            case "evolve":
                history.append(author.follow(latest))
                expected = SchemaId(shard.sequence()[-1].id)
                answer = shard.compare_and_evolve_schema(expected, history[-1].schema)
                assert isinstance(answer, Ok), answer
            case "append":
                fresh = [(row, 1) for row in author.rows(latest)]
                append(shard, latest, fresh)
                written = written + fresh
            case "retract" if written:
                gone = (converted(data.draw(st.sampled_from(written))[0], latest), -1)
                append(shard, latest, [gone])
                written = [*written, gone]
            case _:
                shard.compact()
        times.append((shard.ts, history[-1], written))
    rewritten = Shard.create(MemoryPlace().open(), FENCE)
    assert rewritten.compare_and_evolve_schema(None, history[-1].schema) == Ok(SchemaId(0))
    append(rewritten, history[-1], [(converted(row, history[-1]), diff) for row, diff in written])
    for _ in range(2):
        for wanted in history:
            if reachable(history[-1], wanted):
                assert counted(shard, wanted) == counted(rewritten, wanted) == model(written, wanted)
            else:
                with pytest.raises(ReaderFencedError):
                    shard.reader(wanted.schema).snapshot()
        for ts, schema, then in times:
            assert counted(shard, schema, ts) == model(then, schema)
        while shard.due() or shard.compact():
            shard.compact()
    assert len({batch.run.id for batch in shard.replica.batches(shard.replica.catch_up())}) <= 1


@slow
@given(st.data())
def test_every_illegal_evolution_is_refused_by_the_name_of_the_field(data: st.DataObject) -> None:
    """After any legal sequence, and nothing is committed."""
    author = Author(data)
    shard = Shard.create(MemoryPlace().open(), FENCE)
    latest = author.first()
    assert shard.compare_and_evolve_schema(None, latest.schema) == Ok(SchemaId(0))
    for _ in range(data.draw(st.integers(0, 3))):
        latest = author.follow(latest)
        assert isinstance(shard.compare_and_evolve_schema(shard.sequence()[-1].id, latest.schema), Ok)
    broken = author.break_rule(latest)
    if broken is None:
        return
    new, field, rule = broken
    before = shard.ts
    answer = shard.compare_and_evolve_schema(shard.sequence()[-1].id, new.schema)
    assert isinstance(answer, Incompatible)
    assert (answer.field, answer.rule) == (field, rule)
    assert answer.why.startswith(f"{field}: ")
    assert shard.ts == before


@slow
@given(st.data())
def test_compatibility_is_transitive_and_so_are_migrations(data: st.DataObject) -> None:
    """Schemas can be skipped: what leads there in steps leads there at once, with the same rows and no less order."""
    author = Author(data)
    history = [author.first()]
    for _ in range(data.draw(st.integers(2, 4))):
        history.append(author.follow(history[-1]))
    schemas = [node.schema.inner for node in history]
    rows = batch(history[0], [(row, 1) for row in author.rows(history[0])])
    at_once, in_steps, kept = rows, rows, True
    for before, after in pairwise(schemas):
        step, whole = backward_compatible(before, after), backward_compatible(schemas[0], after)
        assert isinstance(step, ArrayMigration)
        assert isinstance(whole, ArrayMigration)
        in_steps, at_once, kept = step.apply(in_steps), whole.apply(rows), kept and step.preserves_order
        assert at_once.equals(in_steps) or not at_once.num_columns
        assert whole.preserves_order or not kept
    known: TrackedSchema | Incompatible = TrackedSchema(schemas[0])
    for after in schemas[1:]:
        assert isinstance(known, TrackedSchema)
        known = known.evolved(after)
    assert isinstance(known, TrackedSchema)
    assert known.current.equals(schemas[-1])


@slow
@given(st.data())
def test_rows_that_are_in_order_stay_so_where_a_migration_says_it(data: st.DataObject) -> None:
    """Sorted rows, migrated: sorting them again changes nothing but equal ones."""
    author = Author(data)
    old = author.first()
    new = author.follow(old)
    migration = backward_compatible(old.schema.inner, new.schema.inner)
    assert isinstance(migration, ArrayMigration)
    written = [(row, 1) for _ in range(4) for row in author.rows(old)]
    ordered = with_diffs(batch(old, written))
    assert [frozen(row) for row in ordered.select(ordered.schema.names[:-1]).to_pylist()] == [
        frozen(row) for row in sorted({frozen(row): row for row, _ in written}.values(), key=lambda row: key(row, old))
    ]
    if migration.preserves_order:
        moved = migration.apply(ordered.select(ordered.schema.names[:-1]))
        again = with_diffs(moved)
        unique = list(dict.fromkeys(frozen(row) for row in moved.to_pylist()))
        assert [frozen(row) for row in again.select(again.schema.names[:-1]).to_pylist()] == unique


def append(shard: Shard, schema: Node, rows: Written) -> None:
    if rows:
        outer = batch(schema, rows).rename_columns([own.title for own in schema.fields])
        shard.append(schema.schema, outer, [diff for _, diff in rows])


def batch(schema: Node, rows: Written) -> pa.RecordBatch:
    arrays = [pa.array([row[own.name] for row, _ in rows], own.type) for own in schema.fields]
    if not arrays:
        return pa.record_batch([pa.nulls(len(rows))], names=["none"]).select([])
    return pa.RecordBatch.from_arrays(arrays, schema=schema.schema.inner)


def with_diffs(rows: pa.RecordBatch) -> pa.RecordBatch:
    if not rows.num_columns:
        return consolidate(pa.record_batch([ones(rows.num_rows)], names=[DIFF]))
    return consolidate(rows.append_column(DIFF, ones(rows.num_rows)))


def ones(count: int) -> pa.Int64Array:
    return pa.array([1] * count, pa.int64())


def counted(shard: Shard, schema: Node, as_of: int | None = None) -> Counter[Any]:
    table = shard.reader(schema.schema).snapshot(as_of).table()
    table.validate(full=True)
    found = table.rename_columns([*(own.name for own in schema.fields), DIFF]).to_pylist()
    assert len({frozen({**row, DIFF: 0}) for row in found}) == len(found), "a row comes twice"
    return Counter({frozen({name: row[name] for name in row if name != DIFF}): row[DIFF] for row in found})


def model(written: Written, schema: Node) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for row, diff in written:
        total[frozen(converted(row, schema))] += diff
    return Counter({row: diff for row, diff in total.items() if diff})


def key(value: Any, own: Node) -> Any:  # noqa: ANN401 - whatever compares
    """What Python orders rows by: null first, then field by field and item by item."""
    if value is None:
        return (0,)
    match own.kind:
        case "struct":
            return (1, *(key(value[one.name], one) for one in own.fields))
        case "list":
            return (1, *(key(item, own.fields[0]) for item in value))
        case "map":
            return (1, *((name, key(item, own.fields[0])) for name, item in value))
        case _:
            return (1, value)
