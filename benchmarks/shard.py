"""A shard whose schema evolved against one whose rows were rewritten, and evolving a large one against a small one.

As in `store.py`, peers are measured side by side, in turns; each line ends with its ratio and the most it may be.
"""

from __future__ import annotations

import tempfile
from functools import partial
from itertools import count
from pathlib import Path

import pyarrow as pa

from benchmarks.store import in_turns, show
from catalog.engine.base.fence import Fence
from catalog.engine.log.delta import DeltaLog
from catalog.engine.shard.schema import Column, Schema
from catalog.engine.shard.shard import Ok, Shard

ID = Column(0, "id", pa.int64(), nullable=False)
NAME = Column(1, "name", pa.string(), nullable=False)
OWNER = Column(2, "owner", pa.string(), nullable=False)
SIZE = Column(3, "size", pa.int64(), nullable=False)
NOTE = Column(4, "note", pa.string())
OLD = Schema.of(ID, NAME, OWNER, SIZE)
NEW = Schema.of(ID, NAME, SIZE, NOTE)
ROWS = 1_000_000


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        reading(Path(name))
        evolving(Path(name))


def reading(folder: Path) -> None:
    """Time reading all rows, half of them of a schema with a column since deleted and without one since added."""
    half, fresh, merged = (
        shard(folder / name, NEW if name == "fresh" else OLD) for name in ("half", "fresh", "merged")
    )
    for start in range(0, ROWS, ROWS // 10):
        schema = OLD if start < ROWS // 2 else NEW
        for own in (half, merged):
            evolve(own, schema)
            own.append(schema, rows(schema, start, ROWS // 10))
        fresh.append(NEW, rows(NEW, start, ROWS // 10))
    while merged.compact():
        pass
    for own in (half, fresh, merged):
        found = own.replica.batches(own.replica.catch_up())
        schemas = sorted({batch.run.schema_id for batch in found})
        print(f"  ({read(own)} rows in {len(found)} batches of schemas {schemas})")
    peers = {"half": half, "fresh": fresh, "merged": merged}
    times = in_turns({name: partial(read, own) for name, own in peers.items()}, rounds=41)
    show("reading 1,000,000 rows, half to be migrated / written so", times["half"], times["fresh"], 1.5)
    show("reading 1,000,000 rows, half to be migrated / rewritten by compaction", times["half"], times["merged"], 1.5)
    tables = in_turns({name: partial(table, own) for name, own in peers.items()}, rounds=7)
    show("the same in order, equal rows added up", tables["half"], tables["merged"], 1.5)


def evolving(folder: Path) -> None:
    """Time adding a column, one commit each; neither shard is rewritten."""
    large, small = shard(folder / "large", NEW), shard(folder / "small", NEW)
    large.append(NEW, rows(NEW, 0, ROWS))
    small.append(NEW, rows(NEW, 0, 1_000))
    ids = {"large": count(10), "small": count(10)}
    schemas = {"large": NEW, "small": NEW}

    def add(name: str, own: Shard) -> None:
        schemas[name] = Schema((*schemas[name].columns, Column(number := next(ids[name]), f"c{number}", pa.int64())))
        evolve(own, schemas[name])

    times = in_turns({"large": lambda: add("large", large), "small": lambda: add("small", small)})
    show("evolving a shard of 1,000,000 rows / of 1,000", times["large"], times["small"], 1.2)


def shard(path: Path, schema: Schema) -> Shard:
    made = Shard.create(DeltaLog(str(path)), Fence(0, 0))
    evolve(made, schema)
    return made


def evolve(own: Shard, schema: Schema) -> None:
    latest = own.latest()
    if not isinstance(own.compare_and_evolve_schema(None if latest is None else latest.id, schema), Ok):
        raise TypeError(schema)


def rows(schema: Schema, start: int, number: int) -> pa.Table:
    ids = range(start, start + number)
    columns = {
        "id": pa.array(ids, pa.int64()),
        "name": pa.array([f"table_{one}" for one in ids]),
        "owner": pa.array([f"owner {one % 97}" for one in ids]),
        "size": pa.array([one * 7919 % 1_000_003 for one in ids], pa.int64()),
        "note": pa.nulls(number, pa.string()),
    }
    return pa.table({column.name: columns[column.name] for column in schema.columns})


def read(own: Shard) -> int:
    return sum(batch.num_rows for batch in own.reader(NEW).snapshot().batches())


def table(own: Shard) -> int:
    return int(own.reader(NEW).snapshot().table().num_rows)


if __name__ == "__main__":
    main()
