"""Whatever needs no bulk work starts no JVM, and loads no more than it uses."""

from __future__ import annotations

import json
import os
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
CPU_S_MAX = 2.0
"""Of one command, Python's own start included; a JVM alone takes more."""
BUSY = frozenset({"pyspark", "py4j", "pandas", "build_tools", "grpc_tools"})

quick = pytest.mark.parametrize(
    "words",
    [
        ["info"],
        ["info", "--check"],
        ["config", "show"],
        ["show", "role"],
        ["show", "role", "--where", "name~^c"],
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


@quick
@pytest.mark.parametrize("form", ["text", "json"])
def test_it_needs_no_java_and_no_spark(store_of: Stores, tmp_path: Path, words: list[str], form: str) -> None:
    """It works where there is no Java, leaves no process behind, and programs that read JSON load no tables."""
    command = [sys.executable, "-c", _LOADED, "--format", form, *words, "--store", str(store_of())]
    nowhere = variables(PATH=str(tmp_path), JAVA_HOME=str(tmp_path))
    before = os.times()
    done = subprocess.run(command, env=nowhere, capture_output=True, text=True, check=False)
    after = os.times()
    ended, children, modules = json.loads(done.stderr.splitlines()[-1])
    assert (ended, children) == (0, ""), done
    packages = {name.partition(".")[0] for name in modules}
    assert packages.isdisjoint(BUSY)
    assert form == "text" or "rich" not in packages
    spent_s = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent_s < CPU_S_MAX


def test_help_loads_no_store() -> None:
    """Neither Arrow nor Delta, nor protobuf."""
    for words in (["--help"], ["debug", "--help"], ["debug", "edit", "--help"]):
        command = [sys.executable, "-c", _LOADED, *words]
        done = subprocess.run(command, env=variables(), capture_output=True, text=True, check=True)
        modules = json.loads(done.stderr.splitlines()[-1])[2]
        assert {"pyarrow", "deltalake", "google.protobuf", "numpy"}.isdisjoint(modules), words
