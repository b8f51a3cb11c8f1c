"""The fence: the order of the processes that lead a store, one after the other."""

from __future__ import annotations

from typing import Final, NamedTuple

LOCK_TIMEOUT_S: Final = 60.0
"""The default time that a start waits for a live leader of its own deploy generation, before it takes over."""


class Fence(NamedTuple):
    """The token of a leader: of two, the greater took over from the lesser."""

    generation: int
    epoch: int
