"""Characters that nobody sees, or that a terminal obeys, are spelt out."""

from __future__ import annotations

import json
import sys
import unicodedata

from catalog.errors.visible_text import visible

UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
TAKING_NO_ROOM = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0}
"""Unicode's Default_Ignorable_Code_Point of other categories, with the variation selectors from U+E0100 on."""


def test_whatever_cannot_be_seen_is_spelt_out() -> None:
    """Every character of those categories, as JSON would; all others stay as they are."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        shown = visible(character)
        if character in "\t\n":
            assert shown == character
        elif unicodedata.category(character) in UNSEEN or code in TAKING_NO_ROOM or 0xE0000 <= code < 0xE1000:
            assert shown.isascii(), hex(code)
            assert shown.isprintable(), hex(code)
            assert json.loads(f'"{shown}"') == character
        elif unicodedata.category(character) != "Cn":
            assert shown == character, hex(code)


def test_text_among_them_stays() -> None:
    """In every script."""
    assert visible("a\u202eb\x9b31m é 🪣 שלום\n") == "a\\u202eb\\u009b31m é 🪣 שלום\n"
