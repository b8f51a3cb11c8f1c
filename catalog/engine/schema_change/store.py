"""The tables of a store, opened: the commit loop that every write of the tables log goes through.

One writer per process at a time; any number of processes. A commit is drafted under exactly the state that it is made
for; if another one comes first, it is drafted again.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock

from google.protobuf.message import Message

from catalog.engine.base.fence import Fence
from catalog.engine.base.process import require_opener
from catalog.engine.log.maintenance import MaintenanceResult, Policy
from catalog.engine.log.protocol import AppTxn, CommitRequest, DataFile, Log, LogState, Operation, Row
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.maintenance import TablesUpkeep
from catalog.engine.schema_change.replica import FENCE_TOKEN, ID_ALLOC, TablesReplica
from catalog.errors import ConflictError, FencedError, MissingFileError, RetiredError, StaleGenerationError

TABLES_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Draft:
    """The content of a commit that is made for one state: rows for tails, and files that are there already."""

    operation: Operation = Operation.TRANSACTION
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """By collection; their ts is that of the state after the commit."""
    adds: tuple[DataFile, ...] = ()
    removes: tuple[DataFile, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class TablesStore:
    replica: TablesReplica
    policy: Policy = field(default_factory=Policy)
    upkeep: TablesUpkeep = field(default_factory=TablesUpkeep)
    _lock: RLock = field(default_factory=RLock)
    _opened_by: int = field(default_factory=os.getpid)

    @classmethod
    def open(cls, log: Log, policy: Policy | None = None) -> TablesStore:
        return cls(TablesReplica.open(log), policy or Policy())

    @classmethod
    def create(cls, log: Log, generation: int, holder: str) -> TablesStore:
        """Open a log, and make it first if it is not there; it begins under a deploy generation."""
        log.create(uuid.uuid4().hex)
        store = cls.open(log)
        if store.state.app_txns.get(AppTxn.TABLES_FORMAT) is None:
            store.take_over(generation, holder)
        return store

    @property
    def log(self) -> Log:
        return self.replica.log

    @property
    def state(self) -> LogState:
        return self.replica.state

    @property
    def ts(self) -> int:
        return self.state.version

    @property
    def view(self) -> LayeredView:
        return self.replica.view

    def refresh(self) -> int:
        """Adopt what others have committed; return the newest ts."""
        with self.own():
            return self.replica.catch_up().version

    def view_at(self, as_of: int | None) -> LayeredView:
        """Return the rows of now, or of a ts."""
        from catalog.engine.log.maintenance import require_retained  # noqa: PLC0415 - the present needs none

        view = self.replica.view
        if as_of is None or as_of == view.state.version:
            return view
        require_retained(self.log, self.state, as_of)
        return LayeredView(view.cache, self.log.state(as_of))

    @contextmanager
    def own(self) -> Iterator[None]:
        """Hold the lock; a forked child is refused before, because its parent may have held it."""
        require_opener(self._opened_by, f"the open tables of {self.log.uri}")
        with self._lock:
            yield

    def commit(self, draft_for: Callable[[TablesReplica], Draft | None]) -> int:
        """Commit what a function drafts for the newest state, again if another commit comes first; return its ts.

        Without a draft there is no commit, and the ts is the present one.
        """
        with self.own():
            while True:
                before = self.replica.catch_up()
                fence = self._require_fence()
                try:
                    draft = draft_for(self.replica)
                    if draft is None:
                        return before.version
                    rows = {name: list(own) for name, own in draft.rows.items() if own}
                    tails = tuple(self.log.write_tail(name, fence, own) for name, own in rows.items())
                    request = CommitRequest(
                        draft.operation, uuid.uuid4().hex, (*tails, *draft.adds), draft.removes, {}, draft.details
                    )
                    commit = self.replica.append(before, request)
                    self.replica.adopt(commit, before, rows)
                except (ConflictError, RetiredError):
                    continue
                self.upkeep.run(self.replica, self.policy, {file.collection for file in request.adds})
                return commit.version

    def take_over(self, generation: int, holder: str) -> Fence:
        """Fence every process of a lower generation; a leader of the same one leaves the fence alone."""
        with self.own():
            while True:
                self.replica.fence = None
                state = self.replica.catch_up()
                held = state.fence
                if generation < held.generation:
                    raise StaleGenerationError(generation, held.generation)
                if generation == held.generation and state.app_txns.get(AppTxn.TABLES_FORMAT):
                    self.replica.fence = held
                    return held
                fence = Fence(generation, held.epoch + 1)
                value = pb.FenceTokenValue(deploy_generation=generation, epoch=fence.epoch, holder=holder)
                row = (encoded(pb.FenceTokenKey(scope="tables")), encoded(value), state.version + 1, 1)
                marks = {
                    AppTxn.DEPLOY_GENERATION: fence.generation,
                    AppTxn.EPOCH: fence.epoch,
                    AppTxn.TABLES_FORMAT: TABLES_FORMAT,
                }
                try:
                    file = self.log.write_tail(FENCE_TOKEN, fence, [row])
                    request = CommitRequest(Operation.FENCE, uuid.uuid4().hex, (file,), app_txns=marks)
                    self.replica.adopt(self.replica.append(state, request), state, {FENCE_TOKEN: [row]})
                except (ConflictError, RetiredError, MissingFileError):
                    continue
                self.replica.fence = fence
                return fence

    def join(self) -> Fence:
        """Write under the fence that is there, until a leader of a higher generation comes."""
        with self.own():
            self.replica.fence = None
            self.replica.fence = self.replica.catch_up().fence
            return self.replica.fence

    def allocate(self, name: str, count: int = 1) -> int:
        """Take ids in a commit of their own; return the first. Gaps are allowed, and no id comes twice."""
        taken = 0

        def draft(replica: TablesReplica) -> Draft:
            nonlocal taken
            found = replica.message(ID_ALLOC, pb.IdAllocKey(name=name), pb.IdAllocValue)
            taken = found.next_id if isinstance(found, pb.IdAllocValue) else 1
            return Draft(
                rows={
                    ID_ALLOC: put(replica, ID_ALLOC, pb.IdAllocKey(name=name), pb.IdAllocValue(next_id=taken + count))
                }
            )

        self.commit(draft)
        return taken

    def _require_fence(self) -> Fence:
        held, current = self.replica.fence, self.state.fence
        if held is None or held != current:
            raise FencedError(held or Fence(0, 0), current)
        return held

    def maintain(self) -> MaintenanceResult:
        """Merge files, checkpoint, move the frontier of retention and delete files, as far as that is due."""
        with self.own():
            return self.upkeep.run(self.replica, self.policy, self.view.collections())


def encoded(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def put(replica: TablesReplica, collection: str, key: Message, value: Message | None) -> list[Row]:
    """Return the tail rows that put a row of the engine's own, or remove it."""
    name, ts = encoded(key), replica.state.version + 1
    before = replica.view.get(collection, name)
    rows: list[Row] = [] if before is None else [(name, before, ts, -1)]
    if value is not None:
        rows.append((name, encoded(value), ts, 1))
    return rows
