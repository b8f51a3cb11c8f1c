"""The stash: what opens a log for reading and writing rows.

One writer per process at a time; any number of processes. Every commit is checked against the newest state and made
for exactly that state.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import RLock

from google.protobuf.message import Message

from catalog import events
from catalog.engine.base.fence import Fence
from catalog.engine.base.process import require_opener
from catalog.engine.log.maintenance import MaintenanceResult, Policy, is_cleaned
from catalog.engine.log.protocol import AppTxn, CommitRequest, FileKind, Log, LogState, Operation
from catalog.engine.stash.change_feed import ChangeFeed
from catalog.engine.stash.compaction import CompactionPolicy, CompactionTask, due, merge
from catalog.engine.stash.constraint_fit import require_fit
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.engine_rows import ALLOCATORS, ENGINE_COLLECTIONS, ID_MAX, following
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.replica import StashReplica
from catalog.engine.stash.transaction import RowChange, Transaction, tail_rows
from catalog.engine.stash.view import TailRow, View, load_view
from catalog.errors import (
    CatalogError,
    ConflictError,
    DamagedError,
    FencedError,
    IdsExhaustedError,
    InvalidChangeError,
    RetiredError,
    StaleGenerationError,
    TransactionConflictError,
    VersionChangedError,
)
from catalog.events import Observer, ignore


@dataclass(slots=True)
class Stash:
    """The rows of a store, and its one way to change them.

    >>> with stash.transaction() as transaction:
    ...     transaction.insert(RoleKey(id=1), RoleValue(name="admin"))
    """

    replica: StashReplica
    policy: Policy = field(default_factory=Policy)
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    observer: Observer = ignore
    """Receives an event after each maintenance that did something."""
    on_cleaned: Callable[[], None] | None = None
    """Called after each maintenance that deleted what is no longer retained."""
    protected: frozenset[str] = ENGINE_COLLECTIONS
    """Collections that a program's transactions do not write."""
    _lock: RLock = field(default_factory=RLock)
    _opened_by: int = field(default_factory=os.getpid)

    @classmethod
    def open(cls, log: Log, registry: Registry, constraints: Constraints, policy: Policy | None = None) -> Stash:
        """Open the newest state of a log; refuse constraints that do not fit the types."""
        require_fit(registry, constraints)
        return cls(StashReplica.open(log, registry, constraints), policy or Policy())

    @property
    def log(self) -> Log:
        return self.replica.log

    @property
    def registry(self) -> Registry:
        return self.replica.registry

    @property
    def state(self) -> LogState:
        """Return the newest state that this process has seen."""
        return self.replica.state

    @property
    def fence(self) -> Fence | None:
        """Return the fence that this process writes under; none if it only reads. The store's is `state.fence`."""
        return self.replica.fence

    @property
    def last_error(self) -> CatalogError | None:
        """Return why the last maintenance was not completed; damage only until the next refresh, which raises it."""
        return self.replica.last_error

    @property
    def ts(self) -> int:
        return self.state.version

    def refresh(self) -> int:
        """Adopt what others have committed; return the newest ts.

        Damage that maintenance found is raised here, once each time: the transaction before it has landed, and the next
        one fails.
        """
        with self._own():
            self.replica.catch_up()
            if isinstance(self.last_error, DamagedError | InvalidChangeError):
                found, self.replica.last_error = self.last_error, None
                raise found
            return self.ts

    def view(self, as_of: int | None = None) -> View:
        """Return the rows of now, or of a ts.

        Once a view is no longer retained, rows of it that were not read yet raise RetiredError; after a refresh there
        is a newer view.
        """
        self.require_opener()
        newest = self.replica.view
        if as_of is None or as_of == newest.state.version:
            return newest
        self.replica.require_retained(as_of)
        return load_view(newest.bases, self.log.state(as_of))

    @contextmanager
    def transaction(self, protected: frozenset[str] | None = None) -> Iterator[Transaction]:
        """Begin a transaction that commits on exit, and does nothing on an exception; afterwards it is over.

        Only the engine's own code names other collections as protected than those of the stash.
        """
        self.refresh()
        transaction = Transaction(self.registry, self.replica.view, self.protected if protected is None else protected)
        try:
            yield transaction
            self.commit(transaction)
        finally:
            transaction.end()

    def commit(self, transaction: Transaction, app_txns: Mapping[AppTxn, int] | None = None) -> int:
        """Commit a transaction and the app transactions that change with it; return its ts.

        Without a change there is no commit, and the ts is the present one. The steps: check, write files, append,
        adopt, maintain. If another commit comes first, they begin again at the newest state.
        """
        transaction.require_open("commit")
        changes = transaction.changes
        with self._own():
            while changes:
                before = self.replica.catch_up()
                fence = self._require_fence()
                try:
                    self._check(transaction, changes)
                    request, rows = self._write_files(Operation.TRANSACTION, changes, app_txns or {}, fence)
                    commit = self.replica.append(before, request)
                    self.replica.adopt(commit, before, rows)
                except (ConflictError, RetiredError):
                    continue
                self._maintain()
                break
            return self.ts

    def require_opener(self) -> None:
        """Refuse to go on in a child that was forked from the process that opened the stash."""
        require_opener(self._opened_by, f"the open store {self.log.uri}")

    @contextmanager
    def _own(self) -> Iterator[None]:
        """Hold the lock; a forked child is refused before, because its parent may have held it."""
        self.require_opener()
        with self._lock:
            yield

    def _check(self, transaction: Transaction, changes: tuple[RowChange, ...]) -> None:
        """Refuse changes that depend on rows which others have changed, or that break a constraint."""
        if transaction.conflicts_with(self.replica.touched_since(transaction.view.state.version)):
            raise TransactionConflictError(transaction.view.state.version, self.ts)
        from catalog.engine.stash.constraint_checks import check_changes  # noqa: PLC0415 - a process may only lead

        check_changes(self.replica, changes)

    def _write_files(
        self, operation: Operation, changes: tuple[RowChange, ...], app_txns: Mapping[AppTxn, int], fence: Fence
    ) -> tuple[CommitRequest, dict[str, list[TailRow]]]:
        """Write a file for each collection; return the commit that adds them, and their rows."""
        rows = tail_rows(changes, self.ts + 1)
        files = tuple(self.log.write_tail(name, fence, own) for name, own in rows.items())
        return CommitRequest(operation, uuid.uuid4().hex, files, app_txns=app_txns), rows

    def take_over(
        self,
        generation: int,
        holder: str,
        expected: Fence | None = None,
        notes: Callable[[View], Mapping[str, str]] | None = None,
    ) -> Fence | None:
        """Become the leader and fence the one before; refuse a lower generation than the store's.

        With `expected`, return none if another process has become the leader since that fence. `notes` judges exactly
        the rows that are taken over: it raises to leave them alone, or returns texts of `config` to write beside them.
        """
        with self._own():
            while True:
                self.replica.fence = None
                state = self.replica.catch_up()
                if expected is not None and state.fence != expected:
                    return None
                if generation < state.fence.generation:
                    raise StaleGenerationError(generation, state.fence.generation)
                fence = Fence(generation, state.fence.epoch + 1)
                app_txns = {AppTxn.DEPLOY_GENERATION: fence.generation, AppTxn.EPOCH: fence.epoch}
                try:
                    changes = (*self._fence_rows(fence, holder), *self._noted(notes))
                    request, rows = self._write_files(Operation.FENCE, changes, app_txns, fence)
                    self.replica.adopt(self.replica.append(state, request), state, rows)
                except (ConflictError, RetiredError):
                    continue
                self.replica.fence = fence
                return fence

    def join(self) -> Fence:
        """Write beside the present leader, until another takes over."""
        with self._own():
            self.replica.fence = None
            self.replica.fence = self.replica.catch_up().fence
            return self.replica.fence

    def resume(self, fence: Fence) -> None:
        """Go on under a fence that this process has taken before it changed the types."""
        with self._own():
            self.replica.fence = fence
            self.replica.catch_up()

    def _require_fence(self) -> Fence:
        held, current = self.fence, self.state.fence
        if held is None or held != current:
            raise FencedError(held or Fence(0, 0), current)
        return held

    def _fence_rows(self, fence: Fence, holder: str) -> tuple[RowChange, ...]:
        collection = self.registry.named("fence_token")
        key = encode(collection.key_type(scope="store"))
        value = collection.value_type(deploy_generation=fence.generation, epoch=fence.epoch, holder=holder)
        return (RowChange(collection, key, self.replica.view.get(collection.name, key), encode(value)),)

    def _noted(self, notes: Callable[[View], Mapping[str, str]] | None) -> Iterator[RowChange]:
        view, collection = self.replica.view, self.registry.named("config")
        for name, text in ({} if notes is None else notes(view)).items():
            key = encode(collection.key_type(name=name))
            value = encode(collection.value_type(text=text))
            yield RowChange(collection, key, view.get(collection.name, key), value)

    def allocate(self, name: str, count: int) -> int:
        """Take a block of ids in a commit of its own; return the first."""
        ids = self.registry.named(ALLOCATORS)
        key = ids.key_type(name=name)
        while True:
            try:
                with self.transaction() as transaction:
                    row = transaction.get(key)
                    first = following(ids, None if row is None else encode(row))
                    if first + count > ID_MAX:
                        raise IdsExhaustedError(name, first, count)
                    transaction.upsert(key, ids.value_type(next_id=first + count))
            except TransactionConflictError:
                continue
            return first

    def allocators(self) -> frozenset[str]:
        """Return the names that ids can be taken by: those of collections, and those that have a row already.

        The engine's collections have no ids. A project declares any other name by a row of its own.
        """
        ids = self.registry.named(ALLOCATORS)
        keys = (ids.key_type.FromString(key) for key, _ in self.view().rows(ids.name))
        return frozenset(self.registry.by_name) - ENGINE_COLLECTIONS - {ALLOCATORS} | {key.name for key in keys}  # type: ignore[attr-defined]

    def subscribe(self, key_type: type[Message], since: int) -> Iterator[tuple[Message, Message, int, int]]:
        """Yield every change after a ts up to the newest, in order: key, value, ts, diff.

        Raises VersionChangedError where rows have other types, or if they had others at `since`; the error names the ts
        to start again from, with the rows as of then. Raises NoSuchVersionError if `since` is yet to come.
        """
        collection = self.registry.of_key(key_type)
        with suppress(VersionChangedError):  # what was committed before is part of the feed
            self.refresh()
        for _, key, value, ts, diff in self.feed({collection.name}, since):
            yield key, value, ts, diff

    def feed(
        self, names: Container[str], since: int, *, until: int | None = None
    ) -> Iterator[tuple[str, Message, Message, int, int]]:
        """Yield the changes of several collections, each with the name of its own, up to a ts or the newest."""
        for commit in self.replica.commits(since):
            if until is not None and commit.version > until:
                return
            for name in sorted({file.collection for file in commit.adds if file.collection in names}):
                decode = self.registry.named(name).decode
                for key, value, ts, diff in ChangeFeed(self.log, name, self.replica.row_version).changes(commit):
                    yield name, *decode(key, value), ts, diff

    def consolidate(self, collection: str) -> None:
        """Make one base of all the files of a collection; no row changes."""
        with self._own():
            self.replica.catch_up()
            self._compact(CompactionTask(collection, FileKind.BASE))

    def _compact(self, task: CompactionTask) -> None:
        """Merge files; if others commit meanwhile, try again with the same files unless some of them are gone."""
        made_at = self.state.version
        request = merge(self.log, self.replica.view, task, self._require_fence())
        while all(file.path in self.state.files for file in request.removes):
            before = self.state
            if is_cleaned(self.log, made_at + 1, before.version):
                return  # the files may be deleted; it is due again
            try:
                self.replica.adopt(self.replica.append(before, request), before)
            except ConflictError:
                self.replica.catch_up()
            else:
                return

    def maintain(self) -> None:
        """Compact, checkpoint and clean as is due: a process that only leads makes no other commit after which it is
        done.
        """
        with self._lock:
            self._maintain()

    def _maintain(self) -> None:
        """Compact, checkpoint and clean as is due. No error of that is an error of the commit before it.

        That includes the fence of another leader, which the next transaction meets, and damage, which it raises.
        """
        compacted: list[str] = []
        done = MaintenanceResult(self.state)
        with self.replica.best_effort():
            for task in list(due(self.replica.view, self.compaction)):
                self._compact(task)
                compacted.append(task.collection)
            done = self.replica.maintain(self.policy)
            if done.cleaned and self.last_error is None and self.on_cleaned is not None:
                self.on_cleaned()
        if compacted or done.checkpoint is not None or self.last_error is not None:
            why = None if self.last_error is None else self.last_error.what
            deleted = len(done.deleted)
            self.observer(events.Maintained(tuple(compacted), done.checkpoint, done.frontier, deleted, why))
