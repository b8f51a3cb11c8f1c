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
    assert finding.fix == "mend catalog/roles.py, or git checkout HEAD -- catalog/roles.py"
