"""A copy of a shard: its newest state, in a log of its own whose history begins with it."""

from __future__ import annotations

import uuid

from catalog.log.protocol import Change, Fence, FileKind, Log, Mark, Operation
from catalog.shard.batches import log_row
from catalog.shard.head import Head

_TS = 1
"""Of all that is copied: the first commit of the copy."""


def copy_shard(source: Log, target: Log, fence: Fence) -> int:
    """Copy schemas and batches as they are; answer how many bytes. Raises ShardFinalizedError if it was given up.

    What it follows of a stash is not copied: the rows of a copied stash have another history.
    """
    head = Head.open(source)
    state = head.catch_up()
    target.create(uuid.uuid4().hex)
    files = []
    with head.there(state.version):
        for file in state.files.values():
            rows = source.read(file)
            row = log_row(rows["key"][0].as_py(), rows["value"][0].as_buffer(), _TS)
            files.append(target.write(file.collection, FileKind.TAIL, fence, row))
    change = Change(Operation.TRANSACTION, uuid.uuid4().hex, tuple(files), marks={Mark.FRONTIER: _TS})
    target.compare_and_append(target.state(0), change)
    return sum(file.size for file in files)
