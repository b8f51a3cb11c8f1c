"""Projects found by their name."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.engine.base.project import load_project
from catalog.errors import BrokenProjectError, OutdatedProjectError, UnknownProjectError


def write_package(name: str, upgrade: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a package importable whose module `upgrade` is this."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").touch()
    (folder / name / "upgrade.py").write_text(upgrade, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)


def test_a_project_of_an_earlier_build_is_told_what_to_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its package is there; what is missing is a module of this one."""
    write_package("old_shop", "from catalog.project import Project\n", tmp_path, monkeypatch)
    with pytest.raises(OutdatedProjectError, match=r"does not load: No module named 'catalog\.project'") as refused:
        load_project("old_shop")
    assert "catalog.authoring" in refused.value.next
    assert "-m build_tools codegen" in refused.value.next


def test_a_project_that_lacks_a_package_of_others_is_not_outdated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_package("lacking_shop", "import a_package_that_is_not_installed\n", tmp_path, monkeypatch)
    with pytest.raises(UnknownProjectError, match="there is no project lacking_shop") as refused:
        load_project("lacking_shop")
    assert type(refused.value) is UnknownProjectError


BROKEN = {
    "a type that is gone": ("from catalog.objects import RolKey\n", "cannot import name 'RolKey'"),
    "a field that is gone": ("from catalog.objects import RoleValue\nRoleValue(nme='x')\n", 'no "nme" field'),
    "no Python": ("def initialize(:\n", "SyntaxError: invalid syntax"),
    "a name that is none": ("PROJECT = project\n", "NameError: name 'project' is not defined"),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_project_whose_files_do_not_fit_is_told_to_correct_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    """It is installed: the advice is the gate, which reads the same file."""
    source, found = BROKEN[mistake]
    name = f"broken_{list(BROKEN).index(mistake)}"
    write_package(name, f"from {name} import initialize\n", tmp_path, monkeypatch)
    (tmp_path / name / "initialize.py").write_text(source, encoding="utf-8")
    with pytest.raises(BrokenProjectError) as refused:
        load_project(name)
    assert refused.value.what.startswith(f"the project {name} does not load: ")
    assert found in refused.value.what
    assert "(initialize.py, line " in refused.value.what
    assert refused.value.next == "correct that file; `python -m build_tools check` tells what was meant"
