"""Fresh copies of the project, for tests to make mistakes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.gate.project_copy import Copy, copy_repository, make_template
from tests.volatile import tmp_path

__all__ = ["tmp_path"]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("template") / "project"
    make_template(target)
    return target


@pytest.fixture(scope="session")
def released_template(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("released") / "project"
    shutil.copytree(template, target)
    copy = Copy(target)
    copy.init()
    copy.release("0.1.0")
    copy.git("gc", "--quiet")  # a pack is copied quicker than its objects
    return target


@pytest.fixture
def tree(template: Path, tmp_path: Path) -> Copy:
    """The project at v22, unreleased, in no repository."""
    return Copy(Path(shutil.copytree(template, tmp_path / "project")))


@pytest.fixture
def released(released_template: Path, tmp_path: Path) -> Copy:
    """The project at v22, in a repository whose main branch has released it as 0.1.0."""
    return Copy(Path(shutil.copytree(released_template, tmp_path / "project")))


@pytest.fixture
def repository(tmp_path: Path) -> Copy:
    """The real project as it is now."""
    copy_repository(tmp_path / "project")
    return Copy(tmp_path / "project")
