"""Delta tables through delta-rs; the only module that imports `deltalake`, and loaded only where a table is needed."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction  # noqa: TID251
from deltalake.transaction import AddAction, RemoveAction  # noqa: TID251 - here, and nowhere else

from catalog.engine.log.delta_entries import metadata, stats
from catalog.engine.log.protocol import MERGING, ROWS, CommitRequest, LogState

_SCHEMA = ROWS.insert(0, pa.field("collection", pa.string(), nullable=False))
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_PROPERTIES = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
"""Checkpoints forget removed files at once; the files themselves stay until our own vacuum."""


def create_table(uri: str, options: Mapping[str, str], change: CommitRequest, now_ms: int) -> None:
    nothing = LogState(-1, {}, {})
    DeltaTable.create(
        uri,
        _SCHEMA,
        mode="error",
        partition_by=["collection"],
        configuration=dict(_PROPERTIES),
        storage_options=dict(options),
        commit_properties=CommitProperties(custom_metadata=metadata(nothing, change, now_ms), max_commit_retries=0),
        post_commithook_properties=_NO_HOOKS,
    )


def open_table(uri: str, options: Mapping[str, str], version: int | None) -> DeltaTable:
    """Open a table at a version, or at its newest."""
    return DeltaTable(uri, version=version, storage_options=dict(options))


def append(table: DeltaTable, expected: LogState, change: CommitRequest, now_ms: int) -> None:
    """Commit a change to a table that is open at the expected version as the one after it, or raise; never later."""
    data_change = change.operation not in MERGING
    actions: list[AddAction | RemoveAction] = [
        AddAction(file.path, file.size, {"collection": file.collection}, now_ms, data_change, stats(file))
        for file in change.adds
    ]
    actions += [
        RemoveAction(file.path, data_change, now_ms, file.size, {"collection": file.collection})
        for file in change.removes
    ]
    table.create_write_transaction(
        actions,
        mode="append",
        schema=_SCHEMA,
        partition_by=["collection"],
        commit_properties=CommitProperties(
            custom_metadata=metadata(expected, change, now_ms),
            max_commit_retries=0,
            app_transactions=[Transaction(name, number) for name, number in change.app_txns.items()],
        ),
        post_commithook_properties=_NO_HOOKS,
    )
