"""The files for CI do what the page says: their steps are run, for a pull request and its real base."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from build_tools.project_tree import find_tree
from build_tools.verbs.new_version import create
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.conftest import IDENTITY, ROOT, run
from tests.docs.pages import in_shell
from tests.environments import lend_to_clone

HOWTO = ROOT / "docs" / "howto"
GITHUB, JENKINS = HOWTO / "ci" / "github-actions.yml", HOWTO / "ci" / "Jenkinsfile"
BASE = "release"
"""The branch that the pull request is for: not the one that everybody thinks of."""
RUNS_THIS = re.compile(r"\./dev (lint|types|tests)\b")
"""Sessions of `./dev test`, which runs this test too."""


def _github_steps() -> Iterator[tuple[str, str]]:
    (job,) = yaml.safe_load(GITHUB.read_text(encoding="utf-8"))["jobs"].values()
    for step in job["steps"]:
        if "run" in step:
            yield step["run"].strip(), "bash -e -c"


def _jenkins_steps() -> Iterator[tuple[str, str]]:
    for found in re.finditer(r"(?m)^ *sh '(.*)'$", JENKINS.read_text(encoding="utf-8")):
        yield found[1], "sh -xe -c"


STEPS: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {"github": _github_steps, "jenkins": _jenkins_steps}
VARIABLES = {"github": {"GITHUB_BASE_REF": BASE}, "jenkins": {"BASE": BASE}}


@pytest.fixture
def pull_request(origin: Path, tmp_path: Path) -> Path:
    """A clone as CI makes it: of a branch, with its base as a branch of origin and nothing else."""
    upstream, clone = tmp_path / "upstream", tmp_path / "work"
    run("git", "clone", "-q", origin, upstream, cwd=tmp_path)
    run("git", "switch", "-q", "-c", BASE, cwd=upstream)
    run("git", *IDENTITY, "commit", "-q", "--allow-empty", "-m", "on the base", cwd=upstream)
    run("git", "switch", "-q", "-c", "topic", cwd=upstream)
    run("git", *IDENTITY, "commit", "-q", "--allow-empty", "-m", "the change", cwd=upstream)
    run("git", "clone", "-q", "--branch", "topic", upstream, clone, cwd=tmp_path)
    return clone


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    generate(PROJECT, tmp_path / "stores" / "first", 21, 100, 1)
    generate(PROJECT, tmp_path / "stores" / "below" / "second", 21, 100, 2)
    return tmp_path / "stores"


def test_the_steps_of_a_pull_request_pass(pull_request: Path, stores: Path) -> None:
    """Each as its file has it, once if both have it, but for what runs this test; without stores the last one fails."""
    lend_to_clone(pull_request)
    ran: dict[str, str] = {}
    for system, steps in STEPS.items():
        for script, shell in steps():
            if not RUNS_THIS.match(script) and script not in ran:
                variables = VARIABLES[system] | {"UPGRADE_CHECK_STORES": str(stores)}
                status, ran[script] = in_shell(script, pull_request, shell.split(), **variables)
                assert status == 0, f"{script}\n{ran[script]}"
    gates = [printed for script, printed in ran.items() if script.startswith("./dev check")]
    assert (len(gates), "::error" in gates[0], "gate: clean" in gates[1]) == (2, False, True)
    assert ran['./dev upgrade_check "$UPGRADE_CHECK_STORES"'].count("PASS: ") == 2
    status, printed = in_shell(f"./dev upgrade_check -- {stores / 'none'}", pull_request)
    assert status != 0
    assert f"there is no store in {stores / 'none'}; a store is a folder with store.json" in printed


@pytest.mark.parametrize("system", STEPS)
def test_a_version_that_the_base_has_taken_is_told(system: str, pull_request: Path) -> None:
    """The gate looks at the base of the pull request, and not at main."""
    upstream = pull_request.parent / "upstream"
    run("git", "switch", "-q", BASE, cwd=upstream)
    _make_a_version(upstream, "shape")
    run("git", "fetch", "-q", "origin", cwd=pull_request)
    _make_a_version(pull_request, "colour")
    ((script, shell),) = [step for step in STEPS[system]() if step[0].startswith("./dev check")]
    gate = script.replace("./dev", f"{sys.executable} -m build_tools")
    status, printed = in_shell(gate, pull_request, shell.split(), **VARIABLES[system])
    assert status == 1, printed
    assert "V403" in printed
    assert f"origin/{BASE}" in printed


def test_the_jenkinsfile_makes_a_shallow_clone_whole(pull_request: Path, tmp_path: Path) -> None:
    """Without its history the gate refuses to vouch for anything."""
    shallow, upstream = tmp_path / "shallow", f"file://{pull_request.parent / 'upstream'}"
    run("git", "clone", "-q", "--depth", "1", "--branch", "topic", upstream, shallow, cwd=tmp_path)
    for script, shell in list(_jenkins_steps())[:2]:
        status, printed = in_shell(script, shallow, shell.split(), BASE=BASE)
        assert status == 0, printed
    assert run("git", "rev-parse", "--is-shallow-repository", cwd=shallow) == "false\n"
    assert run("git", "log", "-1", "--format=%s", f"origin/{BASE}", cwd=shallow) == "on the base\n"


def test_every_session_of_the_files_is_one() -> None:
    """Those that are not run here are those that run this test."""
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    sessions = set(re.findall(r"(?m)^@nox\.session.*\ndef (\w+)", noxfile))
    for file in (GITHUB, JENKINS):
        named = set(re.findall(r"\./dev (\w+)", file.read_text(encoding="utf-8")))
        assert named == {"check", "lint", "types", "tests", "upgrade_check"}
        assert named <= sessions
    assert 'BESIDE = ["build", "lint", "types", "docs"]' in noxfile


@pytest.mark.parametrize(("file", "language"), [(GITHUB, "yaml"), (JENKINS, "groovy")])
def test_the_page_shows_the_files_as_they_are(file: Path, language: str) -> None:
    """Whoever copies from the page gets what was tested."""
    page = (HOWTO / "run-in-ci.md").read_text(encoding="utf-8")
    assert f"```{language}\n{file.read_text(encoding='utf-8')}```\n" in page


def _make_a_version(folder: Path, field: str) -> None:
    types = folder / "proto" / "objects.proto"
    before, after = types.read_text(encoding="utf-8").split("message RoleValue {", 1)
    types.write_text(f"{before}message RoleValue {{\n  string {field} = 9;{after}", encoding="utf-8")
    create(find_tree(folder, search=False), field)
    run("git", "add", "--all", cwd=folder)
    run("git", *IDENTITY, "commit", "-q", "-m", field, cwd=folder)
