"""`catalog debug dump` as text: a line of JSON for each row."""

from __future__ import annotations

import json
from collections.abc import Iterator

from catalog.cli.answer import plain
from catalog.cli.commands.debug_dump import Dump


def render(data: Dump) -> Iterator[str]:
    for row in data.rows:
        yield json.dumps(plain(row), ensure_ascii=False)
