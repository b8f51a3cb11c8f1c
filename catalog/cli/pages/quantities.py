"""How numbers are written on a page."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.filesize import decimal

_MINUTE_S, _HOUR_S = 60, 3600
_TENTH_S, _TENTHS_BELOW_S = 0.1, 10


def count(number: int) -> str:
    return f"{number:,}"


def brief_count(number: int) -> str:
    """For charts: exact up to a million, then as many digits as can be seen."""
    for unit, name in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if number >= unit:
            return f"{number / unit:,.1f} {name}"
    return count(number)


def size(number: int) -> str:
    return decimal(number)


def duration(seconds: float) -> str:
    """As exact as somebody plans: tenths only of a few seconds, no seconds of hours."""
    if 0 < seconds < _TENTH_S:
        return f"< {_TENTH_S} s"
    if seconds < _TENTHS_BELOW_S:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    minutes = round(whole / _MINUTE_S)
    return f"{minutes // 60} h {minutes % 60} min"


def share(part: float) -> str:
    """Of one: 100 % is said of all only, and 0 % of none."""
    if 0 < part < 0.001:  # noqa: PLR2004 - what a tenth of a percent still shows
        return "< 0.1 %"
    if 0.999 < part < 1:  # noqa: PLR2004
        return "> 99.9 %"
    return f"{part:.1%}".replace("%", " %").replace(".0 %", " %")


def utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def plural(number: int, one: str, several: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
