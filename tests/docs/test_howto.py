"""How-to pages do what they say: every diff applies, every command prints what is shown."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import IDENTITY, ROOT, run

BLOCK = re.compile(r"(?ms)^```(?P<language>\w+)\n(?P<body>.*?)^```$")
EXIT = re.compile(r"\[exit (\d+)\]")
FROM_THE_SESSION = re.compile(r"NOX|UV_|VIRTUAL_ENV|PYTEST|PYTHONPATH|CI$|GITHUB")


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "howto").glob("*.md")), ids=lambda page: page.stem)
def test_a_how_to_page_works_as_written(page: Path, clone: Path) -> None:
    """A new colleague can follow it to the letter, in a fresh clone."""
    commands = 0
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["language"] == "diff":
            _apply(block["body"], clone)
        elif block["language"] == "console":
            for command in re.split(r"(?m)^(?=\$ )", block["body"]):
                _check_command(command, clone)
                commands += 1
    assert commands > 0
    run("git", "add", "--all", cwd=clone)
    run("git", *IDENTITY, "commit", "-q", "-m", "followed", cwd=clone)
    assert run("git", "status", "--porcelain", cwd=clone) == ""


def _apply(diff: str, clone: Path) -> None:
    done = subprocess.run(
        ["git", "apply", "--recount", "-"], input=diff, cwd=clone, text=True, stderr=subprocess.PIPE, check=False
    )
    assert done.returncode == 0, f"{done.stderr}\n{diff}"


def _check_command(shown: str, clone: Path) -> None:
    """Run a command as shown; each line shown must stand in its output, in that order."""
    command, *lines = shown.removeprefix("$ ").rstrip("\n").split("\n")
    status = EXIT.fullmatch(lines[-1]) if lines else None
    environment = {name: value for name, value in os.environ.items() if not FROM_THE_SESSION.match(name)}
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == (int(status[1]) if status else 0), f"$ {command}\n{done.stdout}"
    position = 0
    for line in lines[: -1 if status else None]:
        found = done.stdout.find(line, position)
        assert found >= 0, f"$ {command}\ndid not print, at its place: {line}\n{done.stdout}"
        position = found + len(line)
