"""Copies of the newest state of a store: scratch copies, and the base of `catalog debug copy`."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, DataFile, FileKind, Log, LogState, Operation
from catalog.engine.schema_change.copying import copy_tables, tables_state
from catalog.engine.shard.copy import copy_shard
from catalog.engine.stash.compaction import base_tables
from catalog.engine.stash.engine_rows import STORAGE
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.engine.storage.base import map_concurrently, open_storage
from catalog.engine.storage.identity import make_identity
from catalog.engine.storage.layout import SHARDS, shard_ids
from catalog.errors import RetiredError, ShardFinalizedError

RowRewrite = Callable[[int, str, pa.Table], pa.Table]
"""Replaces the rows of a version and a collection by others, in the order of their keys; none is about a shard."""

ProgressCallback = Callable[[int, int], None]
"""Receives the rows written so far and the rows of the files to copy; both start again if the copy does."""


def scratch_copy(
    source: StorePlace,
    log: Log,
    state: LogState,
    folder: Path,
    *,
    with_shards: bool = False,
    with_tables: bool = False,
) -> StorePlace:
    """Copy a state to an empty folder of this process, which leads it there under the same fence.

    Tables are copied as they are now: unlike shards, no row of the stash says what is in them.
    """
    target = StorePlace.at(source.project, folder)
    copy = target.log()
    copy.create(uuid.uuid4().hex)
    if with_shards:
        copy_shards(source, target, log, state)
    while with_tables and (newest := tables_state(source.tables_log())) is not None:
        with suppress(RetiredError):  # while it was copied: there is a newer state
            copy_tables(source.tables_log(), newest, target.tables_log())
            break
    copy_state(log, state, copy)
    make_identity(target.storage, source.project.name)
    return target


def copy_shards(source: StorePlace, target: StorePlace, log: Log, state: LogState) -> None:
    """Copy every shard that an object of a state uses, over the remains of an earlier attempt.

    Raises RetiredError if a shard was finalised since: a newer state does not use it.
    """
    clear_folder(target, SHARDS)
    for shard in sorted(_used_shards(source, log, state)):
        try:
            copy_shard(source.shard_log(shard), target.shard_log(shard), state.fence)
        except ShardFinalizedError as gone:
            raise RetiredError(log.uri, state.version, log.head(state.version)) from gone


def clear_folder(target: StorePlace, name: str) -> None:
    """Remove the remains of an earlier attempt to copy what is in a folder of a store."""
    remains = open_storage(f"{target.uri}/{name}", target.options)
    paths = [entry.path for entry in remains.entries()]
    map_concurrently(remains, remains.delete, paths)
    for folder in sorted({path.rpartition("/")[0] for path in paths}, reverse=True):
        remains.remove_folder(folder)  # else it would be taken for a file of another program


def _used_shards(source: StorePlace, log: Log, state: LogState) -> frozenset[str]:
    """Find the shards whose ids occur in rows: an id is like nothing else, so rows of any version can be searched."""
    present = shard_ids(source.storage)
    values = (
        batch["value"].buffers()[2].to_pybytes()
        for table in load_view(BaseFileCache(log), state, [STORAGE]).tables(STORAGE)
        for batch in table.to_batches()
    )
    return frozenset(shard for value in values for shard in present if shard.encode() in value)


def copy_state(
    source: Log,
    state: LogState,
    target: Log,
    progress: ProgressCallback | None = None,
    rewrite: RowRewrite | None = None,
) -> tuple[DataFile, ...]:
    """Write the rows and marks of a state to an empty log, whose history begins with them; return its files."""
    total, rows = sum(file.rows for file in state.files.values()), 0
    bases, files = BaseFileCache(source), list[DataFile]()
    try:
        for name in sorted({file.collection for file in state.files.values()}):
            for table in base_tables(load_view(bases, state, [name]), name, ts=0):
                if rewrite is not None:
                    table = rewrite(state.app_txns[AppTxn.STASH_VERSION], name, table)  # noqa: PLW2901 - its rows, rewritten
                if table.num_rows:
                    files.append(target.write(name, FileKind.BASE, state.fence, table))
                rows += table.num_rows
                if progress is not None:
                    progress(rows, total)
    except RetiredError:
        target.delete([file.path for file in files])
        raise
    marks = {**state.app_txns, AppTxn.FRONTIER: 1, AppTxn.RUNNING_STEP: 0}
    target.compare_and_append(
        target.state(0), CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, tuple(files), app_txns=marks)
    )
    return tuple(files)
