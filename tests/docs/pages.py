"""The examples of a page, section by section, and what each is shown to print."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

SECTION = re.compile(r"(?m)^## ")
EXAMPLE = re.compile(r"(?ms)^```python\n(?P<code>.*?)^```\n(?:\n^```text\n(?P<shown>.*?)^```\n)?")


@dataclass(frozen=True, slots=True)
class Example:
    code: str
    shown: str | None
    """What stands in a block of text right after it; none if there is no such block."""
    where: str


def examples(page: Path) -> dict[str, list[Example]]:
    """By the heading of their section."""
    text = page.read_text(encoding="utf-8")
    starts = [0, *(found.start() for found in SECTION.finditer(text)), len(text)]
    sections = {}
    for start, end in pairwise(starts):
        found = [
            Example(match["code"], match["shown"], f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}")
            for match in EXAMPLE.finditer(text, start, end)
        ]
        sections[text[start:end].partition("\n")[0].lstrip("# ")] = found
    assert sum(len(found) for found in sections.values()) == text.count("```python")
    return sections


def run_example(example: Example, names: dict[str, object], places: Mapping[str, str]) -> None:
    """Run it with what those before it defined, on other places; it prints what is shown, if anything is."""
    code = example.code
    for shown, real in places.items():
        code = code.replace(shown, real)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, example.where, "exec"), names)  # noqa: S102 - our own page
    assert printed.getvalue() == (example.shown or ""), f"{example.where} printed:\n{printed.getvalue()}"
