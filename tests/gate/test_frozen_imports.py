"""Mistakes of everyone else: frozen types used outside the migrations."""

from __future__ import annotations

import pytest

from tests.gate.project_copy import Copy

FIX = "use the current types (catalog.objects), or move the code into the migration that needs it"


@pytest.mark.parametrize(
    "line",
    [
        "from catalog.generated import objects_v17_pb2 as v17",
        "import catalog.generated.objects_v17_pb2",
        "from catalog.generated.objects_v17_pb2 import RoleKey",
        "from .generated import objects_v17_pb2",
        "def read():\n    from catalog.generated import objects_v17_pb2",
        "try:\n    pass\nexcept ImportError:\n    from catalog.generated import objects_v17_pb2",
        'import importlib\nmodule = importlib.import_module("catalog.generated.objects_v17_pb2")',
    ],
)
def test_a_snapshot_that_a_helper_module_imports_is_refused(tree: Copy, line: str) -> None:
    """Code that uses it would need it for ever; only migrations may, however it is imported."""
    tree.write("catalog/roles.py", f'"""Roles."""\n\n{line}\n')
    finding = tree.only("I700", "catalog/roles.py")
    assert finding.what == "it uses objects_v17_pb2"
    assert "objects_v17_pb2" in tree.read("catalog/roles.py").splitlines()[finding.line - 1]
    assert finding.fix == FIX


@pytest.mark.parametrize(
    "line",
    [
        'NAME = "catalog.generated.objects_v17_pb2"',
        'NAME = "catalog.generated.obj" "ects_v17_pb2"',
        "NAME = 'catalog.generated.objects_v17' '_pb' '' '2'",
        'NAME = "objects_v" f"17_pb2{0}"',
        'NAME = "objects_\\x76" "17_pb2"',
        'NAME = "catalog.generated.object\\163_v17_pb\\N{DIGIT TWO}"',
        'NAME = "catalog.generated.objects_\\\nv17_pb2"',
        "from catalog.generated import \N{MATHEMATICAL BOLD SMALL O}bjects_v17_pb2",
        "from catalog.generated import objects_v17_\N{FULLWIDTH LATIN SMALL LETTER P}b2",
    ],
)
def test_a_snapshot_is_refused_however_its_name_is_spelt(tree: Copy, line: str) -> None:
    """In pieces, by escapes and in letters that Python takes for others: it is the same module when the code runs."""
    tree.write("catalog/roles.py", f'"""Roles."""\n\n{line}\n')
    assert tree.only("I700", "catalog/roles.py").what == "it uses objects_v17_pb2"


@pytest.mark.parametrize("first", ["", "#!/usr/bin/python\n", "#!/usr/bin/python\r\n", "\f"])
def test_a_snapshot_is_refused_in_a_module_of_another_encoding(tree: Copy, first: str) -> None:
    """The bytes of the file are not those of the name."""
    tree.write(
        "catalog/roles.py", f"{first}# -*- coding: utf-7 -*-\nNAME = +ACI-+AG8-bjects+AF8-v17+AF8-pb+ADI-+ACI-\n"
    )
    assert tree.only("I700", "catalog/roles.py").what == "it uses objects_v17_pb2"


@pytest.mark.parametrize(
    "module",
    ["catalog/migrations/__init__.py", "catalog/migrations/shared/roles.py", "catalog/cli/legacy_json_objects.py"],
)
def test_a_snapshot_is_refused_in_every_module_that_is_no_migration(tree: Copy, module: str) -> None:
    """Neither the package of the migrations nor a folder in it is a migration."""
    tree.write(module, '"""Shared."""\n\nfrom catalog.generated import objects_v17_pb2\n')
    assert tree.only("I700", module).fix == FIX


@pytest.mark.parametrize(
    "line",
    [
        "from catalog.migrations import legacy_json_objects",
        "from catalog.migrations.legacy_json_objects import RoleKey",
    ],
)
def test_the_legacy_types_are_refused_outside_their_migration(tree: Copy, line: str) -> None:
    """The JSON types of v14 are frozen types like the others."""
    tree.write("catalog/roles.py", f'"""Roles."""\n\n{line}\n')
    finding = tree.only("I700", "catalog/roles.py")
    assert finding.what == "it uses legacy_json_objects"
    assert finding.fix == FIX


def test_the_current_types_may_be_used_anywhere(tree: Copy) -> None:
    """They move with the code that uses them."""
    tree.write("catalog/roles.py", '"""Roles."""\n\nfrom catalog.objects import RoleKey\n\nNAME = "objects_v17"\n')
    tree.assert_clean()


def test_a_module_that_is_not_python_is_named_as_such(tree: Copy) -> None:
    """Whether it uses frozen types cannot be read from it, and that is what the finding says."""
    tree.write("catalog/roles.py", "def broken(:\n")
    finding = tree.only("I701", "catalog/roles.py")
    assert finding.what.startswith("it is not Python: ")
    assert finding.fix == "correct catalog/roles.py, or git checkout HEAD -- catalog/roles.py"
