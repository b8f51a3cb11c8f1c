"""Rows as they came and went, for people. Builds texts; `render` prints them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import ndiff
from typing import TYPE_CHECKING

from rich.text import Text

from catalog.cli.lines import compact, nested
from catalog.cli.results import plain
from catalog.cli.times import shown_time

if TYPE_CHECKING:
    from rich.console import RenderableType

    from catalog.cli.feeds import Changed, Changes, Dump, Subscribed

_STYLES = {"+": "green", "-": "red", "~": "yellow"}


def dump(data: Dump) -> Iterator[RenderableType]:
    for row in data.rows:
        yield json.dumps(plain(row), ensure_ascii=False)


def changes(data: Changes) -> Iterator[RenderableType]:
    """A block for each row: what came and what went, or of one that was changed only what differs."""
    when = "" if data.at_ms is None else f", {shown_time(data.at_ms)}"
    yield Text(f"ts {data.ts}{when}", "bold")
    went = {compact(row.key): row for row in data.rows if row.diff < 0}
    came = {compact(row.key): row for row in data.rows if row.diff > 0}
    for key in dict.fromkeys(compact(row.key) for row in data.rows):
        before, after = _lines(went.get(key)), _lines(came.get(key))
        sign = "~" if key in went and key in came else "+" if key in came else "-"
        yield _signed(sign, key)
        for line in ndiff(before, after):
            if line[0] in _STYLES:
                yield _signed(line[0], f"  {line[2:]}")


def subscribed(data: Subscribed) -> Iterator[RenderableType]:
    count = f"{data.changes:,} changes" if data.changes != 1 else "1 change"
    yield f"{count} of {data.collection} at version {data.version}, up to ts {data.ts}"


def _lines(row: Changed | None) -> list[str]:
    return [] if row is None else list(nested(row.value))


def _signed(sign: str, text: str) -> Text:
    return Text(f"{sign} {text}", _STYLES[sign])
