"""Maintenance of tables after commits: files become fewer and larger, and what retention has ended for is deleted.

Every writer merges small tail files and spills large tails; a leader also folds collections that are small enough to be
folded in process. No row that a reader sees changes, and nothing is retired that a running change or a bulk write
still reads.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from catalog.engine.base.fence import Fence
from catalog.engine.log.maintenance import MaintenanceResult, Policy, is_cleaned
from catalog.engine.log.protocol import CommitRequest
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.folding import FoldingPolicy, FoldingTask, due, fold, merge_tails, spill
from catalog.engine.schema_change.layers import LayerCache, LayeredView
from catalog.engine.schema_change.replica import BULK_WRITE, SCHEMA_CHANGE, TablesReplica
from catalog.engine.schema_change.schema import STORING, Element, State, TableSchema
from catalog.errors import ConflictError

_ELEMENT = re.compile(r"e\d+")
"""The name of the collection of an element; the engine's own have others."""
_OVER = frozenset({pb.STATUS_SUCCEEDED, pb.STATUS_FAILED, pb.STATUS_CANCELLED})


@dataclass(frozen=True, slots=True)
class TablesUpkeep:
    """The maintenance that a process does after its commits."""

    policy: FoldingPolicy = field(default_factory=FoldingPolicy)
    folds: bool = False
    """Collections are folded too; a leader does that."""
    fold_bytes_max: int = 64 * 2**20
    """Of a collection that is folded after a commit; larger ones are left to `catalog debug compact`."""

    def run(self, replica: TablesReplica, policy: Policy, touched: Iterable[str]) -> MaintenanceResult:
        """Reorganise the collections of a commit as is due, then checkpoint and clean; record errors, raise none.

        The commit before it has landed. With each checkpoint a process that folds looks at all collections, because
        members leave theirs to it.
        """
        done = MaintenanceResult(replica.state)
        with replica.best_effort():
            for collection in sorted(touched):
                self._reorganise(replica, collection)
            done = replica.maintain(with_needs(policy, replica.view.cache))
            if self.folds and done.checkpoint is not None:
                for collection in sorted(replica.view.collections()):
                    self._reorganise(replica, collection)
        return done

    def _reorganise(self, replica: TablesReplica, collection: str) -> None:
        size = sum(file.size for file in replica.view.files_of(collection))
        folds = self.folds and size <= self.fold_bytes_max
        policy = self.policy if folds else replace(self.policy, layers_max=sys.maxsize)
        task = due(replica.view, collection, policy)
        if task is not None:
            reorganise(replica, collection, task, policy)


def reorganise(replica: TablesReplica, collection: str, task: FoldingTask, policy: FoldingPolicy | None = None) -> bool:
    """Carry out a task in one commit, and again if others commit meanwhile; tell if it was committed.

    It is given up if files that it read are gone, or if those that it wrote may have been swept: it is due again.
    """
    replica.require_usable()
    made_at, fence = replica.state.version, replica.state.fence
    request = _request(replica, collection, task, fence, policy)
    while request.removes and all(file.path in replica.state.files for file in request.removes):
        before = replica.state
        if is_cleaned(replica.log, made_at + 1, before.version):
            return False
        try:
            replica.adopt(replica.append(before, request), before)
        except ConflictError:
            replica.catch_up()
        else:
            return True
    return False


def _request(
    replica: TablesReplica, collection: str, task: FoldingTask, fence: Fence, policy: FoldingPolicy | None
) -> CommitRequest:
    log, view = replica.log, replica.view
    match task:
        case FoldingTask.MERGE:
            return merge_tails(log, view, collection, fence, policy)
        case FoldingTask.SPILL:
            return spill(log, view, collection, fence)
        case FoldingTask.FOLD:
            return fold(log, view, collection, fence, keep_tombstones=keeps_tombstones(replica, collection))


def keeps_tombstones(replica: TablesReplica, collection: str) -> bool:
    """Tell if rows that are dated earlier may still come to a collection: removed ones must be remembered until then.

    So it is while an element is built from rows of an earlier ts, and while a bulk write to the table is under way,
    whose files are dated at the ts that it read. Rows keep their own ts as well: a later one would outweigh those.
    """
    found = owner_of(replica.schemas.values(), collection)
    if found is None:
        return False
    schema, element = found
    is_pinned = any(pin.table == schema.id for write in replica.bulk_writes().values() for pin in write.pins)
    return is_pinned or (element.state is not State.PUBLIC and not element.built)


def owner_of(schemas: Iterable[TableSchema], collection: str) -> tuple[TableSchema, Element] | None:
    """Return the table and the element whose rows or entries a collection holds; none if no schema names it."""
    for schema in schemas:
        for element in schema.elements:
            if element.kind in STORING and element.collection == collection:
                return schema, element
    return None


def orphaned_collections(replica: TablesReplica) -> list[str]:
    """Return the collections of elements that no schema names: nothing reads them, and no element gets them again."""
    named = {element.collection for schema in replica.schemas.values() for element in schema.elements}
    return sorted(name for name in replica.view.collections() - named if _ELEMENT.fullmatch(name))


def with_needs(policy: Policy, cache: LayerCache) -> Policy:
    """Return a policy that retires nothing that changes and bulk writes of a log of tables still read."""
    return replace(policy, keep_from=lambda state: oldest_needed(LayeredView(cache, state)))


def oldest_needed(view: LayeredView) -> int | None:
    """Return the earliest ts that an unfinished change or a registered bulk write reads; none if there is none."""
    return min(_needed(view), default=None)


def _needed(view: LayeredView) -> Iterator[int]:
    for _, value in view.rows(SCHEMA_CHANGE):
        change = pb.SchemaChangeValue.FromString(value)
        if change.read_ts and change.status not in _OVER:
            yield change.read_ts
    for _, value in view.rows(BULK_WRITE):
        write = pb.BulkWriteValue.FromString(value)
        if write.read_ts:
            yield write.read_ts
