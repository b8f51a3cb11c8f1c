"""The template of `catalog new`: the files of this repository's own project, and no more imports than it has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.tools.new_project.scaffold import FILES
from tests.conftest import ROOT

PACKAGE = ROOT / "catalog"
PUBLIC = {"__init__.py", "py.typed", "authoring.py", "actions.py", "tables.py", "events.py", "errors"}
SHARED = {"engine", "tools", "cli"}
OPTIONAL = {"builtins.py", "privacy.py", "samples"}
"""Parts that a project adds when it needs them: docs/howto/make-your-own-catalog.md has them."""
BUILT = {"generated", "_gate", "__pycache__"}
ALLOWED = {"catalog", "catalog.actions", "catalog.authoring", "catalog.errors"}


def template_files() -> set[str]:
    return {path.name.removesuffix(".in") for path in (FILES / "@project@").iterdir()}


def test_the_root_of_the_package_is_the_public_api_and_a_project() -> None:
    """Every other file there is one that `catalog new` writes, or an optional part that the page explains."""
    found = {path.name for path in PACKAGE.iterdir()} - BUILT
    assert found == PUBLIC | SHARED | OPTIONAL | template_files()
    page = (ROOT / "docs" / "howto" / "make-your-own-catalog.md").read_text(encoding="utf-8")
    assert [name for name in OPTIONAL if f"`shop/{name}" not in page] == []


@pytest.mark.parametrize("path", sorted(FILES.rglob("*.py.in")), ids=lambda path: path.relative_to(FILES).as_posix())
def test_the_template_imports_only_the_public_api(path: Path) -> None:
    """A project must not depend on where the engine keeps its modules."""
    source = path.read_text(encoding="utf-8").replace("@project@", "shop")
    assert set(imported(source)) <= ALLOWED


def test_this_project_imports_only_the_public_api() -> None:
    """It is a project like any other."""
    files = [PACKAGE / name for name in (OPTIONAL | template_files()) - {"__init__.py", "py.typed"}]
    sources = [source for file in files for source in ([file] if file.suffix else file.rglob("*.py"))]
    own = {f"catalog.{file.stem}" for file in files} | {"catalog.generated"}
    wrong = {
        (source.name, name)
        for source in sources
        for name in imported(source.read_text(encoding="utf-8"))
        if name not in ALLOWED and not any(f"{name}.".startswith(f"{module}.") for module in own)
    }
    assert wrong == set()


def imported(source: str) -> Iterator[str]:
    """Yield the modules of `catalog` that a source imports."""
    for node in ast.walk(ast.parse(source)):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if name.split(".")[0] == "catalog")
