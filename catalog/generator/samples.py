"""What a project says of its rows beyond types and constraints, so that made-up ones mean something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from catalog.generator.draw import Draw

Column = Callable[["Draw"], "pa.Array"]
"""Makes a field of every row that is drawn."""


@dataclass(frozen=True, slots=True)
class Sample:
    """How rows of a collection are made. Fields that have no column here are filled by their descriptor."""

    columns: Mapping[str, Column] = field(default_factory=dict)
    """By path, such as `key.id`. Those of a key give every row another key."""
    share: float = 1.0
    """Of the rows of a store, in proportion to the shares of the other collections."""
    rows_min: int = 1
    rows_max: int = 1 << 62
    """Unless the store is to be like another."""
    room: Callable[[Callable[[str], int]], int] | None = None
    """How many rows there can be, given how many there are that last of other collections."""
    inserts: bool = True
    """Whether rows come later, and likewise whether rows change or go."""
    updates: bool = True
    deletes: bool = True
    large: bool = False
    """Whether some of its texts are much longer than others."""


Samples = Callable[[int], Mapping[str, Sample]]
"""The samples of a version, by collection; one that is not named is filled by its descriptors alone."""
