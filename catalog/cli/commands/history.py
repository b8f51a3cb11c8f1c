"""`catalog history`: what happened to a store, the newest first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.engine.base.duration import parse_seconds
from catalog.engine.schema_change.copying import tables_state
from catalog.errors import RetiredError, UsageError
from catalog.tools.history import StartPoint, Timeline, read_tables_timeline, read_timeline

if TYPE_CHECKING:
    from catalog.cli.app import Invocation

TS_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class HistoryResult:
    store: str
    version: int
    ts: int
    frontier: int
    timeline: Timeline
    of_tables: bool = False
    """True if it is that of the tables, with a ts and a frontier of their own."""


def history(
    run: Invocation, *, graph: bool, unfolded: bool, tables: bool, since: str | None, limit: int
) -> CommandResult:
    """Read the timeline from a ts or time on, at most `limit` lines of it unless that is 0."""
    if tables:
        return CommandResult(_of_tables(run, since, limit, unfolded=unfolded))
    while True:
        look = run.target.look()
        when = None if since is None else parse_since(since, look.log.now_ms())
        try:
            timeline = read_timeline(look.system_rows, when, limit=limit, unfolded=unfolded)
        except RetiredError as error:
            if error.earliest <= look.state.frontier:
                raise
            continue  # retired while it was read: there is less of it now
        break
    found = HistoryResult(look.place.uri, look.version, look.state.version, look.state.frontier, timeline)
    return CommandResult(found, renderer="render_graph" if graph else "render")


def _of_tables(run: Invocation, since: str | None, limit: int, *, unfolded: bool) -> HistoryResult:
    """Read the timeline of the tables; it is empty if the store has none."""
    look = run.target.look()
    log = look.place.tables_log()
    when = None if since is None else parse_since(since, log.now_ms())
    while (state := tables_state(log)) is not None:
        try:
            timeline = read_tables_timeline(log, state, when, limit=limit, unfolded=unfolded)
        except RetiredError as error:
            if error.earliest <= state.frontier:
                raise
            continue
        return HistoryResult(look.place.uri, look.version, state.version, state.frontier, timeline, of_tables=True)
    nothing = Timeline((), (), None, more=False)
    return HistoryResult(look.place.uri, look.version, 0, 0, nothing, of_tables=True)


def parse_since(text: str, now_ms: int) -> StartPoint:
    """Parse a ts such as 41, an elapsed duration such as 2h, or a day or time such as 2026-11-17T09:30 (UTC)."""
    if re.fullmatch(r"[0-9]{1,19}", text) and int(text) <= TS_MAX:
        return StartPoint(ts=int(text))
    try:
        if re.match(r"[0-9.]+\s*[a-z]", text):
            return StartPoint(at_ms=int(now_ms - parse_seconds(text) * 1000))
        found = datetime.fromisoformat(text)
        return StartPoint(at_ms=int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"--since {text} is neither a ts nor a time",
            "it must be a number, an elapsed duration, or a day or time (UTC)",
            "write it as 41, 2h or 2026-11-17T09:30",
        ) from error
