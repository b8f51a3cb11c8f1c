"""Shell completion: the script of each shell, and its answers.

A script passes the line up to the cursor, and reads a line for each candidate: `word`, the candidate and its help,
separated by tabs; or `dir` or `file`, which the shell completes itself. click's own scripts are not used: they lose
words that bash splits at `:` and `=`, paths that begin with `~`, and print errors into the prompt.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

VARIABLE: Final = "_CATALOG_COMPLETE"
"""The variable with the name of the shell that asks."""
_SCRIPTS = Path(__file__).with_name("scripts")
_END = "\x1f"
"""Marks the end of a line, so that a word that ends there differs from a word that is about to begin."""
_OPTION = re.compile(r"--[^=]*=")
"""An option that is written in one word with its value."""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Completer(ShellComplete):
    """Answers zsh and fish, whose scripts pass the words up to the cursor."""

    def __init__(self, root: click.Group, given: Sequence[str]) -> None:
        super().__init__(root, {}, "catalog", VARIABLE)
        self.given = given

    @property
    def word(self) -> str:
        """The word that the cursor is at the end of; empty if it is about to begin."""
        return self.given[-1]

    def get_completion_args(self) -> tuple[list[str], str]:
        return [*map(_expanded, self.given[:-1])], self.word

    def format_completion(self, item: CompletionItem[str]) -> str:
        if item.type != "plain":
            return item.type
        option = _OPTION.match(self.word)
        return self.format_word(f"{option[0] if option else ''}{item.value}", " ".join((item.help or "").split()))

    def format_word(self, value: str, text: str) -> str:
        return f"word\t{value}\t{text}"


class BashCompleter(Completer):
    """Answers bash, whose script passes the line, and the characters at which bash splits words besides spaces."""

    @property
    def word(self) -> str:
        return split_arg_string(self.given[0] + _END)[-1].removesuffix(_END)

    def get_completion_args(self) -> tuple[list[str], str]:
        return [*map(_expanded, split_arg_string(self.given[0] + _END)[1:-1])], self.word

    def format_word(self, value: str, text: str) -> str:
        """Return the part of the value that bash replaces, quoted; bash shows no help and does not quote."""
        del text
        kept = max((self.word.rfind(mark) + 1 for mark in "=:" if mark in self.given[1]), default=0)
        return f"word\t{shlex.quote(value[kept:])}"


def script_of(shell: Shell) -> str:
    return (_SCRIPTS / shell).read_text(encoding="utf-8")


def complete(root: click.Group, shell: str, given: Sequence[str]) -> str:
    """Return the answer to a script; empty if anything at all is wrong, because no error may show in a prompt."""
    try:
        completer = BashCompleter if Shell(shell) is Shell.BASH else Completer
        return completer(root, given).complete()
    except BaseException:  # noqa: BLE001 - libraries in Rust raise what is no Exception
        return ""


def _expanded(word: str) -> str:
    """Expand variables and `~`, as the shell will before it runs the command."""
    return os.path.expanduser(os.path.expandvars(word))  # noqa: PTH111 - what is no path stays as it is
