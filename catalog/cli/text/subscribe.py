"""`catalog subscribe` as text: the rows that were added, removed and changed."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import ndiff
from typing import TYPE_CHECKING

from rich.text import Text

from catalog.cli.text.formats import utc_ms
from catalog.cli.text.nested_lines import compact, nested

if TYPE_CHECKING:
    from rich.console import RenderableType

    from catalog.cli.commands.subscribe import Changes, Subscribed
    from catalog.cli.store_reader import ChangedRow

_STYLES = {"+": "green", "-": "red", "~": "yellow", " ": "dim"}


def render_changes(data: Changes) -> Iterator[RenderableType]:
    """A block for each row: what came and what went, or of one that was changed only what differs."""
    when = "" if data.at_ms is None else f", {utc_ms(data.at_ms)}"
    yield Text(f"ts {data.ts}{when}", "bold")
    went = {compact(row.key): row for row in data.rows if row.diff < 0}
    came = {compact(row.key): row for row in data.rows if row.diff > 0}
    for key in dict.fromkeys(compact(row.key) for row in data.rows):
        before, after = _lines(went.get(key)), _lines(came.get(key))
        sign = "~" if key in went and key in came else "+" if key in came else "-"
        yield _signed(sign, key)
        yield from (_signed(own, f"  {line}") for own, line in _differing(before, after))


def render(data: Subscribed) -> Iterator[RenderableType]:
    count = f"{data.changes:,} changes" if data.changes != 1 else "1 change"
    yield f"{count} of {data.collection} at version {data.version}, up to ts {data.ts}"


def _lines(row: ChangedRow | None) -> list[str]:
    return [] if row is None else list(nested(row.value))


def _differing(before: list[str], after: list[str]) -> Iterator[tuple[str, str]]:
    """Lines that went or came, each with its sign; and those around them that say what they are part of."""
    around: list[str] = []
    for sign, line in ((told[0], told[2:]) for told in ndiff(before, after) if not told.startswith("?")):
        while around and _depth(around[-1]) >= _depth(line):
            around.pop()
        if sign == " ":
            around.append(line)
        else:
            yield from ((" ", own) for own in around)
            around.clear()
            yield sign, line


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _signed(sign: str, text: str) -> Text:
    return Text(f"{sign} {text}", _STYLES[sign])
