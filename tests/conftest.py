"""A clone of this project as it stands, committed, and fresh environments to install things into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.browser import browser
from tests.cluster.servers import cluster, connect_server
from tests.gate.project_copy import Copy, cut_back

__all__ = ["browser", "cluster", "connect_server"]

settings.register_profile("default", deadline=None)  # machines are noisy: nothing here is timed
settings.register_profile("soak", max_examples=2_000, deadline=None)

ROOT = Path(__file__).parents[1]
IDENTITY = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]


def run(*command: str | Path, cwd: Path, expect: int = 0) -> str:
    """Run a program; answer what it printed, after checking its exit status."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == expect, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the working tree that git would track, cut back to v22, as one commit of a repository."""
    folder = tmp_path_factory.mktemp("origin") / "project"
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    cut_back(Copy(folder))
    run("git", "init", "-q", "-b", "main", cwd=folder)
    run("git", "add", "--all", cwd=folder)
    run("git", *IDENTITY, "commit", "-q", "-m", "all", cwd=folder)
    return folder


@pytest.fixture
def clone(origin: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    run("git", "clone", "-q", origin, folder, cwd=tmp_path)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., Path]:
    """Make a fresh virtual environment with these requirements; answer its folder of programs."""

    def make(*requirements: str | Path) -> Path:
        folder = tmp_path / "environment"
        uv = (sys.executable, "-m", "uv")
        run(*uv, "venv", "-q", "--python", sys.executable, folder, cwd=tmp_path)
        run(*uv, "pip", "install", "-q", "--python", folder / "bin" / "python", *requirements, cwd=tmp_path)
        return folder / "bin"

    return make
