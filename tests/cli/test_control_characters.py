"""Characters that a terminal obeys and nobody sees reach none, from rows, names or errors."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.objects import SettingKey, SettingValue
from tests.cli.commands import Shown, call, ended, in_process, on_screen
from tests.cli.conftest import Stores
from tests.cli.terminal import ESCAPE

NASTY = (
    "\x00\x07\x08\x0b\x0c\r\x1b[31m\x1b]0;title\x07\x7f\x80\x85\x9b31m\x9d0;x\x9c\xad\u061c\u200b\u200d\u200e\u200f"
    "\u2028\u2029\u202a\u202e\u2060\u2066\u2069\ufeff\ufff9\U000e0041\U0001d173"
)
"""Controls of both sets, escapes, what turns text around, and what takes no room."""


@pytest.fixture
def store(store_of: Stores) -> Path:
    store = store_of()
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name=f"a{NASTY}z"), SettingValue(value=f"b{NASTY}y"))
    return store


def _expect_visible(written: str) -> None:
    unseen = {hex(ord(own)) for own in written if unicodedata.category(own) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert unseen <= {"0xa"}, written


def _expect(shown: Shown) -> None:
    _expect_visible(shown.out + shown.err)


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_command_writes_a_control_character_of_a_row(store: Path, form: str) -> None:
    """As text they are spelt out; JSON escapes them, so that nothing is lost."""
    for words in (
        ["show", "setting"],
        ["subscribe", "setting", "--snapshot-only"],
        ["debug", "dump"],
        ["debug", "fsck"],
        ["history"],
        ["info"],
        ["debug", "edit", "setting", json.dumps({"name": f"x{NASTY}"}), "{", "--yes"],
        ["show", f"sett{NASTY}ing"],
        ["show", "setting", "--where", f"name = {NASTY}"],
        ["sql", f"DROP {NASTY}"],
        [f"inf{NASTY}o"],
    ):
        _expect(in_process("--format", form, *words, "-s", store))


def test_json_gives_back_what_was_stored(store: Path) -> None:
    """Escaped, not replaced."""
    rows = call("show", "setting", "-s", store)["rows"]
    assert {"name": f"a{NASTY}z"} in [row["key"] for row in rows]


def test_a_terminal_gets_no_control_character_of_a_row(store: Path) -> None:
    """Beside those of its own colours."""
    for words in (["show", "setting"], ["history"]):
        with on_screen(*words, "--store", store) as child:
            ended(child)
            written = ESCAPE.sub("", child.before).replace("\r\n", "\n")
        _expect_visible(written)
        if words[0] == "show":
            assert "\\u009b31m" in written
            assert "\\u202e" in written


def test_a_setting_and_a_path_are_told_visibly(tmp_path: Path) -> None:
    """They come from files and from other people, too."""
    nasty = NASTY.replace("\x00", "")
    (tmp_path / "catalog.toml").write_text(f"[tool.catalog]\nstore = {json.dumps(f'x{nasty}')}\n", encoding="utf-8")
    for words in (["config", "show"], ["info"]):
        _expect(in_process(*words, "--config-file", tmp_path / "catalog.toml"))
    _expect(in_process("info", "--store", tmp_path / f"no{nasty}where"))
