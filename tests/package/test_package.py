"""The package as it is built, installed and used by others."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import run
from tests.environments import lend_environment

BUILD = (sys.executable, "-m", "build", "--no-isolation", "--outdir", "out")


def test_a_wheel_built_from_an_sdist_built_from_a_clone_works(
    clone: Path, environment: Callable[..., Path], tmp_path: Path
) -> None:
    """What a packager makes from the sdist holds the generated code, the gate and the templates, and runs."""
    run(*BUILD, "--sdist", cwd=clone)
    (sdist,) = (clone / "out").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert not (unpacked / "catalog" / "generated").exists()
    run(*BUILD, "--wheel", cwd=unpacked)
    (wheel,) = (unpacked / "out").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for stem in ("objects", *(f"objects_v{version}" for version in range(15, 23))):
        assert f"catalog/generated/{stem}_pb2.py" in names
        assert f"catalog/generated/{stem}_pb2.pyi" in names
    assert "catalog/_gate/check.py" in names
    assert "catalog/py.typed" in names
    assert "catalog/engine/spark/log4j2.properties" in names
    assert [name for name in names if not name.startswith(("catalog/", "pyspark_catalog/", "stash_catalog-"))] == []
    programs = environment(wheel)
    code = "from catalog.objects import RoleKey, RoleId; print(RoleKey(id=RoleId(user=1000)).SerializeToString().hex())"
    assert run(programs / "python", "-I", "-c", code, cwd=tmp_path) == "1203" + "10e807\n"
    assert run(programs / "catalog", "--version", cwd=tmp_path).startswith("catalog, version ")
    run(programs / "catalog", "init", "--store", "store", cwd=tmp_path)
    run(programs / "catalog", "debug", "stats", "--store", "store", "--html", "page.html", cwd=tmp_path)
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "pip install 'stash-catalog[gate]'" in run(programs / "catalog", "create", "why", cwd=clone, expect=2)


@pytest.mark.parametrize("target", ["--sdist", "--wheel"])
def test_a_package_with_findings_is_not_built(clone: Path, target: str) -> None:
    """The gate stands inside the build: nobody can ship past it."""
    _add_a_field(clone)
    printed = run(*BUILD, target, cwd=clone, expect=1)
    assert "S201 the current types changed without a new version" in printed
    assert "the package was not built: resolve the findings first" in printed
    assert not list((clone / "out").glob("*"))


def test_an_editable_install_with_findings_warns_and_works(clone: Path, tmp_path: Path) -> None:
    """The cure is never locked out: the tools that mend a finding can be installed."""
    _add_a_field(clone)
    programs = lend_environment(tmp_path / "environment")
    _install(programs, "-e", clone)
    code = "from catalog.objects import RoleValue; print(RoleValue(colour='red').colour)"
    assert run(programs / "python", "-c", code, cwd=clone) == "red\n"


@pytest.mark.parametrize("installed", [True, False], ids=["installed", "not installed"])
def test_a_field_is_added_by_the_recipe(clone: Path, tmp_path: Path, *, installed: bool) -> None:
    """Edit, create, fill in as told, amend: the gate says what is left, and then that nothing is."""
    programs = lend_environment(tmp_path / "environment")
    if installed:
        run(*BUILD, "--wheel", cwd=clone)
        (wheel,) = (clone / "out").glob("*.whl")
        _install(programs, wheel)
        create: tuple[str | Path, ...] = (programs / "catalog", "create")
        check: tuple[str | Path, ...] = (programs / "python", "-m", "catalog._gate", "--root", clone, "check")
    else:
        create = (programs / "python", "-m", "build_tools", "snapshot")
        check = (programs / "python", "-m", "build_tools", "check")
    cwd = tmp_path if installed else clone
    assert "gate: clean" in run(*check, cwd=cwd)
    _add_a_field(clone)
    assert "S201" in run(*check, cwd=cwd, expect=1)
    told = run(*create, "roles have a colour", cwd=clone)
    assert "made v23: roles have a colour" in told
    left = run(*check, cwd=cwd, expect=1)
    assert [line.split()[0] for line in left.splitlines() if line[:1] == "M"] == ["M615", "M616", "M616"]
    assert 'import and write wire_compatible("role")' in left
    assert "gate: 3 findings" in left

    migration = clone / "catalog" / "migrations" / "v22_to_v23.py"
    source = migration.read_text().partition("\n\ndef migrate_role")[0]
    for was, now in (
        ("undecided", "wire_compatible"),
        ("from catalog.generated import objects_v22_pb2 as v22\n", ""),
        ("from catalog.generated import objects_v23_pb2 as v23\n", ""),
    ):
        source = source.replace(was, now)
    migration.write_text(source)
    (clone / "tests" / "migrations" / "test_v22_to_v23.py").write_text(FILLED_IN_TEST)
    assert "M610 an unreleased migration differs from its hash" in run(*check, cwd=cwd, expect=1)
    assert "gate: clean" in run(*create, "--amend", cwd=clone)
    assert "gate: clean" in run(*check, cwd=cwd)
    run(sys.executable, "-m", "pytest", "-q", "tests/migrations/test_v22_to_v23.py", cwd=clone)


FILLED_IN_TEST = '''"""v22_to_v23: roles have a colour."""

from catalog.generated import objects_v22_pb2 as v22
from catalog.generated import objects_v23_pb2 as v23


def test_role() -> None:
    """A role without a colour keeps its bytes."""
    stored = v22.RoleValue(name="ann", permissions=1).SerializeToString()
    assert v23.RoleValue.FromString(stored) == v23.RoleValue(name="ann", permissions=1)
'''


def _install(programs: Path, *requirements: str | Path) -> None:
    install = (sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--python", programs / "python")
    run(*install, *requirements, cwd=programs)


def _add_a_field(clone: Path) -> None:
    types = clone / "proto" / "objects.proto"
    source = types.read_text()
    assert "  optional uint32 oid = 8;\n" in source
    types.write_text(
        source.replace("  optional uint32 oid = 8;\n", "  optional uint32 oid = 8;\n  string colour = 9;\n")
    )
