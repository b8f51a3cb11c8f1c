"""Findings grouped by their cause: one example of each, and how many there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

_Found = TypeVar("_Found")
_OF_ONE_ROW: Final = re.compile(
    r"""\{.*\} | \[.*\] | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | [\w./=:+-]*\d[\w./=:+-]*""", re.VERBOSE
)
"""Keys, values, numbers and names of files: what differs between rows that are wrong for the same reason."""


def cause_of(text: str) -> str:
    """Return a text without what it says of one row or file."""
    return _OF_ONE_ROW.sub("…", text)


def grouped(
    found: Iterable[_Found], cause: Callable[[_Found], object], total: int | None = None
) -> list[tuple[_Found, int]]:
    """Return the first finding of each cause and the number of findings that it stands for, in their order.

    If there are more findings in `total` than are listed, and all that are listed have one cause, so have the others.
    """
    groups: dict[object, tuple[_Found, int]] = {}
    for own in found:
        first, count = groups.get(key := cause(own), (own, 0))
        groups[key] = first, count + 1
    if total is not None and len(groups) == 1:
        ((key, (first, count)),) = groups.items()
        groups[key] = first, max(total, count)
    return list(groups.values())


def more_like_it(count: int) -> str:
    """Return the remark after an example: how many others there are."""
    return f" (and {count - 1:,} more like it)" if count > 1 else ""
