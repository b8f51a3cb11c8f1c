"""The engine's own rows of a store while its types change, with the newest state and the fence.

Engine collections have one encoding at every version, so they can be read and written without knowing any other type.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import Message

from catalog.engine.base.fence import Fence
from catalog.engine.log.protocol import AppTxn, Commit, CommitRequest, DataFile, Log, LogState, Operation
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.transaction import RowChange, tail_rows
from catalog.engine.stash.view import BaseFileCache, View, load_view
from catalog.errors import FencedError


@dataclass(slots=True)
class SystemRows:
    """The engine's collections at the newest known state.

    >>> system_rows = SystemRows(log, registry, state.fence, state)
    >>> system_rows.refresh()
    >>> system_rows.rows("migration_event")
    """

    log: Log
    registry: Registry
    """Of any version: only its engine collections are used."""
    fence: Fence
    state: LogState
    _bases: BaseFileCache = field(init=False)
    _views: dict[str, View] = field(init=False, default_factory=dict)
    """Views of the newest known state, or of earlier ones."""

    def __post_init__(self) -> None:
        self._bases = BaseFileCache(self.log)

    @property
    def version(self) -> int:
        return self.state.app_txns[AppTxn.STASH_VERSION]

    def refresh(self) -> list[Commit]:
        """Advance to the newest state and return the commits since; raise if another leader took over."""
        commits = list(self.log.commits(self.state.version + 1, self.log.head(self.state.version)))
        for commit in commits:
            self.state = self.state.after(commit)
        if self.state.fence != self.fence:
            raise FencedError(self.fence, self.state.fence)
        return commits

    def rows(self, collection: str) -> list[tuple[Message, Message]]:
        """Return every row of an engine collection, in the order of keys."""
        kind = self.registry.named(collection)
        return [kind.decode(key, value) for key, value in self.view(collection).rows(collection)]

    def view(self, collection: str) -> View:
        """Return the rows of a collection; its files are read once at each state."""
        found = self._views.get(collection)
        if found is None or found.state is not self.state:
            found = self._views[collection] = load_view(self._bases, self.state, (collection,))
        return found

    def change(self, key: Message, value: Message | None) -> RowChange:
        """Return the change that sets, or deletes, a row of an engine collection."""
        collection, encoded = self.registry.of_key(key), encode(key)
        before = self.view(collection.name).get(collection.name, encoded)
        return RowChange(collection, encoded, before, None if value is None else encode(value))

    def append(
        self,
        operation: Operation,
        rows: Sequence[RowChange],
        marks: Mapping[AppTxn, int],
        *,
        adds: Iterable[DataFile] = (),
        removes: Iterable[DataFile] = (),
        details: Mapping[str, str] | None = None,
    ) -> Commit:
        """Commit rows and files on the newest known state; raise ConflictError if there is a newer one."""
        by_collection = tail_rows(tuple(rows), self.state.version + 1)
        tails = [self.log.write_tail(name, self.fence, own) for name, own in by_collection.items() if own]
        change = CommitRequest(operation, uuid.uuid4().hex, (*adds, *tails), tuple(removes), marks, details or {})
        commit = self.log.compare_and_append(self.state, change)
        self.state = self.state.after(commit)
        return commit
