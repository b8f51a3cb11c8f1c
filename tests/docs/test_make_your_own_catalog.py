"""Somebody makes a catalog of their own by the page, with the wheel alone: nothing of this checkout is there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from catalog.cli.commands.new import NEXT
from tests.conftest import ROOT, run
from tests.docs.pages import Command, Diff, Example, apply_diff, blocks, check_shown, in_shell
from tests.environments import lend_environment

PAGE = ROOT / "docs" / "howto" / "make-your-own-catalog.md"
SOMEBODY = {f"GIT_{who}_{what}": "ann@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def wheels(clone: Path) -> Path:
    """A folder with the wheel of this package, as it stands."""
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", "out", cwd=clone)
    return clone / "out"


@pytest.mark.spark
def test_a_catalog_of_ones_own_is_made_changed_and_upgraded(wheels: Path, tmp_path: Path) -> None:
    """From an empty folder to a store that Spark has upgraded, by the page; then what CI runs, and the package."""
    (wheel,) = wheels.glob("*.whl")
    programs = lend_environment(tmp_path / "environment")
    install = (sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--python", programs / "python")
    run(*install, wheel, "pip", cwd=tmp_path)
    project = tmp_path / "shop"
    variables = SOMEBODY | {"PATH": f"{programs}:{os.environ['PATH']}", "PIP_FIND_LINKS": str(wheels), "CI": "true"}
    for block in blocks(PAGE):
        match block:
            case Diff():
                apply_diff(block.text, project)
            case Command():
                _run_command(block, project if project.exists() else tmp_path, variables)
            case Example():
                _run_example(block, project, variables)
    assert run("git", "status", "--porcelain", cwd=project) == ""
    _follow_its_own_readme(project, variables)
    _run_what_ci_runs(project, variables)
    _build_and_install(project, variables)


def _follow_its_own_readme(project: Path, variables: Mapping[str, str]) -> None:
    """It begins as the page does, and as the command itself says."""
    followed = {block.line for block in blocks(PAGE) if isinstance(block, Command)}
    own = blocks(project / "README.md")
    assert {*NEXT} <= {block.line for block in own if isinstance(block, Command)} <= followed
    (example,) = (block.code for block in own if isinstance(block, Example))
    shown = "1 orders\n65 visits\n"
    _run_example(Example(example, shown, "README.md"), project, variables)


def _run_command(command: Command, folder: Path, variables: Mapping[str, str]) -> None:
    status, printed = in_shell(command.line, folder, **variables)
    check_shown(command, status, printed, {})


def _run_example(example: Example, folder: Path, variables: Mapping[str, str]) -> None:
    (folder / "example.py").write_text(example.code, encoding="utf-8")
    status, printed = in_shell("python example.py && rm example.py", folder, **variables)
    assert (status, printed) == (0, example.shown), printed


def _run_what_ci_runs(project: Path, variables: Mapping[str, str]) -> None:
    """Its steps, in the environment that is there; the tests have run."""
    run("git", "init", "-q", "--bare", project.parent / "upstream", cwd=project)
    run("git", "push", "-q", project.parent / "upstream", "main", cwd=project)
    run("git", "remote", "add", "origin", project.parent / "upstream", cwd=project)
    run("git", "fetch", "-q", "origin", cwd=project)
    (job,) = yaml.safe_load((project / ".github/workflows/check.yml").read_text(encoding="utf-8"))["jobs"].values()
    steps = [step["run"] for step in job["steps"] if step.get("run", "").startswith("nox -s ")]
    assert steps[-1].endswith(" tests")
    for step, shown in zip(steps, ("Session check was successful", "Session types was successful"), strict=True):
        here = step.replace("nox -s", "nox --no-venv --no-install -s").removesuffix(" tests")
        status, printed = in_shell(here, project, **variables)
        assert (status, shown in printed) == (0, True), printed


def _build_and_install(project: Path, variables: Mapping[str, str]) -> None:
    """The gate stands in the build; what is built has everything that opening a store needs."""
    build = "pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist ."
    in_shell("pip install --quiet hatchling", project, **variables)
    types = project / "proto" / "objects.proto"
    before = types.read_text(encoding="utf-8")
    types.write_text(before.replace("string format = 4;", "string format = 4;\n  string owner = 5;"), encoding="utf-8")
    status, printed = in_shell(build, project, **variables)
    assert status != 0
    assert "S201 the current types changed without a new version" in printed
    assert list(project.glob("dist/*")) == []
    types.write_text(before, encoding="utf-8")
    install = "pip uninstall --quiet --yes shop && pip install --quiet --no-deps dist/*.whl"
    look = "cd .. && CATALOG_PROJECT=shop catalog show dataset --store shop/store"
    status, printed = in_shell(f"{build} && {install} && {look}", project, **variables)
    assert (status, 'format: "parquet"' in printed) == (0, True), printed
