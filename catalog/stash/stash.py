"""The stash: what opens a log for reading and writing rows.

One writer per process at a time; any number of processes. Every commit is checked against the newest state and made
for exactly that state.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import RLock

from google.protobuf.message import Message

from catalog import notices
from catalog.errors import (
    CatalogError,
    ConflictError,
    DamagedError,
    FencedError,
    InvalidChangeError,
    MissingFileError,
    RetiredError,
    StaleGenerationError,
    TransactionConflictError,
    VersionChangedError,
)
from catalog.log.maintenance import Maintained, Policy, maintain
from catalog.log.protocol import Change, Commit, Fence, FileKind, Log, Mark, Operation
from catalog.notices import Observer, ignore
from catalog.stash.arrays import rows_table
from catalog.stash.checks import check_changes
from catalog.stash.collections import Registry, encode
from catalog.stash.consolidation import Due, Shape, due, merge
from catalog.stash.constraints import Constraints
from catalog.stash.feed import own_changes
from catalog.stash.head import Head
from catalog.stash.transaction import RowChange, Transaction
from catalog.stash.view import Happened, View, load_view


@dataclass(slots=True)
class Stash:
    head: Head
    policy: Policy = field(default_factory=Policy)
    shape: Shape = field(default_factory=Shape)
    postponed: CatalogError | None = None
    """Why maintenance was last left for another time; damage only until the next refresh, which raises it."""
    observer: Observer = ignore
    """Told what maintenance did."""
    cleaned: Callable[[], None] | None = None
    """Told whenever maintenance has cleared away what is no longer retained, which is seldom."""
    _lock: RLock = field(default_factory=RLock)

    @classmethod
    def open(cls, log: Log, registry: Registry, constraints: Constraints, policy: Policy | None = None) -> Stash:
        return cls(Head.open(log, registry, constraints), policy or Policy())

    @property
    def ts(self) -> int:
        return self.head.state.version

    def refresh(self) -> int:
        """See what others have committed; answer the newest ts.

        Damage that maintenance came upon is raised here, once each time it is found: so the next transaction fails
        after the one that it could not undo.
        """
        with self._lock:
            self.head.catch_up()
            if isinstance(self.postponed, DamagedError | InvalidChangeError):
                found, self.postponed = self.postponed, None
                raise found
            return self.ts

    def view(self, as_of: int | None = None) -> View:
        """The rows now, or as they were.

        Whoever keeps a view for longer than it is retained gets RetiredError for what was not read yet; after a refresh
        there is a newer one.
        """
        if as_of is None or as_of == self.ts:
            return self.head.view
        self.head.require_retained(as_of)
        return load_view(self.head.view.bases, self.head.log.state(as_of))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commits on exit; on an exception nothing happens."""
        self.refresh()
        transaction = Transaction(self.head.registry, self.head.view)
        yield transaction
        self.commit(transaction)

    def commit(self, transaction: Transaction, marks: Mapping[Mark, int] | None = None) -> int:
        """Commit a transaction and the marks that change with it; answer its ts, or the present one if none is made."""
        changes = transaction.changes
        with self._lock:
            while changes:
                self.head.catch_up()
                self._require_fence()
                try:
                    if transaction.conflicts_with(self.head.touched_since(transaction.view.state.version)):
                        raise TransactionConflictError(transaction.view.state.version, self.ts)
                    check_changes(self.head, changes)
                    self._append(Operation.TRANSACTION, changes, marks)
                except (ConflictError, RetiredError):  # of what is the newest no more
                    continue
                self._maintain()
                break
            return self.ts

    def take_over(self, generation: int, holder: str, expected: Fence | None = None) -> Fence | None:
        """Become the leader: fence whoever was before; a lower generation than the store's is refused.

        With `expected`, answers none if somebody else has become the leader since that fence.
        """
        with self._lock:
            while True:
                self.head.fence = None
                self.head.catch_up()
                before = self.head.state.fence
                if expected is not None and before != expected:
                    return None
                if generation < before.generation:
                    raise StaleGenerationError(generation, before.generation)
                fence = Fence(generation, before.epoch + 1)
                marks = {Mark.DEPLOY_GENERATION: fence.generation, Mark.EPOCH: fence.epoch}
                try:
                    self._append(Operation.FENCE, self._fence_rows(fence, holder), marks, fence)
                except ConflictError:
                    continue
                self.head.fence = fence
                return fence

    def join(self) -> Fence:
        """Write beside the present leader, until another takes over."""
        with self._lock:
            self.head.fence = None
            self.head.catch_up()
            self.head.fence = self.head.state.fence
            return self.head.fence

    def resume(self, fence: Fence) -> None:
        """Go on under a fence that this process has taken before it changed the types."""
        with self._lock:
            self.head.fence = fence
            self.head.catch_up()

    def _require_fence(self) -> Fence:
        held, current = self.head.fence, self.head.state.fence
        if held is None or held != current:
            raise FencedError(held or Fence(0, 0), current)
        return held

    def _fence_rows(self, fence: Fence, holder: str) -> tuple[RowChange, ...]:
        collection = self.head.registry.named("fence_token")
        key = encode(collection.key_type(scope="store"))
        value = collection.value_type(deploy_generation=fence.generation, epoch=fence.epoch, holder=holder)
        return (RowChange(collection, key, self.head.view.get(collection.name, key), encode(value)),)

    def _append(
        self,
        operation: Operation,
        changes: tuple[RowChange, ...],
        marks: Mapping[Mark, int] | None = None,
        fence: Fence | None = None,
    ) -> Commit:
        state, writer = self.head.state, fence or self._require_fence()
        rows = tail_rows(changes, state.version + 1)
        files = tuple(self.head.log.write(name, FileKind.TAIL, writer, rows_table(own)) for name, own in rows.items())
        change = Change(operation, uuid.uuid4().hex, files, marks=marks or {})
        commit = self._compare_and_append(change)
        self.head.take(commit, rows)
        return commit

    def _compare_and_append(self, change: Change) -> Commit:
        """Commit for the newest state that was seen. Files of whoever was fenced meanwhile are swept: no damage."""
        expected = self.head.state
        try:
            return self.head.log.compare_and_append(expected, change)
        except MissingFileError as swept:
            self.head.catch_up()
            if self.ts == expected.version:
                raise
            raise ConflictError(self.head.log.uri, expected.version, self.ts) from swept

    def allocate(self, name: str, count: int) -> int:
        """Take a block of ids in a commit of its own; answer the first."""
        ids = self.head.registry.named("id_alloc")
        key = ids.key_type(name=name)
        while True:
            try:
                with self.transaction() as transaction:
                    row = transaction.get(key)
                    first = 1 if row is None else int(row.next_id)  # type: ignore[attr-defined]
                    transaction.upsert(key, ids.value_type(next_id=first + count))
            except TransactionConflictError:
                continue
            return first

    def consolidate(self, collection: str) -> None:
        """Make one base of all the files of a collection; no row changes."""
        with self._lock:
            self.head.catch_up()
            self._merge(Due(collection, FileKind.BASE))

    def subscribe(self, key_type: type[Message], since: int) -> Iterator[tuple[Message, Message, int, int]]:
        """Every change after a ts up to the newest, in order: key, value, ts, diff.

        Ends with VersionChangedError where rows have other types, and begins with it if they had others at `since`: it
        names the ts to start again from, with the rows as of then. Raises NoSuchVersionError if `since` is yet to come.
        """
        collection = self.head.registry.of_key(key_type)
        with suppress(VersionChangedError):  # what was committed before is part of the feed
            self.refresh()
        for _, key, value, ts, diff in self.feed({collection.name}, since):
            yield key, value, ts, diff

    def feed(
        self, names: Container[str], since: int, *, until: int | None = None
    ) -> Iterator[tuple[str, Message, Message, int, int]]:
        """The same of several collections, each change with the name of its own, up to a ts or the newest."""
        for commit in self.head.commits(since):
            if until is not None and commit.version > until:
                return
            for name in sorted({file.collection for file in commit.adds if file.collection in names}):
                decode = self.head.registry.named(name).decode
                for key, value, ts, diff in own_changes(self.head.log, commit, name):
                    yield name, *decode(key, value), ts, diff

    def _merge(self, wanted: Due) -> None:
        """Merge, and if others committed meanwhile try again with the same files, unless some of them are gone."""
        change = merge(self.head.log, self.head.view, wanted, self._require_fence())
        while all(file.path in self.head.state.files for file in change.removes):
            try:
                self.head.take(self._compare_and_append(change))
            except ConflictError:
                self.head.catch_up()
            else:
                return

    def _maintain(self) -> None:
        """Do what is due; what cannot be done now is no failure of the transaction before it, and is due again.

        That includes the fence of another leader: the transaction has landed, and the next one is refused. So it is
        with damage, which the next one raises.
        """
        self.postponed = None
        consolidated, done = [], Maintained(self.head.state)
        try:
            for wanted in list(due(self.head.view, self.shape)):
                self._merge(wanted)
                consolidated.append(wanted.collection)
            done = maintain(self.head.log, self.head.state, self.policy)
            self.postponed = done.postponed
            if done.state.version != self.ts:
                self.head.catch_up()
            if done.cleaned and self.cleaned is not None:
                self.cleaned()
        except CatalogError as postponed:
            self.postponed = postponed
        if consolidated or done.checkpoint is not None or self.postponed is not None:
            why = None if self.postponed is None else self.postponed.what
            told = (tuple(consolidated), done.checkpoint, done.frontier, len(done.deleted), why)
            self.observer(notices.Maintained(*told))


def tail_rows(changes: tuple[RowChange, ...], ts: int) -> dict[str, list[Happened]]:
    """What changes do to the tail, by collection: what goes before what comes."""
    rows: dict[str, list[Happened]] = {change.collection.name: [] for change in changes}
    for change in changes:
        if change.before is not None:
            rows[change.collection.name].append((change.key, change.before, ts, -1))
    for change in changes:
        if change.after is not None:
            rows[change.collection.name].append((change.key, change.after, ts, 1))
    return rows
