"""The newest state that this process has seen, and what it keeps of it in memory.

Commits are taken in one at a time and in order, so a fence is seen before any row that was written under it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.errors import FencedError, VersionChangedError
from catalog.log.protocol import Commit, Fence, Log, Mark, Operation, State
from catalog.stash.collections import Registry
from catalog.stash.constraints import Constraints
from catalog.stash.index import Index
from catalog.stash.view import Bases, Happened, View, changes, load_overlay, load_view, overlaid

_RECENT_MAX = 1024
Touched = frozenset[tuple[str, bytes]]
"""Rows by collection and key."""


@dataclass(slots=True)
class Head:
    log: Log
    registry: Registry
    constraints: Constraints
    view: View
    fence: Fence | None = None
    """The token that this process writes under; none if it only reads."""
    _indexes: dict[str, Index] = field(default_factory=dict)
    _recent: deque[tuple[int, Touched]] = field(default_factory=lambda: deque(maxlen=_RECENT_MAX))

    @classmethod
    def open(cls, log: Log, registry: Registry, constraints: Constraints) -> Head:
        return cls(log, registry, constraints, load_view(Bases(log), log.state(log.verify())))

    @property
    def state(self) -> State:
        return self.view.state

    def catch_up(self) -> None:
        """Take in what others have committed."""
        for commit in self.log.commits(self.state.version + 1, self.log.head(self.state.version)):
            self.take(commit)

    def take(self, commit: Commit, own: Mapping[str, list[Happened]] | None = None) -> None:
        """Take in the next commit; of its own commits a process knows the rows, by collection, without reading them."""
        version_before = self.state.marks.get(Mark.STASH_VERSION)
        state = self.state.after(commit)
        overlays = dict(self.view.overlays)
        touched: set[tuple[str, bytes]] = set()
        if commit.operation in {Operation.TRANSACTION, Operation.FENCE}:
            for file in commit.adds:
                happened = changes(self.log, [file]) if own is None else own[file.collection]
                overlays[file.collection] = overlaid(overlays.get(file.collection, {}), happened)
                touched.update((file.collection, key) for key, *_ in happened)
                if file.collection in self._indexes:
                    self._indexes[file.collection].apply((key, value, diff) for key, value, _, diff in happened)
        else:
            removed = {self.state.files[path].collection for path in commit.removed_paths}
            for collection in removed | {file.collection for file in commit.adds}:
                overlays[collection] = load_overlay(self.log, state, collection)
        self.view = View(self.view.bases, state, overlays)
        self._recent.append((commit.version, frozenset(touched)))
        if state.marks.get(Mark.STASH_VERSION) != version_before and version_before is not None:
            raise VersionChangedError(version_before, state.marks[Mark.STASH_VERSION], commit.version)
        if self.fence is not None and state.fence != self.fence:
            raise FencedError(self.fence, state.fence)

    def touched_since(self, version: int) -> Touched:
        """The rows that were changed after a version."""
        known = {number: touched for number, touched in self._recent if number > version}
        for number in range(version + 1, self.state.version + 1):
            if number not in known:
                known[number] = self._touched(self.log.commit(number))
        return frozenset().union(*known.values())

    def index(self, collection: str) -> Index:
        """The index of a collection as of now."""
        if collection not in self._indexes:
            index = Index(self.registry.named(collection), self.registry, self.constraints)
            index.apply((key, value, 1) for key, value in self.view.rows(collection))
            self._indexes[collection] = index
        return self._indexes[collection]

    def _touched(self, commit: Commit) -> Touched:
        if commit.operation not in {Operation.TRANSACTION, Operation.FENCE}:
            return frozenset()
        keys = [(file.collection, self.log.read(file, ["key"])["key"].to_pylist()) for file in commit.adds]
        return frozenset((collection, key) for collection, found in keys for key in found)
