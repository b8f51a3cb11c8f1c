"""`catalog subscribe`: follow the changes of a collection.

A feed has the types of the store's version where it begins, and ends when the version changes.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.commands.history import TS_MAX, parse_since
from catalog.cli.signals import signals_deferred, stopped_by
from catalog.cli.store_reader import ChangedRow, StoreReader
from catalog.engine.log.maintenance import require_retained
from catalog.engine.stash.change_feed import ChangeFeed, initialized_at, require_reached
from catalog.engine.stash.view import TailRow
from catalog.errors import CatalogError, StoppedError, UsageError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.engine.store.snapshot import StoreSnapshot

NOW = "now"
_POLL_S = 0.25
_ROWS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one commit, or some of the rows that a feed begins with."""

    ts: int
    at_ms: int | None
    """The time of the commit; None for the first rows."""
    rows: tuple[ChangedRow, ...]


@dataclass(frozen=True, slots=True)
class Subscribed:
    store: str
    collection: str
    version: int
    since: int | None
    """None if the feed began with the present rows."""
    ts: int
    """Every change up to this ts was shown."""
    changes: int


Show = Callable[[Changes], None]


def subscribe(run: Invocation, *, collection: str, since: str | None, until: int | None, once: bool) -> CommandResult:
    """Show the present rows, or the changes after a ts or time, and then every change until the feed ends."""
    if once and until is not None:
        raise UsageError("--once and --until exclude each other", "each says where to end", "give one of them, or none")
    look = run.target.look()
    newest = look.state.version
    begin = None if since is None else _begin(look, since)
    first = newest if begin is None else begin
    require_reached(look.log, first, newest)
    require_retained(look.log, look.state, first)
    reader = StoreReader.at(run.target, initialized_at(look.log, first))
    reader.type_of(collection)
    following = Following(reader, collection, run.screen.stream, begin)
    if until is not None and not first <= until <= TS_MAX:
        raise UsageError(
            f"a feed from ts {first} on does not end at ts {until}",
            f"it shows ts {first} to {TS_MAX}",
            f"give --since an earlier ts, or --until one from {first} on",
        )
    error = following.follow(newest if once else until)
    shown = Subscribed(look.place.uri, collection, reader.version, begin, following.ts or 0, following.count)
    return CommandResult(shown, error)


@dataclass(slots=True)
class Following:
    """A feed, and how far it was shown."""

    reader: StoreReader
    collection: str
    show: Show
    ts: int | None
    """Every change up to this ts was shown; None until the first rows were shown."""
    count: int = 0

    @property
    def feed(self) -> ChangeFeed:
        return ChangeFeed(self.reader.look.log, self.collection, self.reader.version)

    def follow(self, until: int | None) -> CatalogError | None:
        """Show changes up to a ts; return the error that ended the feed before."""
        if self.ts is None:
            self.ts = self._show_rows()
        try:
            self._show_changes(self.ts, until)
        except KeyboardInterrupt as stopped:
            return StoppedError(stopped_by(stopped), self.ts)
        except CatalogError as error:
            return error
        return None

    def _show_changes(self, since: int, until: int | None) -> None:
        feed, at = self.feed, since
        while True:
            newest = feed.log.head(at)
            for commit in feed.commits(at, newest if until is None else min(newest, until)):
                changes = self._changes(feed.changes(commit), commit.version, commit.timestamp_ms)
                with signals_deferred():  # else a caller that goes on from `ts` is shown these rows a second time
                    self._show(changes)
                    self.ts = at = commit.version
            if until is not None and at >= until:
                return
            time.sleep(_POLL_S)

    def _show_rows(self) -> int:
        ts = self.reader.state.version
        rows = ((key, value, ts, 1) for key, value in self.reader.view(self.collection).rows(self.collection))
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            self._show(self._changes(some, ts, None))
        return ts

    def _changes(self, rows: Iterable[TailRow], ts: int, at_ms: int | None) -> Changes:
        return Changes(
            ts,
            at_ms,
            tuple(
                ChangedRow(self.collection, *self.reader.as_json(self.collection, key, value), row_ts, diff)
                for key, value, row_ts, diff in rows
            ),
        )

    def _show(self, changes: Changes) -> None:
        if changes.rows:
            self.show(changes)
            self.count += len(changes.rows)


def _begin(look: StoreSnapshot, since: str) -> int:
    """Return the ts after which a feed begins: the given one, or the last before the given time."""
    if since == NOW:
        return look.state.version
    asked = parse_since(since, look.log.now_ms())
    if asked.ts is not None:
        return asked.ts
    first = look.state.frontier + 1
    later = range(first, look.state.version + 1)
    return first - 1 + bisect_left(later, asked.at_ms or 0, key=lambda ts: look.log.commit(ts).timestamp_ms)
