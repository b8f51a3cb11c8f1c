"""What no module of the package may do, read from the syntax trees: lint that knows what a name stands for."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from build_tools.sources.migration import imports

ROOT = Path(__file__).parents[2]
PACKAGES = ("catalog", "pyspark_catalog")
DELTA, HELD = "catalog/engine/log/delta_table.py", "catalog/engine/log/held_table.py"
"""The modules that make Delta tables, and that hold them."""
DELTA_NAMES = {"CommitProperties", "DeltaTable", "PostCommitHookProperties", "Transaction", "AddAction", "RemoveAction"}
REWRITES = {"alter", "delete", "merge", "optimize", "repair", "restore", "update", "vacuum", "write_deltalake"}
"""The calls that change a Delta table past `compare_and_append`."""
OUR_OWN = {"self", "self._storage"}
"""The objects that have a method of such a name and are no Delta table."""
SPARK = ("catalog/engine/spark/", "catalog/engine/spark/datasource/", "pyspark_catalog/")
MIGRATIONS = "catalog/migrations/"


def test_the_package_keeps_them() -> None:
    """Delta Lake is written by one module, in one way; Spark is loaded where it is the point."""
    assert violations(ROOT) == []


@pytest.mark.parametrize(
    ("path", "line", "said"),
    [
        ("catalog/engine/stash/view.py", "import deltalake", "imports deltalake"),
        ("catalog/engine/store/open.py", "from deltalake import write_deltalake", "imports deltalake"),
        ("catalog/engine/store/open.py", "import deltalake.table as tables", "imports deltalake"),
        ("catalog/cli/main_group.py", "def late():\n    from deltalake import DeltaTable", "imports deltalake"),
        ("catalog/cli/main_group.py", 'import_module("deltalake")', "imports deltalake"),
        ("catalog/cli/main_group.py", '__import__("deltalake.table")', "imports deltalake"),
        (DELTA, "from deltalake import write_deltalake", "takes write_deltalake from deltalake"),
        (DELTA, "from deltalake import *", "takes * from deltalake"),
        (DELTA, "import deltalake", "takes all from deltalake"),
        *((DELTA, f'DeltaTable("t").{name}()', f"uses {name}") for name in sorted(REWRITES)),
        *((HELD, f"def late(table):\n    table.{name}()", f"uses {name}") for name in sorted(REWRITES)),
        (HELD, "from deltalake import DeltaTable", "imports deltalake"),
        (DELTA, 'getattr(DeltaTable("t"), "vacuum")()', "uses vacuum"),
        (DELTA, "rewrite = DeltaTable.merge", "uses merge"),
        ("catalog/engine/stash/stash.py", "def late(table):\n    table.optimize.compact()", "uses optimize"),
        ("catalog/engine/stash/stash.py", "def late(table):\n    table.vacuum()", "uses vacuum"),
        ("catalog/engine/store/open.py", "from pyspark.sql import SparkSession", "imports pyspark"),
        ("catalog/engine/stash/view.py", "def late():\n    import pyspark", "imports pyspark"),
        ("catalog/engine/log/data_files.py", 'import_module("pyspark.sql")', "imports pyspark"),
        ("catalog/migrations/v20_to_v21.py", "from pyspark.sql import functions", "imports pyspark"),
    ],
)
def test_a_planted_violation_is_found(path: str, line: str, said: str) -> None:
    """Exactly that one, with its line."""
    source = (ROOT / path).read_text(encoding="utf-8")
    last = len(source.splitlines()) + len(line.splitlines())
    assert list(_violations(path, ast.parse(f"{source}{line}\n"))) == [(last, said)]


def test_a_violation_anywhere_in_the_package_is_found(tmp_path: Path) -> None:
    """Also in a module that nobody has listed."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("generated", "__pycache__"))
    assert violations(tmp_path) == []
    for folder in ("catalog", "catalog/engine/codec", "pyspark_catalog"):
        (tmp_path / folder / "planted.py").write_text("import deltalake\n", encoding="utf-8")
    found = ["catalog/engine/codec/planted.py:1", "catalog/planted.py:1", "pyspark_catalog/planted.py:1"]
    assert violations(tmp_path) == [f"{place} imports deltalake" for place in found]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("catalog/engine/store/open.py", "if TYPE_CHECKING:\n    from pyspark.sql import Column"),
        ("catalog/migrations/v20_to_v21.py", "def change():\n    from pyspark.sql import functions"),
        ("catalog/engine/spark/session.py", "import pyspark"),
        ("catalog/engine/stash/stash.py", "def late(transaction, rows):\n    transaction.delete(1); rows.update({})"),
        (HELD, "def late(self):\n    self._storage.delete('x')"),
    ],
)
def test_what_only_looks_like_one_is_left_alone(path: str, line: str) -> None:
    """Types cost nothing at run time, frame migrations run on Spark, and rows and dicts have such verbs too."""
    assert list(_violations(path, ast.parse(line))) == []


def violations(root: Path) -> list[str]:
    files = [file for package in PACKAGES for file in sorted((root / package).rglob("*.py"))]
    assert len(files) > 40
    found = []
    for file in files:
        path = file.relative_to(root).as_posix()
        if not path.startswith("catalog/generated/"):
            module = ast.parse(file.read_bytes())
            found += [f"{path}:{line} {said}" for line, said in sorted(_violations(path, module))]
    return found


def _violations(path: str, module: ast.Module) -> Iterator[tuple[int, str]]:
    for line, imported, name, inside in _imports(module):
        top = imported.partition(".")[0]
        if top == "deltalake" and path != DELTA:
            yield line, "imports deltalake"
        elif top == "deltalake" and name not in DELTA_NAMES:
            yield line, f"takes {name or 'all'} from deltalake"
        elif top == "pyspark" and not path.startswith(SPARK) and not (inside and path.startswith(MIGRATIONS)):
            yield line, "imports pyspark"
    for line, receiver, name in _attributes(module):
        if name in REWRITES and (name in {"optimize", "vacuum"} or (path in {DELTA, HELD} and receiver not in OUR_OWN)):
            yield line, f"uses {name}"


def _imports(module: ast.Module) -> Iterator[tuple[int, str, str, bool]]:
    """Every import that may run: its line, its module, the name it takes and whether it stands in a function."""
    for found in imports(module):
        if not found.typing_only:
            yield found.line, found.module, found.name, found.inside is not None
    for node in ast.walk(module):
        match node:
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
                if ast.unparse(function).rpartition(".")[2] in {"__import__", "import_module"}:
                    yield node.lineno, name, "", False
            case _:
                pass


def _attributes(module: ast.Module) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=value, attr=name):
                yield node.lineno, ast.unparse(value), name
            case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(name)), *_]):
                yield node.lineno, ast.unparse(value), name
            case _:
                pass
