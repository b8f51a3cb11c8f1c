"""Durations as texts: a number of seconds, or a number with its unit, such as `500ms`, `90s`, `5m` or `2h`."""

from __future__ import annotations

import re

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_seconds(text: object) -> float:
    """Return the seconds of a duration; raises ValueError for any other text."""
    match = _DURATION.fullmatch(str(text).strip())
    if match is None:
        raise ValueError("a duration is a number of seconds, or one with a unit, such as 90s, 5m or 2h")
    return float(match[1]) * _UNITS_S[match[2] or "s"]
