"""The newest state that this process has seen, and what it keeps of it in memory.

Commits are taken in one at a time and in order, so a fence is seen before any row that was written under it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from catalog.errors import (
    FencedError,
    MissingFileError,
    RetiredError,
    TransactionConflictError,
    VersionChangedError,
)
from catalog.log.maintenance import require_retained
from catalog.log.protocol import Commit, Fence, Log, Mark, Operation, State
from catalog.stash.collections import Registry
from catalog.stash.constraints import Constraints
from catalog.stash.feed import require_reached, require_served_at, served_commits, version_change
from catalog.stash.index import Index
from catalog.stash.view import Bases, Happened, View, changes, load_overlay, load_view, overlaid, there_or_retired

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
    serves: int | None = None
    """The version of the rows that this process serves; none until there is one."""
    _served_since: int = 0
    """A ts since which no row of another version was seen."""
    _changed: VersionChangedError | None = None
    """Where that ended."""
    _indexes: dict[str, Index] = field(default_factory=dict)
    _recent: deque[tuple[int, Touched]] = field(default_factory=lambda: deque(maxlen=_RECENT_MAX))

    @classmethod
    def open(cls, log: Log, registry: Registry, constraints: Constraints) -> Head:
        view = load_view(Bases(log), log.state(log.verify()))
        serves = view.state.marks.get(Mark.STASH_VERSION)
        return cls(log, registry, constraints, view, serves=serves, _served_since=view.state.version)

    @property
    def state(self) -> State:
        return self.view.state

    def catch_up(self) -> None:
        """Take in what others have committed."""
        try:
            for commit in self.log.commits(self.state.version + 1, self.log.head(self.state.version)):
                self.take(commit)
        except (RetiredError, MissingFileError):
            newest = self.log.state(self.log.head(self.state.version))
            if self.state.version >= newest.frontier:
                raise
            self._begin_anew(newest)
        self._require_served()

    def require_retained(self, version: int) -> None:
        """Refuse to read at a version that is retired by now, whether this process has seen that or not."""
        newest = self.log.head(self.state.version)
        require_retained(self.log, self.state if newest == self.state.version else self.log.state(newest), version)

    def commits(self, since: int) -> Iterator[Commit]:
        """Every commit after a ts, as long as rows have the types that are served; an error where that ends."""
        newest = self.log.head(self.state.version)
        require_reached(self.log, since, newest)
        self.require_retained(since)
        if since < self._served_since or self._changed is not None:
            require_served_at(self.log, self.serves, since, newest, self._changed)
        yield from served_commits(self.log, self.serves, since, newest)

    def _begin_anew(self, state: State) -> None:
        """What was committed meanwhile is no longer retained."""
        self.view = load_view(self.view.bases, state)
        self._indexes.clear()
        self._recent.clear()
        self._served_since = state.version
        found = state.marks.get(Mark.STASH_VERSION, 0)
        if self._changed is None and self.serves is not None and found != self.serves:
            self._changed = VersionChangedError(self.serves, found, state.version)

    def _require_served(self) -> None:
        """Refuse, from then on, to go on under another leader or with rows of other types."""
        if self._changed is not None:
            raise self._changed
        if self.serves is None:
            self.serves = self.state.marks.get(Mark.STASH_VERSION)
        if self.fence is not None and self.state.fence != self.fence:
            raise FencedError(self.fence, self.state.fence)

    def take(self, commit: Commit, own: Mapping[str, list[Happened]] | None = None) -> None:
        """Take in the next commit; of its own commits a process knows the rows, by collection, without reading them."""
        state = self.state.after(commit)
        overlays = dict(self.view.overlays)
        touched: set[tuple[str, bytes]] = set()
        if commit.operation in {Operation.TRANSACTION, Operation.FENCE}:
            # Everything is read before anything is taken in: if that fails, this commit is taken in again as a whole.
            read = [(f, changes(self.log, [f]) if own is None else own[f.collection]) for f in commit.adds]
            for file, happened in read:
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
        self._changed = self._changed or version_change(self.serves, commit)
        self._require_served()

    def touched_since(self, version: int) -> Touched:
        """The rows that were changed after a version."""
        if version < self.state.frontier:
            raise TransactionConflictError(version, self.state.version)  # nobody knows any more
        known = {number: touched for number, touched in self._recent if number > version}
        for number in range(version + 1, self.state.version + 1):
            if number not in known:
                with there_or_retired(self.log, number):
                    known[number] = self._touched(self.log.commit(number))
        return frozenset().union(*known.values())

    def index(self, collection: str) -> Index:
        """The index of a collection as of now."""
        if collection not in self._indexes:
            index = Index(self.registry.named(collection), self.registry, self.constraints)
            index.load(self.view.tables(collection))
            self._indexes[collection] = index
        return self._indexes[collection]

    def _touched(self, commit: Commit) -> Touched:
        if commit.operation not in {Operation.TRANSACTION, Operation.FENCE}:
            return frozenset()
        keys = [(file.collection, self.log.read(file, ["key"])["key"].to_pylist()) for file in commit.adds]
        return frozenset((collection, key) for collection, found in keys for key in found)
