"""What a shell offers when somebody presses the key: the script that asks, and the answer.

A script hands over the line as far as the cursor, and reads a line for each candidate: `word`, what would stand there
and what is said of it, parted by tabs; or `dir` or `file`, which the shell looks up itself. No error is shown:
whoever is typing has asked for nothing.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

VARIABLE: Final = "_CATALOG_COMPLETE"
"""Holds the name of the shell that asks."""
_SCRIPTS = Path(__file__).with_name("shells")
_END = "\x1f"
"""Stands at the end of a line, to tell a word that ends there from one that is about to begin."""
_OPTION = re.compile(r"--[^=]*=")
"""Before the value of an option that is written in one word with it."""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@dataclass(frozen=True, slots=True)
class Line:
    """A command line as far as the cursor, without the command itself."""

    words: tuple[str, ...]
    word: str
    """The one that the cursor is at the end of; empty if it is about to begin."""
    kept: int = 0
    """How much of that word the shell leaves as it is: it replaces the rest alone."""


def script_of(shell: Shell) -> str:
    return (_SCRIPTS / shell).read_text(encoding="utf-8")


def complete(root: click.Group, shell: str, given: Sequence[str]) -> list[str]:
    """What a script is answered; nothing if anything at all is wrong."""
    try:
        kind = Shell(shell)
        line = _typed(given) if kind is Shell.BASH else Line(tuple(map(_expanded, given[:-1])), given[-1])
        return [_told(item, line, kind) for item in offered(root, line)]
    except BaseException:  # noqa: BLE001 - libraries in Rust raise what is no Exception
        return []


def offered(root: click.Group, line: Line) -> list[CompletionItem[str]]:
    """What could stand where the cursor is."""
    return ShellComplete(root, {}, "catalog", VARIABLE).get_completions(list(line.words), line.word)


def _typed(given: Sequence[str]) -> Line:
    """What bash hands over: the line, and the characters that part words for it beside spaces."""
    text, breaks = given
    words = split_arg_string(text + _END)
    word = words.pop().removesuffix(_END)
    kept = max((word.rfind(mark) + 1 for mark in "=:" if mark in breaks), default=0)
    return Line(tuple(map(_expanded, words[1:])), word, kept)


def _expanded(word: str) -> str:
    """A word as the shell would hand it to a command, as far as can be told without asking it."""
    return os.path.expanduser(os.path.expandvars(word))  # noqa: PTH111 - what is no path stays as it is


def _told(item: CompletionItem[str], line: Line, shell: Shell) -> str:
    if item.type != "plain":
        return item.type
    option = _OPTION.match(line.word)
    value = f"{option[0] if option else ''}{item.value}"
    if shell is Shell.BASH:  # which shows nothing beside it, and does not quote
        return f"word\t{shlex.quote(value[line.kept :])}"
    return "\t".join(("word", value, " ".join((item.help or "").split())))
