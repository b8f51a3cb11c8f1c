"""Whatever needs no bulk work starts no JVM, and loads no more than it uses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.objects import SettingKey, SettingValue
from tests.cli.conftest import Stores
from tests.cli.terminal import variables

_LOADED = """
import json, sys
from pathlib import Path
from catalog.cli.app import run
from catalog.cli.main_group import root
for form in sys.argv[1].split():
    ended = run(root, [*(["--format", form] if form != "default" else []), *sys.argv[2:]])
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
        ["tables"],
        ["ddl", "list"],
        ["ddl", "run", "CREATE TABLE t (id BIGINT)", "--dry-run"],
        ["ddl", "run", "CREATE TABLE IF NOT EXISTS t (id BIGINT)"],
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


def loaded(*words: str | Path, form: str = "default", **changed: str) -> tuple[int, str, set[str]]:
    """How a command ends in a process of its own, the processes that it leaves, and the modules that it loads."""
    (found,) = loaded_in_turn([form], *words, **changed)
    return found


def loaded_in_turn(forms: list[str], *words: str | Path, **changed: str) -> list[tuple[int, str, set[str]]]:
    """The same of a command that one process runs in each of these forms, one after the other."""
    command = [sys.executable, "-c", _LOADED, " ".join(forms), *map(str, words)]
    done = subprocess.run(command, env=variables(**changed), capture_output=True, text=True, check=False)
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    assert len(told) == len(forms), done
    return [(ended, children, set(modules)) for ended, children, modules in told]


@quick
def test_it_needs_no_java_and_no_spark(store_of: Stores, tmp_path: Path, words: list[str]) -> None:
    """It works where there is no Java, leaves no process behind, and programs that read JSON load no tables."""
    nowhere = {"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)}
    found = loaded_in_turn(["json", "text"], *words, "--store", store_of(), **nowhere)
    assert [(ended, children) for ended, children, _ in found] == [(0, ""), (0, "")]
    of_json, of_text = ({name.partition(".")[0] for name in modules} for _, _, modules in found)
    assert of_text.isdisjoint(BUSY)
    assert of_json.isdisjoint(BUSY | {"rich"})


HEAVY = frozenset({"pyarrow", "numpy", "deltalake", "arro3", "ptars", "jinja2", "rich", *BUSY})
"""The modules that no light command loads: each of them takes longer to import than the command may take."""
STORE = frozenset({"catalog.engine", "google.protobuf"})
"""The modules that a command loads only if it looks at a store."""
SHARDS = frozenset(
    {
        "catalog.actions",
        "catalog.engine.codec",
        "catalog.engine.migrate.plan",
        "catalog.engine.shard.shard",
        "catalog.engine.stash.constraint_index",
    }
)
"""The modules that work on columns: shards, constraints, migrations."""
WORDS = frozenset({"google.protobuf.descriptor_pb2", "google.protobuf.json_format"})
"""The modules that describe messages: as JSON, and the options of their types."""
LEADING = SHARDS | {"catalog.builtins", "catalog.engine.builtins", "catalog.engine.stash.stash", "catalog.events"}
"""The modules that a command needs only if it leads a store."""
STEPS = frozenset({"catalog.cli.commands.apply", "catalog.engine.migrate", "catalog.engine.store.snapshot", "socket"})
"""The modules that a command that leads a store needs only if it takes a step, or has a leader to wait for."""
_OF_BASE = ("duration", "fence", "public_call")
ALLOWED_OF_ENGINE = frozenset(
    {"catalog.engine", "catalog.engine.base", *(f"catalog.engine.base.{name}" for name in _OF_BASE)}
)


def named(modules: set[str], packages: frozenset[str]) -> set[str]:
    """The modules that are one of these, or inside one of these."""
    return {name for name in modules if any(name == one or name.startswith(f"{one}.") for one in packages)}


@pytest.mark.parametrize(
    "words",
    [["--version"], ["--help"], ["debug", "--help"], ["debug", "edit", "--help"], ["completion", "zsh"], ["nonsense"]],
    ids=" ".join,
)
def test_what_needs_no_store_loads_none(words: list[str]) -> None:
    """Neither a library of columns or tables, nor protobuf, nor the engine."""
    _, _, modules = loaded(*words)
    assert named(modules, HEAVY | STORE) - ALLOWED_OF_ENGINE == set()


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("commits", [0, 30], ids=["young", "checkpointed"])
def test_info_reads_a_store_without_arrow(led: Path, form: str, commits: int) -> None:
    """Its log, a checkpoint too, and its rows; nor does it load what leads a store."""
    touch(led, commits)
    ended, _, modules = loaded("info", "--store", led, form=form)
    assert ended == 0
    assert named(modules, HEAVY | LEADING) == set()


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("commits", [0, 30], ids=["young", "checkpointed"])
def test_a_start_that_finds_nothing_to_do_leads_without_arrow(led: Path, form: str, commits: int) -> None:
    """It fences, and judges migrations and builtins, by a few small files; no row is put into words."""
    touch(led, commits)
    ended, _, modules = loaded("start", "--store", led, form=form)
    assert ended == 0
    assert named(modules, HEAVY | SHARDS | STEPS | WORDS) == set()


@pytest.fixture
def led(tmp_path: Path) -> Path:
    """A store that this build has initialised."""
    open_catalog(tmp_path / "store").close()
    return tmp_path / "store"


def touch(store: Path, commits: int) -> None:
    """Commit often enough that there is a checkpoint, and that small files were merged."""
    if commits:
        with open_catalog(store) as catalog:
            for number in range(commits):
                with catalog.transaction() as tx:
                    tx.upsert(SettingKey(name="touched"), SettingValue(value=str(number)))
        assert list(store.glob("stash/_delta_log/*.checkpoint.parquet"))
        open_catalog(store).close()  # records that derived rows follow so many commits
