"""Numbers, sizes, durations and times as people read them, in text and on pages."""

from __future__ import annotations

from datetime import UTC, datetime

_MINUTE_S, _HOUR_S = 60, 3600
_THOUSAND, _UNITS = 1000, ("kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")
_TENTH_S, _TENTHS_BELOW_S = 0.1, 10


def count(number: int) -> str:
    return f"{number:,}"


def brief_count(number: int) -> str:
    """Format a number for charts: exact up to a million, then rounded."""
    for unit, name in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if number >= unit:
            return f"{number / unit:,.1f} {name}"
    return count(number)


def size(number: int) -> str:
    """Format a number of bytes, in powers of a thousand."""
    if number < _THOUSAND:
        return plural(number, "byte")
    unit = next((place for place in range(len(_UNITS)) if number < _THOUSAND ** (place + 2)), len(_UNITS) - 1)
    return f"{number / _THOUSAND ** (unit + 1):,.1f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """Format a duration: tenths for a few seconds, no seconds for hours."""
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
    """Format a share of one in percent; only all is 100 %, and only none is 0 %."""
    if 0 < part < 0.001:  # noqa: PLR2004 - what a tenth of a percent still shows
        return "< 0.1 %"
    if 0.999 < part < 1:  # noqa: PLR2004
        return "> 99.9 %"
    return f"{part:.1%}".replace("%", " %").replace(".0 %", " %")


def utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def utc_ms(at_ms: int) -> str:
    return utc(datetime.fromtimestamp(at_ms / 1000, UTC))


def short_checksum(checksum: str) -> str:
    """Return the first digits of a checksum, enough to tell it from others."""
    return checksum.removeprefix("sha256:")[:12]


def plural(number: int, one: str, several: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
