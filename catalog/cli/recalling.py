"""The verb that looks back: history. It prints nothing, and leaves the store as it is."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from catalog.cli.answers import History
from catalog.cli.environment import Environment
from catalog.cli.results import Answer
from catalog.cli.settings import seconds
from catalog.engine.timeline import Since, read_timeline
from catalog.errors import UsageError

TS_MAX = 2**63 - 1


def history(environment: Environment, *, since: str | None = None, limit: int = 0, unfolded: bool = False) -> Answer:
    """What happened to a store, from a ts or time on: at most so many lines, if a limit is given."""
    look = environment.look()
    when = None if since is None else parse_since(since, look.log.now_ms())
    timeline = read_timeline(look.journal, when, limit=limit, unfolded=unfolded)
    return Answer(History(look.storage.uri, look.version, look.state.version, look.state.frontier, timeline))


def parse_since(text: str, now_ms: int) -> Since:
    """A ts such as 41, a duration that has passed such as 2h, or a day or time such as 2026-11-17T09:30 (UTC)."""
    if re.fullmatch(r"[0-9]{1,19}", text) and int(text) <= TS_MAX:
        return Since(ts=int(text))
    try:
        if re.match(r"[0-9.]+\s*[a-z]", text):
            return Since(at_ms=int(now_ms - seconds(text) * 1000))
        found = datetime.fromisoformat(text)
        return Since(at_ms=int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"--since {text} is no ts and no time",
            "it is a number, a duration that has passed, or a day or time (UTC)",
            "write it as 41, 2h or 2026-11-17T09:30",
        ) from error
