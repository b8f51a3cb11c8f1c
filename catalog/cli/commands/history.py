"""`catalog history`: what happened to a store, the newest first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.engine.base.duration import parse_seconds
from catalog.errors import RetiredError, UsageError
from catalog.tools.history import StartPoint, Timeline, read_timeline

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


def history(run: Invocation, *, graph: bool, unfolded: bool, since: str | None, limit: int) -> CommandResult:
    """Read the timeline from a ts or time on, at most `limit` lines of it unless that is 0."""
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
