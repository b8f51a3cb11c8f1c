"""Clones in which sessions can be run, which share the environments of these."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("environments")


@pytest.fixture
def checkout(clone: Path, environments: Path) -> Path:
    """A clone; an environment that a session made in another is taken on, and installs what is in this one."""
    return share(clone, environments)


def share(clone: Path, environments: Path) -> Path:
    (clone / ".nox").symlink_to(environments)
    (clone / ".git" / "info" / "exclude").write_text(".nox\n", encoding="utf-8")
    return clone
