"""Splitting of items into parts of a bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")


def split_by_size(items: Iterable[_Item], size_of: Callable[[_Item], int], size_max: int) -> Iterator[list[_Item]]:
    """Yield the items in order, as many together as fit; an item that is too large by itself is alone."""
    held: list[_Item] = []
    size = 0
    for item in items:
        own = size_of(item)
        if held and size + own > size_max:
            yield held
            held, size = [], 0
        held.append(item)
        size += own
    if held:
        yield held
