"""The steady clock: seconds that pass whatever is done to the time of day; a sleep of the machine counts."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_s() -> float:
    return time.clock_gettime(_CLOCK)
