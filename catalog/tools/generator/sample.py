"""Samples: a project's rules for synthetic rows beyond types and constraints, so that rows are realistic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from catalog.tools.generator.draw import Draw

SampleColumn = Callable[["Draw"], "pa.Array"]
"""Returns a field of every row of a draw."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The rules for synthetic rows of a collection. Fields without a column here are filled by their descriptor."""

    columns: Mapping[str, SampleColumn] = field(default_factory=dict)
    """By path, such as `key.id`. Columns of the key must give every row its own key."""
    share: float = 1.0
    """The share of the store's rows, relative to the shares of other collections."""
    rows_min: int = 1
    rows_max: int = 1 << 62
    """Ignored where the store is generated like another."""
    room: Callable[[Callable[[str], int]], int] | None = None
    """Returns the number of rows that can exist, from a function that returns the lasting rows of a collection."""
    inserts: bool = True
    """Rows are inserted by later commits; `updates` and `deletes` likewise."""
    updates: bool = True
    deletes: bool = True
    large: bool = False
    """Some texts are much longer than others."""


Samples = Callable[[int], Mapping[str, Sample]]
"""Returns the samples of a version by collection; a collection without one is filled by its descriptors alone."""
