"""A feed: the commits after a ts that changed rows of a collection, and where reading them ends.

Over the Log protocol alone; whoever has no open stash reads feeds by this too. A feed is of one version of the types:
where a store goes to another, it ends with an error that names the ts to start again from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.errors import NoSuchVersionError, VersionChangedError
from catalog.log.maintenance import require_retained
from catalog.log.protocol import Commit, DataFile, Log, Mark, Operation
from catalog.stash.view import Happened, changes, there_or_retired


@dataclass(frozen=True, slots=True)
class Feed:
    log: Log
    collection: str
    version: int
    """Of the types that its rows have."""

    def require_readable(self, since: int, newest: int) -> None:
        """Refuse to begin at a ts that is retired, yet to come, or of another version."""
        require_reached(self.log, since, newest)
        require_retained(self.log, self.log.state(newest), since)
        require_served_at(self.log, self.version, since, newest)

    def commits(self, since: int, last: int) -> Iterator[Commit]:
        """Every commit after a ts, others' included; VersionChangedError where the version ends."""
        return served_commits(self.log, self.version, since, last)

    def files(self, commit: Commit) -> tuple[DataFile, ...]:
        return own_files(commit, self.collection)

    def changes(self, commit: Commit) -> list[Happened]:
        return own_changes(self.log, commit, self.collection)


def own_files(commit: Commit, collection: str) -> tuple[DataFile, ...]:
    """The files with the changes of a collection; a consolidation changes nothing."""
    if commit.operation is Operation.CONSOLIDATE:
        return ()
    return tuple(file for file in commit.adds if file.collection == collection)


def own_changes(log: Log, commit: Commit, collection: str) -> list[Happened]:
    """The changes of a collection, what goes before what comes."""
    with there_or_retired(log, commit.version):
        return changes(log, own_files(commit, collection))


def served_commits(log: Log, version: int | None, since: int, last: int) -> Iterator[Commit]:
    """The commits after a ts, as long as rows have the types of a version; an error where that ends."""
    for commit in log.commits(since + 1, last):
        if changed := version_change(version, commit):
            raise changed
        yield commit


def initialized_at(log: Log, since: int) -> int:
    """The first ts from this one on at which the store has a version: what a feed from there begins with."""
    if Mark.STASH_VERSION in log.state(since).marks:
        return since
    made = (commit for commit in log.commits(since + 1, log.head(since)) if Mark.STASH_VERSION in commit.marks)
    return next((commit.version for commit in made), since)


def require_reached(log: Log, since: int, newest: int) -> None:
    if since > newest:
        raise NoSuchVersionError(log.uri, since, newest)


def require_served_at(
    log: Log, version: int | None, since: int, newest: int, changed: VersionChangedError | None = None
) -> None:
    """Refuse to begin where rows have other types; of the changes since then, name the last."""
    found = log.state(since).marks.get(Mark.STASH_VERSION)
    if found is None or found == version:
        return
    ending = changed or VersionChangedError(version or 0, found, since)
    for commit in log.commits(since + 1, newest):
        ending = version_change(found, commit) or ending
        found = commit.marks.get(Mark.STASH_VERSION, found)
    raise ending


def version_change(before: int | None, commit: Commit) -> VersionChangedError | None:
    """What ends all reading with the types of a version, if a commit does."""
    after = commit.marks.get(Mark.STASH_VERSION, before)
    if before is None or after is None:
        return None
    if after == before and commit.operation not in {Operation.MIGRATE, Operation.UNDO}:
        return None
    return VersionChangedError(before, after, commit.version)
