"""Many projects in one process."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from build_tools.check import check
from build_tools.project_tree import find_tree
from build_tools.protos.codegen import generate
from tests.conftest import ROOT, run


def test_two_projects_with_an_objects_proto_each_live_in_one_process(tmp_path: Path) -> None:
    """The same message names, with other fields, do not meet."""
    shop = tmp_path / "shop_repository"
    shutil.copytree(ROOT / "proto", shop / "proto")
    shutil.rmtree(shop / "proto" / "old")
    (shop / "proto" / "old").mkdir()
    types = (ROOT / "proto" / "objects.proto").read_text()
    types = re.sub(r"(message RoleValue \{[^}]*?string )name( = 1;)", r"\1label\2", types)
    (shop / "proto" / "objects.proto").write_text(types)
    (shop / "proto" / "old" / "objects_v1.proto").write_text(types)
    (shop / "pyproject.toml").write_text('[tool.catalog]\nproject = "shop"\n')
    (shop / "shop" / "migrations").mkdir(parents=True)
    (shop / "shop" / "__init__.py").write_text("")
    (shop / "shop" / "version.py").write_text(VERSION)
    (shop / "shop" / "upgrade.py").write_text(UPGRADE)
    (shop / "proto" / "hashes.json").write_text('{"snapshots": {}, "migrations": {}}')
    tree = find_tree(shop)
    generate(tree)
    assert [finding.code for finding in check(tree).findings] == ["H301"]
    code = (
        "from catalog.objects import RoleValue; from shop.generated.objects_pb2 import RoleValue as ShopRole;"
        "from shop.generated.objects_v1_pb2 import RoleValue as FirstRole; from catalog.upgrade import PROJECT;"
        "print(RoleValue(name='a').name, ShopRole(label='b').label, FirstRole(label='c').label,"
        "      PROJECT.types(22).RoleValue(name='d').name, ShopRole.DESCRIPTOR.full_name)"
    )
    program = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(shop)!r}]; {code}"
    assert run(sys.executable, "-c", program, cwd=tmp_path) == "a b c d shop.objects.RoleValue\n"


VERSION = """from typing import Final, Literal
StashVersion = Literal[1]
MIN_STASH_VERSION: Final = 1
FIRST_PROTO_VERSION: Final = 1
STASH_VERSION: Final = 1
BUILD: Final = "0.1.0"
"""
UPGRADE = """from typing import assert_never
def migration_from(version, build):
    match version:
        case 1:
            return None
        case _:
            assert_never(version)
"""
