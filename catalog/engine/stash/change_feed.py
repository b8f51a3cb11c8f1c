"""The change feed of a collection: the commits after a ts that changed its rows.

Works on the Log protocol alone, so that it is read without an open stash too. A feed is of one version of the types:
where the store goes to another version, the feed ends with an error that names the ts to start again from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.engine.log.maintenance import require_retained
from catalog.engine.log.protocol import MERGING, AppTxn, Commit, DataFile, Log, Operation
from catalog.engine.log.replica import newest_state, retired_if_missing
from catalog.engine.stash.recorded_types import is_same_record
from catalog.engine.stash.view import BaseFileCache, TailRow, View, changes, load_view
from catalog.errors import NoSuchVersionError, VersionChangedError


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    log: Log
    collection: str
    version: int | None
    """Of the types of its rows; none while the store has none."""

    def require_readable(self, since: int, newest: int) -> None:
        """Refuse to begin at a ts that is retired, yet to come, or of another version."""
        require_reached(self.log, since, newest)
        view = load_view(BaseFileCache(self.log), newest_state(self.log, newest))
        require_retained(self.log, view.state, since)
        require_version_at(self.log, self.version, since, view)

    def commits(self, since: int, last: int) -> Iterator[Commit]:
        """Yield every commit after a ts, of any collection; raise VersionChangedError where the version ends."""
        return version_commits(self.log, self.version, since, last)

    def files(self, commit: Commit) -> tuple[DataFile, ...]:
        """Return the files with the changes of the collection; a compaction changes no row."""
        if commit.operation in MERGING:
            return ()
        return tuple(file for file in commit.adds if file.collection == self.collection)

    def changes(self, commit: Commit) -> list[TailRow]:
        """Return the changes of the collection, removed rows before added ones."""
        with retired_if_missing(self.log, commit.version):
            return changes(self.log, self.files(commit))


def version_commits(log: Log, version: int | None, since: int, last: int) -> Iterator[Commit]:
    """Yield the commits after a ts; raise VersionChangedError where rows of another version begin."""
    for commit in log.commits(since + 1, last):
        if changed := version_change(version, commit):
            raise changed
        yield commit


def initialized_at(log: Log, since: int) -> int:
    """Return the first ts from this one on at which the store has a version; the ts itself if none has one yet."""
    if log.state(since).stash_version is not None:
        return since
    made = (commit for commit in log.commits(since + 1, log.head(since)) if AppTxn.STASH_VERSION in commit.app_txns)
    return next((commit.version for commit in made), since)


def require_reached(log: Log, since: int, newest: int) -> None:
    if since > newest:
        raise NoSuchVersionError(log.uri, since, newest)


def require_version_at(
    log: Log, version: int | None, since: int, newest: View, changed: VersionChangedError | None = None
) -> None:
    """Refuse to begin at a ts whose rows are of another version, or of other types under the same number.

    Of the version changes since then, name the last.
    """
    view = load_view(newest.bases, log.state(since))
    found = view.state.stash_version
    if found is None:
        return
    if found == version and is_same_record(found, view, newest):
        return
    ending = changed or VersionChangedError(version or 0, found, since)
    for commit in log.commits(since + 1, newest.state.version):
        ending = version_change(found, commit) or ending
        found = commit.app_txns.get(AppTxn.STASH_VERSION, found)
    raise ending


def version_change(before: int | None, commit: Commit) -> VersionChangedError | None:
    """Return the error that ends reading with the types of a version, if a commit ends it."""
    after = commit.app_txns.get(AppTxn.STASH_VERSION, before)
    if before is None or after is None:
        return None
    if after == before and commit.operation not in {Operation.MIGRATE, Operation.UNDO}:
        return None
    return VersionChangedError(before, after, commit.version)
