"""The store as its leader sees it while types change: the newest state, the fence, and the engine's own rows.

Engine collections have one encoding at every version, so whoever runs or undoes a step can read and write them without
knowing the types of anything else.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import Message

from catalog.errors import FencedError
from catalog.log.protocol import Change, Commit, DataFile, Fence, FileKind, Log, Mark, Operation, State
from catalog.stash.arrays import rows_table
from catalog.stash.collections import Registry, encode
from catalog.stash.stash import tail_rows
from catalog.stash.transaction import RowChange
from catalog.stash.view import Bases, View, load_view


@dataclass(slots=True)
class Journal:
    log: Log
    registry: Registry
    """Of any version: only engine collections are asked for."""
    fence: Fence
    state: State
    _bases: Bases = field(init=False)

    def __post_init__(self) -> None:
        self._bases = Bases(self.log)

    @property
    def version(self) -> int:
        return self.state.marks[Mark.STASH_VERSION]

    def refresh(self) -> list[Commit]:
        """Take in what was committed since, and answer it; raises if another leader took over."""
        commits = list(self.log.commits(self.state.version + 1, self.log.head(self.state.version)))
        for commit in commits:
            self.state = self.state.after(commit)
        if self.state.fence != self.fence:
            raise FencedError(self.fence, self.state.fence)
        return commits

    def rows(self, collection: str) -> list[tuple[Message, Message]]:
        """Every row of an engine collection, in the order of keys."""
        kind = self.registry.named(collection)
        return [kind.decode(key, value) for key, value in self.view(collection).rows(collection)]

    def view(self, collection: str) -> View:
        return load_view(self._bases, self.state, (collection,))

    def change(self, key: Message, value: Message | None) -> RowChange:
        """An upsert, or a deletion, of a row of an engine collection."""
        collection, encoded = self.registry.of_key(key), encode(key)
        before = self.view(collection.name).get(collection.name, encoded)
        return RowChange(collection, encoded, before, None if value is None else encode(value))

    def append(
        self,
        operation: Operation,
        rows: Sequence[RowChange],
        marks: Mapping[Mark, int],
        *,
        adds: Iterable[DataFile] = (),
        removes: Iterable[DataFile] = (),
        details: Mapping[str, str] | None = None,
    ) -> Commit:
        """Commit rows and files for the newest state known; raises ConflictError if there is a newer one."""
        dated = tail_rows(tuple(rows), self.state.version + 1)
        tails = [self.log.write(name, FileKind.TAIL, self.fence, rows_table(own)) for name, own in dated.items() if own]
        change = Change(operation, uuid.uuid4().hex, (*adds, *tails), tuple(removes), marks, details or {})
        commit = self.log.compare_and_append(self.state, change)
        self.state = self.state.after(commit)
        return commit
