"""The framework of commands: declarations, functions and views are found by the command's name."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import click
import pytest

from catalog.cli.answer import ExitCode, module_name
from catalog.cli.app import function_of
from tests.cli.commands import in_process
from tests.cli.test_help import EVERY

COMMANDS = {" ".join(path): own for path, own in EVERY.items() if not isinstance(own, click.Group)}


@pytest.mark.parametrize("path", COMMANDS)
def test_a_command_has_a_function_and_a_view_of_its_name(path: str) -> None:
    """The function takes exactly the options and arguments that are declared."""
    declared = {own.name for own in COMMANDS[path].params if own.expose_value}
    _, *taken = inspect.signature(function_of(path)).parameters
    assert set(taken) == declared
    assert callable(import_module(f"catalog.cli.text.{module_name(path)}").render)


def test_a_refused_command_line_is_answered_in_its_format(tmp_path: Path) -> None:
    """Wherever that format stands in it."""
    for words in (
        ["--format", "json", "info", "--bogus"],
        ["info", "--bogus", "--format=json"],
        ["bogus", "--format", "json"],
    ):
        shown = in_process(*words, "--store", tmp_path)
        assert (shown.exit, shown.err) == (ExitCode.USAGE, ""), words
        assert shown.out.startswith('{"ok": false, "command": "' + ("" if "bogus" in words else "info"))
