"""The README's commands and examples do what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from catalog.engine.spark.session import local_session
from tests.conftest import ROOT
from tests.docs.pages import Command, Example, blocks, check_shown, in_shell, run_command, run_example
from tests.docs.test_reference import is_a_test

PAGE = ROOT / "README.md"
HOME = "/home/ann"
RUN_ELSEWHERE = {
    "./dev demo": "tests/cli/test_demo.py::test_the_demonstration_shows_what_the_store_holds",
    "./dev test": "tests/docs/test_readme.py::test_the_commands_and_examples_of_the_readme_run",  # it is what runs this
    ". ~/catalog-environment/bin/activate": (
        "tests/package/test_package.py::test_a_wheel_built_from_an_sdist_built_from_a_clone_works"
    ),
    "python3 -m venv": "tests/package/test_package.py::test_a_wheel_built_from_an_sdist_built_from_a_clone_works",
    "~/catalog-environment/bin/pip install": (
        "tests/package/test_package.py::test_a_wheel_built_from_an_sdist_built_from_a_clone_works"
    ),
}
"""What takes the whole suite, or an environment of its own: how it begins, and the test that does it."""


@pytest.mark.spark
def test_the_commands_and_examples_of_the_readme_run(
    tmp_path: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a newcomer copies works, in the order in which it stands there."""
    local_session(settings={"spark.master": "local[2]"})
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(PAGE):
        match block:
            case Example():
                run_example(block, names, {})
            case Command(line="./dev check"):
                _check(block, clone)
            case Command() if not _is_run_elsewhere(block.line):
                run_command(block, tmp_path, {HOME: str(tmp_path)})


def _is_run_elsewhere(line: str) -> bool:
    tests = [test for begin, test in RUN_ELSEWHERE.items() if line.startswith(begin)]
    assert all(is_a_test(test) for test in tests)
    return bool(tests)


def _check(command: Command, clone: Path) -> None:
    """The gate as `./dev` runs it, without an environment of its own, on types that somebody edited."""
    types = clone / "proto" / "objects.proto"
    role = "  optional uint32 oid = 8;\n}"
    before, after = types.read_text(encoding="utf-8").split("message RoleValue {", 1)
    types.write_text(before + "message RoleValue {" + after.replace(role, role[:-1] + "  string colour = 9;\n}", 1))
    status, printed = in_shell(f"{sys.executable} -m build_tools check", clone, GATE_RUN_BY="./dev")
    check_shown(command, status, printed, {})
