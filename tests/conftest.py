"""A clone of this project as it stands, committed, and fresh environments to install things into."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests.browser import browser, chromium
from tests.engine.migrate.cluster.servers import cluster, connect_server
from tests.gate.project_copy import Copy, cut_back
from tests.object_store import object_store

__all__ = ["browser", "chromium", "cluster", "connect_server", "object_store"]

settings.register_profile("default", max_examples=30, deadline=None)  # machines are noisy: nothing here is timed
settings.register_profile("soak", max_examples=2_000, deadline=None)

ROOT = Path(__file__).parents[1]
GROUPS = {
    "cluster": ["engine/migrate/cluster/test_standalone.py"],
    "connect": ["engine/migrate/cluster", "engine/migrate/kills"],
    "upgrades on spark": ["upgrade", "migrations", "tools", "cli", "engine/migrate"],
    "spark": ["engine/spark", "docs", ""],
    "browser": ["docs/test_site.py"],
}
"""Tests that share a server, a JVM or a browser, and run on one worker: by the first entry that a file is in.

The longest come first, so that the workers end at the same time.
"""
SLOW = [
    "cli/html/test_pages.py",
    "cli/test_completion.py",
    "cli/test_doctor.py",
    "cli/test_exits.py",
    "cli/test_history.py",
    "cli/test_imports.py",
    "cli/test_malformed.py",
    "cli/test_observers.py",
    "cli/test_progress.py",
    "cli/test_secrets.py",
    "cli/test_subscribe.py",
    "cli/test_terminal.py",
    "docs",
    "engine/builtins/test_simulation.py",
    "engine/codec/test_message_codec.py",
    "engine/log/test_archive.py",
    "engine/log/test_looking_again.py",
    "engine/log/test_maintenance.py",
    "engine/log/test_outcomes.py",
    "engine/log/test_sizes.py",
    "engine/migrate/test_faults.py",
    "engine/migrate/test_races.py",
    "engine/shard/test_races.py",
    "engine/stash/crashes",
    "engine/stash/races",
    "engine/stash/simulation",
    "engine/stash/test_constraint_meaning.py",
    "gate/test_wire_properties.py",
    "package/test_bans.py",
    "package/test_package.py",
    "tools/fsck",
    "tools/generator",
    "tools/test_anonymise.py",
    "tools/test_copy.py",
    "tools/test_looking_again.py",
    "tools/test_repair.py",
    "tools/upgrade_check",
    "upgrade/test_other_types.py",
]
"""Files that `./dev test quick` leaves out besides tests that need a JVM, a browser or an object store: those that take
seconds.
"""
SERVED = frozenset({"bucket", "object_store", "s3"})
"""Fixtures and parameters of tests that talk to the server of an object store."""
IDENTITY = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]


def pytest_configure() -> None:
    """Let all tests share an archive of Java's classes, made in the background by the first that has none.

    Let Ctrl-C reach the programs of tests: a shell's background job ignores it, and so would all that it starts. Let
    Python keep what it has compiled, whatever the variable says: tests start hundreds of processes.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.environ.setdefault("CATALOG_CLASS_ARCHIVE", str(ROOT / ".cache"))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests their groups, and begin with those of the longest."""
    order = {group: number for number, group in enumerate(GROUPS)}
    for item in items:
        if _is_served(item) or _is_among(item.path, *SLOW):
            item.add_marker(pytest.mark.slow)
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))
            if group in {"cluster", "connect"}:
                item.add_marker(pytest.mark.cluster)
            elif group == "browser":
                item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: order.get(_group(item) or "", len(order)))


@cache
def _is_among(file: Path, *places: str) -> bool:
    """Tell if a file is in one of these files and folders of the tests."""
    return any(file.is_relative_to(ROOT / "tests" / place) for place in places)


def _is_served(item: pytest.Item) -> bool:
    given = getattr(getattr(item, "callspec", None), "params", {}).values()
    words = {word for word in given if isinstance(word, str)}
    return not SERVED.isdisjoint({*getattr(item, "fixturenames", ()), *words})


def _group(item: pytest.Item) -> str | None:
    if _is_among(item.path, *GROUPS["connect"]):
        kinds = ["cluster", "connect"]
    elif item.get_closest_marker("spark"):
        kinds = ["upgrades on spark", "spark"]
    elif "chromium" in getattr(item, "fixturenames", ()):
        return "browser"
    else:
        kinds = ["browser"]
    return next((kind for kind in kinds if _is_among(item.path, *GROUPS[kind])), None)


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
