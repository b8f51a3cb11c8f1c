"""The replica of a log: the newest state that a process has seen, kept up to date and appended to.

A stash and a shard each have a kind of their own, which keeps more of the state in memory and says when a process must
not go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from catalog.engine.log.digests import state_text
from catalog.engine.log.maintenance import MaintenanceResult, Policy, maintain, require_retained
from catalog.engine.log.protocol import Commit, CommitRequest, Log, LogState
from catalog.errors import CatalogError, ConflictError, MissingFileError, RetiredError, StateLeftOutError


@dataclass(slots=True)
class LogReplica:
    """States are replaced as a whole, so any number of threads may read them."""

    log: Log
    state: LogState
    last_error: CatalogError | None = field(default=None, kw_only=True)
    """The error that stopped the last maintenance; none if it was completed."""

    def follow(self) -> LogState:
        """Adopt every commit that others have made since; return the newest state."""
        state = self.state
        try:
            for commit in self.log.commits(state.version + 1, self.log.head(state.version)):
                if commit.state_digest not in {"", state_text(state.digest_after(commit))}:
                    raise StateLeftOutError(self.log.uri, commit.version)
                state = self.adopt(commit, state)
        except (RetiredError, MissingFileError):
            newest = newest_state(self.log, state.version)
            if state.version >= newest.frontier:
                raise
            state = self.restart(newest)
        return state

    def catch_up(self) -> LogState:
        """Follow the log, and refuse if this process must not go on with it."""
        state = self.follow()
        self.require_usable()
        return state

    def adopt(self, commit: Commit, before: LogState) -> LogState:
        """Move on to the state after a commit; return it."""
        self.state = state = before.after(commit)
        return state

    def restart(self, state: LogState) -> LogState:
        """Go on from a state because commits before it are no longer retained; return it."""
        self.state = state
        return state

    def require_usable(self) -> None:
        """Refuse to go on; a plain log is always usable."""

    def append(self, expected: LogState, change: CommitRequest) -> Commit:
        """Commit a change for exactly one state; raise ConflictError if anything was committed since.

        Files of a process that was fenced or finalised meanwhile may be swept before its commit: that is a conflict,
        and no damage.
        """
        try:
            return self.log.compare_and_append(expected, change)
        except MissingFileError as swept:
            newest = self.catch_up().version
            if newest == expected.version:
                raise
            raise ConflictError(self.log.uri, expected.version, newest) from swept

    def maintain(self, policy: Policy) -> MaintenanceResult:
        """Make checkpoints, move the retention frontier and delete files, as far as that is due."""
        done = maintain(self.log, self.state, policy)
        with self.best_effort():
            if done.state.version != self.state.version:
                self.catch_up()
        self.last_error = done.postponed or self.last_error
        return done

    @contextmanager
    def best_effort(self) -> Iterator[None]:
        """Record an error of maintenance instead of raising it.

        The commit before the maintenance has landed, and what was not done is due again after the next one.
        """
        self.last_error = None
        try:
            yield
        except CatalogError as error:
            self.last_error = error


def newest_state(log: Log, known: int | None = None) -> LogState:
    """Read the newest state of a log, after verifying that its newest entry is whole.

    With a known version it is searched from there, and not verified. If that state is retired before it is read, there
    is a newer one.
    """
    while True:
        newest = log.verify() if known is None else log.head(known)
        try:
            return log.state(newest)
        except RetiredError:
            if log.head(newest) == newest:
                raise


@contextmanager
def retired_if_missing(log: Log, version: int, newest: Callable[[], LogState] | None = None) -> Iterator[None]:
    """Raise RetiredError for a missing file if the retention of the version that it was read for has ended.

    `newest` reads the newest state; by default the log does.
    """
    try:
        yield
    except MissingFileError:
        require_retained(log, newest_state(log, version) if newest is None else newest(), version)
        raise
