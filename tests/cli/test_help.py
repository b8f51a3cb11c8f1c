"""The help of every command, as it stands on a screen of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from catalog import __version__
from catalog.cli.answer import ExitCode
from catalog.cli.main_group import root
from tests.cli.commands import in_process, in_program

FENCING = ["start", "apply", "undo", "abort", "clean", "debug edit", "debug delete"]
ASKING = ["new", "undo", "abort", "repair", "clean", "debug edit", "debug delete", "debug vacuum"]
FENCES = "Fences the leader of the store"


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    for name, own in group.commands.items():
        if isinstance(own, click.Group):
            yield from commands(own, *path, name)
        else:
            yield (*path, name), own


EVERY = dict(commands(root))
every_command = pytest.mark.parametrize("path", EVERY, ids=lambda path: " ".join(path) or "catalog")


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@every_command
def test_help_fits_a_narrow_screen_and_is_whole(path: tuple[str, ...]) -> None:
    """No line is longer than 80 columns, and none is cut."""
    for flag in ("--help", "-h"):
        shown = in_process(*path, flag)
        assert (shown.exit, shown.err) == (ExitCode.DONE, "")
        assert shown.out.startswith(f"Usage: {' '.join(('catalog', *path))} ")
        assert max(map(len, shown.out.splitlines())) <= 80
        assert "…" not in shown.out
        assert re.sub(r"\]\.\.\.", "", shown.out).count("...") == 0


@every_command
def test_every_command_and_option_is_explained(path: tuple[str, ...]) -> None:
    """In words of its own, which end as sentences do, and which the help shows."""
    own = EVERY[path]
    assert own.help
    assert own.help.rstrip().endswith(".")
    shown = " ".join(in_process(*path, "--help").out.split())
    for parameter in own.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help.endswith("."), parameter.name
            assert " ".join(parameter.help.split()) in shown


def test_help_says_which_commands_fence() -> None:
    """Those and no others, in their own help and in that of the whole."""
    fencing = [" ".join(path) for path, own in EVERY.items() if FENCES in in_process(*path, "--help").out]
    assert fencing == FENCING
    assert f"which can no longer write: {', '.join(FENCING)}." in " ".join(in_process("--help").out.split())


def test_what_asks_can_be_agreed_to_beforehand() -> None:
    """By `--yes`, or by the name of what is removed."""
    flags = {" ".join(path): {flag for own in command.params for flag in own.opts} for path, command in EVERY.items()}
    assert [name for name, own in flags.items() if own & {"--yes", "--name"}] == ASKING


def test_help_tells_every_exit_code() -> None:
    """0 to 6, each with what it means."""
    told = " ".join(in_process("--help").out.split()).partition("Exit codes: ")[2]
    assert re.findall(r"\b\d\b", told) == [str(code) for code in range(7)]


def test_a_group_alone_shows_its_help() -> None:
    """Nothing was asked for, so what there is to ask for is shown."""
    for words in ([], ["debug"], ["config"]):
        shown = in_process(*words)
        assert shown.exit == ExitCode.USAGE, shown
        assert shown.out == ""
        assert "\n\nCommands:\n" in shown.err


def test_the_version_is_that_of_the_package() -> None:
    """On standard output."""
    assert in_program("--version").out == f"catalog, version {__version__}\n"
