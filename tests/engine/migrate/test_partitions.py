"""However the rows of a collection are stored, and however they are divided, they are the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.engine.base.fence import Fence
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.protocol import DataFile, FileKind, LogState
from catalog.engine.migrate import partitions, step_job
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.partitions import (
    Partitioning,
    RowsRead,
    divide,
    read_part,
    read_shuffled,
    rows_to_shuffle,
)
from catalog.engine.stash.registry import encode
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.errors import StepRefusedError
from catalog.upgrade import PROJECT
from tests.engine.migrate.direct import DirectJobs
from tests.engine.migrate.stores import append, findings_of, lead, rows_of, stash_of
from tests.memory_log import Memory, MemoryLog

Stores = Callable[[int], Path]
KEYS = st.binary(min_size=0, max_size=3) | st.sampled_from([b"a", b"b" * 20, b"b" * 21, b"\xff" * 4])
VALUES = st.binary(max_size=4)
Layout = tuple[list[dict[bytes, bytes]], list[dict[bytes, bytes | None]]]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few rows are several row groups."""
    monkeypatch.setattr("catalog.engine.log.data_files._GROUP_ROWS_MAX", 3)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Base files of disjoint keys, which may interleave, and what each commit of the tail does: a value, or none."""
    base = draw(st.dictionaries(KEYS, VALUES, max_size=30))
    count = draw(st.integers(1, 3))
    ordered = sorted(base)
    if draw(st.booleans()):
        files = [{key: base[key] for key in ordered[start::count]} for start in range(count)]
    else:
        cuts = [len(ordered) * cut // count for cut in range(count + 1)]
        files = [{key: base[key] for key in ordered[low:high]} for low, high in pairwise(cuts)]
    tail = draw(st.lists(st.dictionaries(KEYS, VALUES | st.none(), max_size=8), max_size=4))
    return [file for file in files if file], tail


def stored(layout: Layout) -> tuple[MemoryLog, LogState]:
    base, tail = layout
    log, files = MemoryLog(Memory()), list[DataFile]()
    for rows in base:
        files.append(log.write("x", FileKind.BASE, Fence(0, 1), rows_table([(k, rows[k], 1, 1) for k in sorted(rows)])))
    live = {key: value for rows in base for key, value in rows.items()}
    for ts, changes in enumerate(tail, start=2):
        happened = [(key, live[key], ts, -1) for key in changes if key in live]
        happened += [(key, value, ts, 1) for key, value in changes.items() if value is not None]
        if happened:
            files.append(log.write("x", FileKind.TAIL, Fence(0, 1), rows_table(happened)))
        live = {key: value for key, value in {**live, **changes}.items() if value is not None}
    state = LogState(10, {file.path: file for file in files}, {})
    assert dict(load_view(BaseFileCache(log), state).rows("x")) == live
    return log, state


def read(log: MemoryLog, division: Partitioning) -> Iterator[tuple[list[tuple[bytes, bytes]], RowsRead]]:
    """Yield the rows that the task of each part reads."""
    fed: pa.Table | None = None
    if division.shuffled:
        lows = [part.low for part in division.parts]
        pieces = [(file, number) for file in division.shuffled for number in range(len(log.groups(file)))]
        fed = pa.Table.from_batches([batch for piece in pieces for batch in rows_to_shuffle(log, lows, piece)][::-1])
    for part in division.parts:
        if fed is None:
            tables, rows_read = read_part(log, part)
        else:
            tables, rows_read = read_shuffled(fed.filter(pc.equal(fed["part"], part.number)))
        rows = [row for table in tables for row in zip(*(column.to_pylist() for column in table), strict=True)]
        assert all(part.low <= key and (part.high is None or key < part.high) for key, _ in rows)
        yield rows, rows_read


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layout=layouts(), part_bytes=st.sampled_from([1, 200, 2**20]), tail_bytes_max=st.sampled_from([-1, 2**20]))
def test_parts_hold_every_live_row_once_in_the_order_of_keys(
    monkeypatch: pytest.MonkeyPatch, layout: Layout, part_bytes: int, tail_bytes_max: int
) -> None:
    """Whether they read their files themselves or get them through a shuffle."""
    log, state = stored(layout)
    monkeypatch.setattr(partitions, "TAIL_BYTES_MAX", tail_bytes_max)
    division = divide(log, state, "x", part_bytes=part_bytes)
    assert bool(division.shuffled) == (bool(state.files) and (tail_bytes_max < 0 or interleaved(layout)))
    parts = list(read(log, division))
    assert [row for rows, _ in parts for row in rows] == list(load_view(BaseFileCache(log), state).rows("x"))
    rows = {
        kind: sum(file.rows for file in state.files.values() if file.kind is kind)
        for kind in (FileKind.BASE, FileKind.TAIL)
    }
    read_of = {FileKind.BASE: sum(own.base for _, own in parts), FileKind.TAIL: sum(own.tail for _, own in parts)}
    assert read_of == rows
    assert [part.number for part in division.parts] == list(range(len(division.parts)))


def interleaved(layout: Layout) -> bool:
    bounds = sorted((min(rows), max(rows)) for rows in layout[0])
    return any(after[0] <= before[1] for before, after in pairwise(bounds))


ROUTES = {
    "one part": (2**30, 2**30),
    "many parts": (1, 2**30),
    "one part after a shuffle": (2**30, -1),
    "many parts after a shuffle": (1, -1),
}


@pytest.mark.parametrize("route", ROUTES)
def test_a_step_makes_the_same_rows_by_every_route(
    copy_of: Stores, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    """Ids are dense and in the order of keys, whoever gives them out."""
    part_bytes, tail_bytes_max = ROUTES[route]
    monkeypatch.setattr(step_job, "divide", lambda *given, **_: divide(*given, part_bytes=part_bytes))
    monkeypatch.setattr(partitions, "TAIL_BYTES_MAX", tail_bytes_max)
    store = copy_of(19)
    old: Any = PROJECT.types(19)
    owner = old.RoleKey.FromString(rows_of(store)["role"][0][0]).id
    for start in (200, 220):
        append(store, "cluster", *(cluster(old, number, owner) for number in range(start, start + 20)))
        if start == 200:
            stash_of(store, 19).consolidate("cluster")
    before = [
        (old.ClusterKey.FromString(key).id, old.ClusterValue.FromString(value))
        for key, value in rows_of(store)["cluster"]
    ]
    jobs = DirectJobs()
    upgrade(lead(store, jobs=jobs), until=20)
    assert (jobs.shuffles > 0) == (tail_bytes_max < 0)
    new: Any = PROJECT.types(20)
    found = [
        (new.ClusterReplicaKey.FromString(key).id, new.ClusterReplicaValue.FromString(value))
        for key, value in rows_of(store)["cluster_replica"]
    ]
    told = [(value.cluster_id, value.name) for _, value in sorted(found, key=lambda row: row[0])]
    assert told == [(number, replica.name) for number, value in before for replica in value.replicas]
    ids = sorted(number for number, _ in found)
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    following = dict(rows_of(store)["id_alloc"])[encode(new.IdAllocKey(name="cluster_replica"))]
    assert new.IdAllocValue.FromString(following).next_id == ids[-1] + 1
    assert findings_of(store) == []


def cluster(types: Any, number: int, owner: Any) -> tuple[bytes, bytes, int]:  # noqa: ANN401
    replicas = [types.Replica(name=f"r{place}") for place in range(number % 4)]
    value = types.ClusterValue(name=f"cluster {number}", owner_id=owner, replicas=replicas)
    return encode(types.ClusterKey(id=number)), encode(value), 1


def test_what_fails_while_ids_are_counted_is_told_once(copy_of: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are read twice."""
    monkeypatch.setattr(step_job, "divide", partial(divide, part_bytes=1))
    store = copy_of(19)
    append(store, "cluster", (encode(PROJECT.types(19).ClusterKey(id=200)), b"\xff", 1))
    with pytest.raises(StepRefusedError, match="row 4 is no") as caught:
        upgrade(lead(store), until=20)
    assert caught.value.count == 1
