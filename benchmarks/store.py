"""The store against bare delta-rs, pyarrow and ptars, and against itself when it is smaller or younger.

Peers are measured side by side in one run, in turns; medians with the spread between the quartiles. Each line ends with
its ratio and the most it may be.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction

from catalog import open_catalog
from catalog.engine.codec import codec_for
from catalog.engine.log.maintenance import Policy
from catalog.engine.log.protocol import ROWS, FileKind, LogState
from catalog.engine.store.catalog import Catalog
from catalog.objects import ItemKey, ItemValue, RoleId, SettingKey, SettingValue

SYSTEM = RoleId(system=2)
SQL = "CREATE TABLE orders (id BIGINT, placed TIMESTAMP, amount DECIMAL(18, 2)) USING delta"
ROUNDS = 60


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        transactions(folder)
        history(folder)
        reading(folder)
    memory()


def transactions(folder: Path) -> None:
    """Time a one-row transaction in a large store, in a small one, and the bare commit."""
    large, small = store(folder / "large", 100_000), store(folder / "small", 1_000)
    bare = BareTable(folder / "bare")
    ids = iter(range(1_000_000, 2_000_000))
    for catalog in (large, small):
        insert(catalog, next(ids))
    times = in_turns(
        {"large": lambda: insert(large, next(ids)), "small": lambda: insert(small, next(ids)), "bare": bare.commit}
    )
    show("one row among 100,000 items / bare commit", times["large"], times["bare"], 1.5)
    show("one row among 100,000 items / among 1,000", times["large"], times["small"], 1.3)
    large.close()
    small.close()


def history(folder: Path) -> None:
    """Time a transaction and an opening after a long history and a short one, at equal distance from a checkpoint."""
    young, old = store(folder / "young", 0), store(folder / "old", 0)
    grow(young, 10)
    grow(old, 5_000)
    align(young, old)
    times = in_turns({"old": lambda: touch(old), "young": lambda: touch(young)}, rounds=18)
    show("one row at 5,000 commits / at 10", times["old"], times["young"], 1.5)
    grow(old, 5_000)
    align(young, old)
    for catalog in (young, old):
        catalog.close()
    opened = in_turns({"old": lambda: opening(folder / "old"), "young": lambda: opening(folder / "young")})
    show("opening at 10,000 commits / at 10", opened["old"], opened["young"], 1.5)


def reading(folder: Path) -> None:
    """Time reading every item as typed columns, opening included, against pyarrow and ptars on the same files."""
    with open_catalog(folder / "large") as catalog:
        catalog._stash.consolidate("item")  # noqa: SLF001 - by itself it would come later
    items = [
        file for file in newest_state(folder).files.values() if file.collection == "item" and file.kind is FileKind.BASE
    ]
    paths = [str(folder / "large" / "stash" / file.path) for file in items]
    key, value = codec_for(ItemKey.DESCRIPTOR), codec_for(ItemValue.DESCRIPTOR)

    def bare() -> int:
        rows = 0
        for path in paths:
            table = pq.ParquetFile(path).read(["key", "value"])
            for batch in table.to_batches():
                key.decode(batch["key"])
                rows += len(value.decode(batch["value"]))
        return rows

    def ours() -> int:
        with open_catalog(folder / "large", "read-only") as catalog:
            return int(catalog.table("item").num_rows)

    print(f"  ({bare()} rows bare, {ours()} rows ours)")
    times = in_turns({"ours": ours, "bare": bare}, rounds=15)
    show("typed read of 100,000 rows / pyarrow and ptars", times["ours"], times["bare"], 1.5)


def memory() -> None:
    """Measure the resident memory of a process after many transactions, against fewer."""
    sizes = {count: _resident_mib(count) for count in (1_000, 10_000)}
    print(
        f"resident memory: {sizes[10_000]:.0f} MiB after 10,000 transactions, {sizes[1_000]:.0f} after 1,000:", end=" "
    )
    print(f"{sizes[10_000] / sizes[1_000]:.2f} (at most 1.3)")


def _resident_mib(count: int) -> float:
    code = f"""
import os, tempfile
from benchmarks.store import grow, store
from pathlib import Path
with tempfile.TemporaryDirectory() as name:
    catalog = store(Path(name) / "store", 0)
    grow(catalog, {count})
    pages = int(open("/proc/self/statm").read().split()[1])
    print(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
    catalog.close()
"""
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    return float(done.stdout)


def store(path: Path, items: int) -> Catalog:
    """Return a store led by this process, with items in compacted files."""
    catalog = open_catalog(path)
    for start in range(0, items, 20_000):
        with catalog.transaction() as tx:
            for number in range(start + 1, min(start + 20_000, items) + 1):
                tx.insert(
                    ItemKey(id=number), ItemValue(schema_id=3, name=f"t{number}", owner_id=SYSTEM, create_sql=SQL)
                )
    if items:
        catalog._stash.consolidate("item")  # noqa: SLF001 - by itself it would come later
    return catalog


def insert(catalog: Catalog, number: int) -> None:
    with catalog.transaction() as tx:
        tx.insert(ItemKey(id=number), ItemValue(schema_id=3, name=f"t{number}", owner_id=SYSTEM, create_sql=SQL))


def touch(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        tx.upsert(SettingKey(name="touched"), SettingValue(value=uuid.uuid4().hex))


def grow(catalog: Catalog, commits: int) -> None:
    for _ in range(commits):
        touch(catalog)


def align(*catalogs: Catalog) -> None:
    """Commit to each store until it is just after a checkpoint."""
    every = Policy().checkpoint_every
    for catalog in catalogs:
        while catalog.ts - catalog._stash.log.last_checkpoint() >= every or catalog.ts % every != 1:  # noqa: SLF001 - the distance that is to be equal
            touch(catalog)


def opening(path: Path) -> None:
    with open_catalog(path, "read-only") as catalog:
        _ = catalog.version, catalog.epoch


def newest_state(folder: Path) -> LogState:
    with open_catalog(folder / "large", "read-only") as catalog:
        return catalog._stash.state  # noqa: SLF001 - the files that the peer reads too


class BareTable:
    """Do the same commit with delta-rs alone: one parquet file and one strict commit, with the same fsyncs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.schema = ROWS.insert(0, pa.field("collection", pa.string(), nullable=False))
        DeltaTable.create(str(path), self.schema, partition_by=["collection"])
        self.version = 0
        self.rows = pa.table({"key": [b"k"], "value": [SQL.encode()], "ts": [0], "diff": [1]}, schema=ROWS)

    def commit(self) -> None:
        table = DeltaTable(str(self.path))
        name = f"{uuid.uuid4().hex}.parquet"
        pq.write_table(self.rows, self.path / name, compression="zstd")
        fsync(self.path / name)
        fsync(self.path)
        stats = json.dumps({"numRecords": 1, "minValues": {"ts": 0}, "maxValues": {"ts": 0}, "nullCount": {}})
        size = (self.path / name).stat().st_size
        table.create_write_transaction(
            [AddAction(name, size, {"collection": "item"}, int(time.time() * 1000), True, stats)],  # noqa: FBT003 - positional in deltalake
            mode="append",
            schema=self.schema,
            partition_by=["collection"],
            commit_properties=CommitProperties(
                custom_metadata={"txid": uuid.uuid4().hex}, max_commit_retries=0, app_transactions=[Transaction("e", 1)]
            ),
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
        self.version += 1
        fsync(self.path / "_delta_log" / f"{self.version:020d}.json")
        fsync(self.path / "_delta_log")
        if self.version % Policy().checkpoint_every == 0:
            table.update_incremental()
            table.create_checkpoint()


def fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def in_turns(peers: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, act in peers.items():
            start = time.perf_counter()
            act()
            times[name].append((time.perf_counter() - start) * 1000)
    return times


def show(what: str, ours: list[float], peer: list[float], most: float) -> None:
    ratio = statistics.median(ours) / statistics.median(peer)
    print(f"{what}: {_spread(ours)} against {_spread(peer)}: {ratio:.2f} (at most {most})", flush=True)


def _spread(times: list[float]) -> str:
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle:.1f} ms ({low:.1f}..{high:.1f})"


if __name__ == "__main__":
    main()
