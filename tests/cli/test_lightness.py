"""Whatever needs no bulk work starts no JVM, and loads no more than it uses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Stores
from tests.cli.terminal import variables

_LOADED = """
import json, sys
from pathlib import Path
from catalog.cli.frame import run
from catalog.cli.main import root
ended = run(root, sys.argv[1:])
children = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
print(json.dumps([ended, "".join(children), sorted(sys.modules)]), file=sys.stderr)
"""
BUSY = frozenset({"pyspark", "py4j", "pandas", "build_tools", "grpc_tools"})

quick = pytest.mark.parametrize(
    "words",
    [
        ["info"],
        ["info", "--check"],
        ["config", "show"],
        ["show", "role"],
        ["show", "role", "--where", "name~^c"],
        ["subscribe", "role", "--once"],
        ["history", "--graph"],
        ["sql", "SHOW TABLES"],
        ["sql", "DESCRIBE role"],
        ["debug", "epoch"],
        ["debug", "stats"],
        ["validate"],
        ["apply"],
        ["apply", "--dry-run"],
        ["start"],
        ["start", "--read-only"],
        ["init"],
        ["abort", "--yes"],
    ],
    ids=" ".join,
)


def loaded(*words: str | Path, **changed: str) -> tuple[int, str, set[str]]:
    """How a command ends in a process of its own, the processes that it leaves, and the modules that it loads."""
    command = [sys.executable, "-c", _LOADED, *map(str, words)]
    done = subprocess.run(command, env=variables(**changed), capture_output=True, text=True, check=False)
    ended, children, modules = json.loads(done.stderr.splitlines()[-1])
    return ended, children, set(modules)


@quick
@pytest.mark.parametrize("form", ["text", "json"])
def test_it_needs_no_java_and_no_spark(store_of: Stores, tmp_path: Path, words: list[str], form: str) -> None:
    """It works where there is no Java, leaves no process behind, and programs that read JSON load no tables."""
    nowhere = {"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)}
    ended, children, modules = loaded("--format", form, *words, "--store", store_of(), **nowhere)
    assert (ended, children) == (0, "")
    packages = {name.partition(".")[0] for name in modules}
    assert packages.isdisjoint(BUSY)
    assert form == "text" or "rich" not in packages


def test_help_loads_no_store() -> None:
    """Neither Arrow nor Delta, nor protobuf."""
    for words in (["--help"], ["debug", "--help"], ["debug", "edit", "--help"]):
        _, _, modules = loaded(*words)
        assert {"pyarrow", "deltalake", "google.protobuf", "numpy"}.isdisjoint(modules), words
