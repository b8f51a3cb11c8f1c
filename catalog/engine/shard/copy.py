"""A copy of a shard: its newest state, in a log of its own whose history begins with it."""

from __future__ import annotations

import uuid

from catalog.engine.base.fence import Fence
from catalog.engine.log.protocol import AppTxn, CommitRequest, FileKind, Log, Operation
from catalog.engine.shard.batches import log_row
from catalog.engine.shard.replica import ShardReplica

_TS = 1
"""Of all that is copied: the first commit of the copy."""


def copy_shard(source: Log, target: Log, fence: Fence) -> int:
    """Copy schemas and batches as they are; return the number of bytes. Raises ShardFinalizedError if it was given up.

    The ts of the stash that it follows is not copied: the rows of a copied stash have another history.
    """
    replica = ShardReplica.open(source)
    state = replica.catch_up()
    target.create(uuid.uuid4().hex)
    files = []
    with replica.retired_if_missing(state.version):
        for file in state.files.values():
            rows = source.read(file)
            row = log_row(rows["key"][0].as_py(), rows["value"][0].as_buffer(), _TS)
            files.append(target.write(file.collection, FileKind.TAIL, fence, row))
    change = CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, tuple(files), app_txns={AppTxn.FRONTIER: _TS})
    target.compare_and_append(target.state(0), change)
    return sum(file.size for file in files)
