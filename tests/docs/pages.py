"""The examples and commands of a page, in their order, and what each is shown to print."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from catalog.cli.app import run
from catalog.cli.main_group import root

SECTION = re.compile(r"(?m)^## ")
EXAMPLE = re.compile(r"(?ms)^```python\n(?P<code>.*?)^```\n(?:\n^```text\n(?P<shown>.*?)^```\n)?")
CONSOLE = re.compile(r"(?ms)^```console\n(?P<body>.*?)^```$")
DIFF = re.compile(r"(?ms)^```diff\n(?P<body>.*?)^```$")
EXIT = re.compile(r"\[exit (\d+)\]")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_LEFT_OUT = "…"
_FROM_THE_SESSION = re.compile(r"NOX|UV_|VIRTUAL_ENV|PYTEST|PYTHONPATH|CATALOG_(?!CLASS_ARCHIVE)|CI$|GITHUB")


@dataclass(frozen=True, slots=True)
class Example:
    code: str
    shown: str | None
    """What stands in a block of text right after it; none if there is no such block."""
    where: str


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    shown: tuple[str, ...]
    """Each stands in what it prints, in this order; `…` stands for what is left out."""
    status: int
    where: str


@dataclass(frozen=True, slots=True)
class Diff:
    text: str


def examples(page: Path) -> dict[str, list[Example]]:
    """By the heading of their section."""
    text = page.read_text(encoding="utf-8")
    starts = [0, *(found.start() for found in SECTION.finditer(text)), len(text)]
    sections = {}
    for start, end in pairwise(starts):
        found = [
            Example(match["code"], match["shown"], _where(page, text, match))
            for match in EXAMPLE.finditer(text, start, end)
        ]
        sections[text[start:end].partition("\n")[0].lstrip("# ")] = found
    assert sum(len(found) for found in sections.values()) == text.count("```python")
    return sections


def blocks(page: Path) -> list[Example | Command | Diff]:
    """Whatever can be followed, in the order of the page."""
    text = page.read_text(encoding="utf-8")
    found: list[tuple[int, Example | Command | Diff]] = [
        (match.start(), Example(match["code"], match["shown"], _where(page, text, match)))
        for match in EXAMPLE.finditer(text)
    ]
    for match in CONSOLE.finditer(text):
        found += [(match.start(), command) for command in _commands(match["body"], _where(page, text, match))]
    found += [(match.start(), Diff(match["body"])) for match in DIFF.finditer(text)]
    return [block for _, block in sorted(found, key=lambda pair: pair[0])]


def cited_tests(page: Path) -> list[tuple[str, str]]:
    """The tests that a page names: file and function."""
    return TEST.findall(page.read_text(encoding="utf-8"))


def run_example(example: Example, names: dict[str, object], places: Mapping[str, str]) -> None:
    """Run it with what those before it defined, on other places; it prints what is shown, if anything is."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(_placed(example.code, places), example.where, "exec"), names)  # noqa: S102 - our own page
    assert printed.getvalue() == (example.shown or ""), f"{example.where} printed:\n{printed.getvalue()}"


def run_command(command: Command, folder: Path, places: Mapping[str, str]) -> None:
    """Run a command as shown, on other places; it ends and prints as shown."""
    line = _placed(command.line, places)
    status, printed = _catalog(line, folder) if line.startswith("catalog ") else in_shell(line, folder)
    check_shown(command, status, printed, places)


def apply_diff(diff: str, checkout: Path) -> None:
    """Change files as shown; what does not fit is an error."""
    done = subprocess.run(
        ["git", "apply", "--recount", "-"], input=diff, cwd=checkout, text=True, stderr=subprocess.PIPE, check=False
    )
    assert done.returncode == 0, f"{done.stderr}\n{diff}"


def check_shown(command: Command, status: int, printed: str, places: Mapping[str, str]) -> None:
    """Whether a command ended and printed as shown."""
    told = f"{command.where}\n$ {command.line}\n{printed}"
    assert status == command.status, told
    position = 0
    for shown in command.shown:
        for part in _placed(shown, places).split(_LEFT_OUT):
            found = printed.find(part.strip(), position)
            assert found >= 0, f"{told}\ndid not print, at its place: {part}"
            position = found + len(part.strip())


def in_shell(script: str, folder: Path, shell: Sequence[str] = ("sh", "-c"), **variables: str) -> tuple[int, str]:
    """Run it as somebody who is in no session; answer its exit status and what it printed."""
    kept = {name: value for name, value in os.environ.items() if not _FROM_THE_SESSION.match(name)}
    done = subprocess.run(
        [*shell, script],
        cwd=folder,
        env={**kept, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def _catalog(line: str, folder: Path) -> tuple[int, str]:
    """Run the command in this process, with nobody at the keyboard: all pages share what is loaded, and one JVM."""
    printed = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        patch.object(sys, "stdin", io.StringIO()),
    ):
        status = run(root, shlex.split(line)[1:])
    return status, printed.getvalue()


def _commands(body: str, where: str) -> Iterator[Command]:
    for shown in re.split(r"(?m)^(?=\$ )", body):
        line, *lines = shown.removeprefix("$ ").rstrip("\n").split("\n")
        while line.endswith("\\"):
            line = f"{line}\n{lines.pop(0)}"
        status = EXIT.fullmatch(lines[-1]) if lines else None
        yield Command(line, tuple(lines[:-1] if status else lines), int(status[1]) if status else 0, where)


def _where(page: Path, text: str, match: re.Match[str]) -> str:
    return f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}"


def _placed(text: str, places: Mapping[str, str]) -> str:
    for shown, real in places.items():
        text = text.replace(shown, real)
    return text
