"""Suggestions for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable

_LISTED_MAX = 6


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return advice about a name that does not exist: the nearest known one, or else some that do."""
    from difflib import get_close_matches  # noqa: PLC0415 - a project without findings needs none

    names = sorted(known)
    folded: dict[str, str] = {}
    for own in names:
        folded.setdefault(_folded(own), own)
    near = get_close_matches(_folded(name), folded, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{folded[near[0]]}`?"
    more = f" and {len(names) - _LISTED_MAX} more" if len(names) > _LISTED_MAX else ""
    return f"there are: {', '.join(names[:_LISTED_MAX])}{more}" if names else "there are none"


def _folded(name: str) -> str:
    """Return a name without what people add or leave out: capitals, underscores, the `s` of a plural."""
    return name.lower().replace("_", "").removesuffix("s")
