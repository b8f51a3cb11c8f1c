"""The verb that follows a collection: subscribe. It prints nothing, and leaves the store as it is.

A feed has the types that the store has where it begins, whatever the version, and ends when they change.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from catalog.cli.environment import Environment, Look
from catalog.cli.feeds import Changed, Changes, Subscribed
from catalog.cli.reading import Reader
from catalog.cli.recalling import TS_MAX, parse_since
from catalog.cli.results import Answer, stopped_by
from catalog.errors import CatalogError, StoppedError, UsageError
from catalog.log.maintenance import require_retained
from catalog.stash.feed import Feed, initialized_at, require_reached
from catalog.stash.view import Happened

NOW = "now"
_POLL_S = 0.25
_ROWS_AT_ONCE = 1_000
Show = Callable[[Changes], None]
"""Told what there is to see, as soon as it is there."""


def subscribe(
    environment: Environment,
    collection: str,
    show: Show,
    *,
    since: str | None = None,
    until: int | None = None,
    once: bool = False,
) -> Answer:
    """Show every change after a ts or time until the feed ends, which may be never; without one the rows come first."""
    look = environment.look()
    newest = look.state.version
    begin = None if since is None else _begin(look, since)
    first = newest if begin is None else begin
    require_reached(look.log, first, newest)
    require_retained(look.log, look.state, first)
    reader = Reader.at(environment, initialized_at(look.log, first))
    reader.type_of(collection)
    following = Following(reader, collection, show, begin)
    if until is not None and not first <= until <= TS_MAX:
        raise UsageError(
            f"a feed from ts {first} on does not end at ts {until}",
            "no commit after that will have it",
            f"give --since an earlier ts, or --until one from {first} on",
        )
    error = following.follow(newest if once else until)
    told = Subscribed(look.storage.uri, collection, reader.version, begin, following.ts or 0, following.count)
    return Answer(told, error)


@dataclass(slots=True)
class Following:
    """How far a feed was shown."""

    reader: Reader
    collection: str
    show: Show
    ts: int | None
    """Everything up to here was; none until the rows were that it begins with."""
    count: int = 0

    @property
    def feed(self) -> Feed:
        return Feed(self.reader.look.log, self.collection, self.reader.version)

    def follow(self, until: int | None) -> CatalogError | None:
        """Show what comes up to a ts, or until something ends it: answer what that was."""
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
                self._show(feed.changes(commit), commit.version, commit.timestamp_ms)
                self.ts = at = commit.version
            if until is not None and at >= until:
                return
            time.sleep(_POLL_S)

    def _show_rows(self) -> int:
        ts = self.reader.state.version
        rows = ((key, value, ts, 1) for key, value in self.reader.view(self.collection).rows(self.collection))
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            self._show(some, ts, None)
        return ts

    def _show(self, happened: Iterable[Happened], ts: int, at_ms: int | None) -> None:
        rows = tuple(
            Changed(self.collection, *self.reader.as_json(self.collection, key, value), row_ts, diff)
            for key, value, row_ts, diff in happened
        )
        if rows:
            self.show(Changes(ts, at_ms, rows))
            self.count += len(rows)


def _begin(look: Look, since: str) -> int:
    """The ts after which a feed begins: one that is named, or the last before a time."""
    if since == NOW:
        return look.state.version
    asked = parse_since(since, look.log.now_ms())
    if asked.ts is not None:
        return asked.ts
    first = look.state.frontier + 1
    later = range(first, look.state.version + 1)
    return first - 1 + bisect_left(later, asked.at_ms or 0, key=lambda ts: look.log.commit(ts).timestamp_ms)
