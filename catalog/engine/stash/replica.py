"""The replica of a stash: the newest state that this process has seen, its rows, and the indexes of its constraints.

Commits are adopted one at a time and in order, so a fence is seen before any row that was written under it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from catalog.engine.base.fence import Fence
from catalog.engine.log.maintenance import require_retained
from catalog.engine.log.protocol import AppTxn, Commit, Log, LogState, Operation
from catalog.engine.log.replica import LogReplica, newest_state, retired_if_missing
from catalog.engine.stash.change_feed import require_reached, require_version_at, version_change, version_commits
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.recorded_types import is_same_record
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.view import BaseFileCache, TailRow, View, apply_tail, changes, load_view
from catalog.errors import FencedError, RetiredError, TransactionConflictError, VersionChangedError

if TYPE_CHECKING:
    from catalog.engine.stash.constraint_index import ConstraintIndex

_RECENT_MAX = 1024
_ROW_OPERATIONS = frozenset({Operation.TRANSACTION, Operation.FENCE})
"""Of commits that change rows one by one; any other replaces files."""
Touched = frozenset[tuple[str, bytes]]
"""Rows by collection and key."""


@dataclass(slots=True)
class StashReplica(LogReplica):
    registry: Registry
    constraints: Constraints
    view: View
    """The rows of the newest state."""
    fence: Fence | None = None
    """The token that this process writes under; none if it only reads."""
    row_version: int | None = None
    """The version of the rows that this process reads and writes; none until the store has one."""
    _same_version_since: int = 0
    """A ts since which no row of another version was seen."""
    _changed: VersionChangedError | None = None
    """Set once rows of another version have begun."""
    _indexes: dict[str, ConstraintIndex] = field(default_factory=dict)
    _recent: deque[tuple[int, Touched]] = field(default_factory=lambda: deque(maxlen=_RECENT_MAX))

    @classmethod
    def open(cls, log: Log, registry: Registry, constraints: Constraints) -> StashReplica:
        state = newest_state(log)
        view = load_view(BaseFileCache(log), state)
        version = state.stash_version
        return cls(log, state, registry, constraints, view, row_version=version, _same_version_since=state.version)

    def require_retained(self, version: int) -> None:
        """Refuse to read at a version that is retired by now, even if this process has not seen that yet."""
        require_retained(self.log, self._newest_view().state, version)

    def _newest_view(self) -> View:
        """Return the view of this process, or that of a newer state that it has not seen yet."""
        known = self.view
        newest = self.log.head(known.state.version)
        return known if newest == known.state.version else load_view(known.bases, newest_state(self.log, newest))

    def commits(self, since: int) -> Iterator[Commit]:
        """Yield every commit after a ts; raise VersionChangedError where rows of another version begin."""
        newest = self._newest_view()
        require_reached(self.log, since, newest.state.version)
        require_retained(self.log, newest.state, since)
        if since < self._same_version_since or self._changed is not None:
            require_version_at(self.log, self.row_version, since, newest, self._changed)
        yield from version_commits(self.log, self.row_version, since, newest.state.version)

    def changed_collections(self, since: int) -> frozenset[str]:
        """Return the collections that have new files since a ts; raise VersionChangedError as `commits` does.

        The types at that ts are read only if a commit since then may have recorded others. Holds all these commits.
        """
        self.require_retained(since)
        found = list(version_commits(self.log, self.row_version, since, self.state.version))
        if self._changed is not None or any(map(_may_record_types, found)):
            found = list(self.commits(since))
        return frozenset(file.collection for commit in found for file in commit.adds)

    def restart(self, state: LogState) -> LogState:
        before, self.view = self.view, load_view(self.view.bases, state)
        self.state = state
        self._indexes.clear()
        self._recent.clear()
        self._same_version_since = state.version
        found = state.stash_version or 0
        if self._changed is None and self.row_version is not None and self._has_other_types(before):
            self._changed = VersionChangedError(self.row_version, found, state.version)
        return state

    def _has_other_types(self, before: View) -> bool:
        """Tell if rows have other types than in an earlier view, under the same number too."""
        if self.row_version is None or self.state.stash_version != self.row_version:
            return True
        try:
            return not is_same_record(self.row_version, before, self.view)
        except RetiredError:
            return False  # nobody can tell any more

    def require_usable(self) -> None:
        """Refuse, from then on, to go on under another leader or with rows of another version."""
        if self._changed is not None:
            raise self._changed
        if self.row_version is None:
            self.row_version = self.state.stash_version
        if self.fence is not None and self.state.fence != self.fence:
            raise FencedError(self.fence, self.state.fence)

    def adopt(self, commit: Commit, before: LogState, own_rows: Mapping[str, list[TailRow]] | None = None) -> LogState:
        """Move on to the state after a commit; return it.

        Of its own commit a process passes the rows by collection, so that they are not read again.
        """
        state = before.after(commit)
        overlays = dict(self.view.overlays)
        touched: set[tuple[str, bytes]] = set()
        if commit.operation in _ROW_OPERATIONS:
            # Everything is read before anything changes: if that fails, this commit is adopted again as a whole.
            read = [(f, changes(self.log, [f]) if own_rows is None else own_rows[f.collection]) for f in commit.adds]
            for file, rows in read:
                if file.collection in overlays:
                    overlays[file.collection] = apply_tail(overlays[file.collection], rows)
                touched.update((file.collection, key) for key, *_ in rows)
                if file.collection in self._indexes:
                    self._indexes[file.collection].apply((key, value, diff) for key, value, _, diff in rows)
        else:
            removed = {before.files[path].collection for path in commit.removed_paths}
            for collection in removed | {file.collection for file in commit.adds}:
                overlays.pop(collection, None)  # read again when it is asked for
        self.view = View(self.view.bases, state, overlays)
        self.state = state
        self._recent.append((commit.version, frozenset(touched)))
        self._changed = self._changed or version_change(self.row_version, commit)
        self.require_usable()
        return state

    def touched_since(self, version: int) -> Touched:
        """Return the rows that were changed after a version."""
        if version < self.state.frontier:
            raise TransactionConflictError(version, self.state.version)  # what was changed is no longer known
        known = {number: touched for number, touched in self._recent if number > version}
        for number in range(version + 1, self.state.version + 1):
            if number not in known:
                with retired_if_missing(self.log, number):
                    known[number] = self._touched(self.log.commit(number))
        return frozenset().union(*known.values())

    def index(self, collection: str) -> ConstraintIndex:
        """Return the constraint index of a collection at the newest state."""
        if collection not in self._indexes:
            from catalog.engine.stash.constraint_index import ConstraintIndex  # noqa: PLC0415 - a reader needs none

            index = ConstraintIndex(self.registry.named(collection), self.registry, self.constraints)
            index.load(self.view.tables(collection))
            self._indexes[collection] = index
        return self._indexes[collection]

    def _touched(self, commit: Commit) -> Touched:
        if commit.operation not in _ROW_OPERATIONS:
            return frozenset()
        keys = [(file.collection, self.log.read(file, ["key"])["key"].to_pylist()) for file in commit.adds]
        return frozenset((collection, key) for collection, found in keys for key in found)


def _may_record_types(commit: Commit) -> bool:
    """Tell if a commit sets the version, or writes rows of `config`, where types are recorded."""
    return AppTxn.STASH_VERSION in commit.app_txns or any(file.collection == "config" for file in commit.adds)
