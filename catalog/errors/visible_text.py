"""Characters that a person cannot see, or that change how the text around them is shown: each is spelt out."""

from __future__ import annotations

import re
from typing import Final

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, without tab and line feed
    "\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Unicode's categories Cc, Cf, Cs, Zl and Zp, letters and marks that take no room, and what is no character."""


def visible(text: str) -> str:
    r"""Write such characters as JSON does, `\u202e`: in a text for people as in the JSON for programs."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_spelt, text)


def _spelt(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))
