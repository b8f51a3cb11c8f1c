"""`./dev` on machines that lack something: one clear sentence, and nothing made."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

JAVA_NEEDED = "dev: Java 17 or later is needed"


def _dev(clone: Path, session: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        ["./dev", session],
        cwd=clone,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert not (clone / ".venv").exists()
    return done.returncode, done.stdout


def _program(folder: Path, name: str, script: str) -> Path:
    program = folder / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("session", ["test", "demo"])
def test_a_missing_java_is_said_in_one_sentence(clone: Path, session: str) -> None:
    """Before anything is installed, and with what to do."""
    status, printed = _dev(clone, session, JAVA_HOME="/nowhere")
    assert status == 1
    assert printed == f"{JAVA_NEEDED} and was not found; install it, or name it with JAVA_HOME.\n"


@pytest.mark.parametrize(
    ("banner", "major"), [('openjdk version "11.0.2" 2019-01-15', "11"), ('java version "1.8.0_412"', "1")]
)
def test_a_java_that_is_too_old_is_said_in_one_sentence(clone: Path, tmp_path: Path, banner: str, major: str) -> None:
    """With the version that was found."""
    java = _program(tmp_path / "jdk" / "bin", "java", f"echo '{banner}' >&2")
    status, printed = _dev(clone, "test", JAVA_HOME=str(tmp_path / "jdk"))
    assert status == 1
    expected = f"{JAVA_NEEDED}, and {java} is Java {major}; install it, or name it with JAVA_HOME.\n"
    assert printed == expected


def test_a_python_that_is_too_old_is_said_in_one_sentence(clone: Path, tmp_path: Path) -> None:
    """An interpreter that cannot run the project is not tried."""
    old = _program(tmp_path / "bin", "python3", "exit 1")
    status, printed = _dev(clone, "lint", PYTHON=str(old))
    assert status == 1
    assert printed == (
        "dev: Python 3.11 or later is needed and was not found; install it, or name it with PYTHON=/path/to/python.\n"
    )


def test_without_a_session_it_says_what_it_does(clone: Path) -> None:
    """A new colleague types `./dev` first."""
    done = subprocess.run(["./dev"], cwd=clone, capture_output=True, text=True, check=True)
    assert "./dev test" in done.stdout
    assert "./dev demo" in done.stdout
