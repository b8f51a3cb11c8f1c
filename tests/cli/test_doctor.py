"""`catalog doctor`: what it says of sound and of broken machines and stores, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from catalog import open_catalog
from catalog.cli.answer import ExitCode
from tests.cli.commands import bytes_of, call, complaint, fail, in_process, on_screen, text
from tests.cli.conftest import CURRENT, Stores, on_spark
from tests.cli.histories import forge_checksums, kill_in_step, pretend_version
from tests.cli.malformed import ANSWERED, CONFIG_FILES, DAMAGES
from tests.cli.terminal import COLOUR, variables
from tests.cli.test_imports import BUSY, loaded

MACHINE = ["python", "packages", "types", "java", "spark", "archive", "scratch", "clock"]
KILLED = """
import os, sys, time
from catalog import open_catalog
open_catalog(sys.argv[1])
while not any(name.endswith(".json") for name in os.listdir(f"{sys.argv[1]}/heartbeats")):
    time.sleep(0.01)
os._exit(9)
"""


def grades(data: Any) -> dict[str, str]:  # noqa: ANN401 - JSON
    """The worst grade of each name."""
    order = ["ok", "skipped", "warning", "problem"]
    found: dict[str, str] = {}
    for line in data["lines"]:
        assert list(line) == ["name", "grade", "found", "next"]
        assert bool(line["next"]) is (line["grade"] in {"warning", "problem"}), line
        found[line["name"]] = max(found.get(line["name"], "ok"), line["grade"], key=order.index)
    return found


def said(data: Any, name: str) -> str:  # noqa: ANN401 - JSON
    return "\n".join(line["found"] for line in data["lines"] if line["name"] == name)


def test_a_machine_is_examined_without_a_store() -> None:
    """No store has to be named."""
    data = call("doctor")
    assert data["store"] is None
    assert list(grades(data)) == ["settings", *MACHINE]
    assert "no store was examined" in text("doctor")


def test_a_sound_store_is_examined_and_left_as_it_was(store_of: Stores) -> None:
    """Nothing is wrong, which is 0."""
    store = store_of()
    before = bytes_of(store)
    data = call("doctor", "--store", store)
    assert list(grades(data))[len(MACHINE) + 1 :] == [
        *("address", "rights", "disk", "store", "log", "commits", "version", "migrations", "builtins", "leader")
    ]
    assert "problem" not in grades(data).values()
    assert bytes_of(store) == before


def test_it_starts_no_java_and_loads_no_spark(store_of: Stores, tmp_path: Path) -> None:
    """Unless it is asked to; a machine without Java is examined too."""
    ended, children, modules = loaded("doctor", "--store", store_of(), PATH=str(tmp_path), JAVA_HOME="")
    assert (ended, children) == (0, "")
    assert BUSY.isdisjoint(name.partition(".")[0] for name in modules)


def test_people_see_a_mark_what_was_found_and_what_to_do(store_of: Stores) -> None:
    """In lines that begin with the mark, and with colour on a terminal."""
    shown = text("doctor", "--store", store_of(19))
    (line,) = [line for line in shown.splitlines() if "version " in line and line.startswith("warning")]
    assert line.split() == f"warning version 19, and this build has {CURRENT}: migrations pending: 3".split()
    assert "next: `catalog apply --dry-run` shows what they do" in shown
    assert not COLOUR.search(shown)
    with on_screen("doctor") as child:
        child.expect_exact("no store was examined")
        assert COLOUR.search(child.before)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_store_stops_no_other_examination(store_of: Stores, damage: str) -> None:
    """The machine is examined, what is wrong with the store is said, and nothing is changed."""
    store = store_of()
    DAMAGES[damage](store)
    before = bytes_of(store) if store.is_dir() else {}
    if damage in ANSWERED and "folder of nothing" in damage:
        data = call("doctor", "--store", store)
        assert grades(data)["store"] == "skipped"
    else:
        data = fail("doctor", "--store", store).data
        assert "problem" in grades(data).values()
    assert set(MACHINE) < set(grades(data))
    assert grades(data)["leader"]
    assert (bytes_of(store) if store.is_dir() else {}) == before


def test_damage_inside_a_file_is_found_only_deeply(store_of: Stores) -> None:
    """A file that is gone is missed at once."""
    store = store_of()
    file = max((store / "stash" / "collection=role").rglob("*.parquet"), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0xFF
    file.write_bytes(content)
    assert grades(call("doctor", "--store", store))["log"] == "ok"
    file.unlink()
    data = fail("doctor", "--store", store).data
    assert (grades(data)["log"], "1 files are missing" in said(data, "log")) == ("problem", True)


@on_spark
@pytest.mark.usefixtures("spark")
def test_deeply_every_row_is_read_and_spark_started(store_of: Stores) -> None:
    """A job runs in the processes that upgrades run in."""
    store = store_of()
    data = call("doctor", "--deep", "--store", store)
    assert "everything is in order" in said(data, "log")
    assert "two tasks took" in said(data, "spark")
    file = max((store / "stash").rglob("*.parquet"), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0xFF
    file.write_bytes(content)
    data = fail("doctor", "--deep", "--store", store).data
    assert (grades(data)["log"], grades(data)["spark"]) == ("problem", "ok")


def test_what_an_upgrade_lacks_is_a_problem_before_anyone_starts_it(
    store_of: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Java nothing is wrong with a store that is up to date, and much with one that is not."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert grades(call("doctor", "--store", store_of()))["java"] == "warning"
    data = fail("doctor", "--store", store_of(19)).data
    assert (grades(data)["upgrade"], "there is no Java" in said(data, "upgrade")) == ("problem", True)


def test_an_unfinished_migration_is_6(store_of: Stores) -> None:
    """As every command ends that says so."""
    store = store_of(15, 18)
    kill_in_step(store, 19)
    failed = fail("doctor", "--store", store, expect=ExitCode.UNFINISHED)
    assert (failed.code, grades(failed.data)["migrations"]) == ("UnfinishedStepError", "problem")


def test_a_checksum_that_differs_is_4(store_of: Stores) -> None:
    """Named in the examination."""
    store = store_of(15, 18)
    forge_checksums(store, 17)
    failed = fail("doctor", "--store", store, expect=ExitCode.CHECKSUM)
    assert "v16_to_v17" in said(failed.data, "migrations")


def test_a_deployment_that_was_replaced_is_5(store_of: Stores) -> None:
    """Whoever is about to start it learns so before."""
    store = store_of()
    call("start", "--deploy-generation", "3", "--store", store)
    (store.parent / "catalog.toml").write_text("[tool.catalog]\ndeploy_generation = 2\n", encoding="utf-8")
    failed = fail("doctor", "-c", store.parent / "catalog.toml", "--store", store, expect=ExitCode.HELD)
    assert failed.code == "StaleGenerationError"


@pytest.mark.parametrize("wrong", sorted(set(CONFIG_FILES) - {"missing"}))
def test_wrong_settings_stop_no_examination_and_are_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """What is wrong with them is said, and the machine is examined all the same."""
    CONFIG_FILES[wrong](tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ("doctor", "-c", tmp_path / "catalog.toml")
    shown = in_process("--format", "json", *words)
    assert shown.exit in {ExitCode.USAGE, ExitCode.FAILED}, shown
    failed = fail(*words, expect=ExitCode(shown.exit))
    assert "problem" in {grades(failed.data).get("settings"), grades(failed.data).get("project")}
    assert set(MACHINE) <= set(grades(failed.data))
    assert wrong != "no such project" or failed.data["store"] is None


def test_problems_of_several_kinds_are_1(store_of: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are named, in the order in which they are found."""
    store = store_of()
    pretend_version(store, 99)
    monkeypatch.setenv("CATALOG_TIMEOUT", "later")
    failed = fail("doctor", "--store", store)
    assert (failed.code, failed.message) == ("ExaminationError", "problems were found: settings, version")
    assert len(complaint("doctor", "--store", store)) == 3


def test_a_variable_that_looks_like_a_setting_and_is_none_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, with what was probably meant; what it holds is told nobody."""
    monkeypatch.setenv("CATALOG_STOER", "geheim")
    monkeypatch.setenv("CATALOG_XYZZY", "geheim")
    monkeypatch.setenv("CATALOG_TRACEBACK", "1")
    data = call("doctor")
    found = {line["found"]: line["next"] for line in data["lines"] if line["grade"] == "warning"}
    assert found["CATALOG_STOER is set, but there is no such setting"] == "did you mean CATALOG_STORE?"
    assert "CATALOG_XYZZY is set, but there is no such setting" in found
    assert "geheim" not in str(data)
    assert "TRACEBACK" not in str(data)


def test_a_leader_lives_has_ended_or_was_killed(store_of: Stores) -> None:
    """By its heartbeat; one that was killed is a warning."""
    store = store_of()
    assert "released it" in said(call("doctor", "--store", store), "leader")
    with open_catalog(store):
        assert f":{os.getpid()} leads it, and its heartbeat is fresh" in said(
            call("doctor", "--store", store), "leader"
        )
    killed = subprocess.run([sys.executable, "-c", KILLED, str(store)], env=variables(), check=False)
    assert killed.returncode == 9
    data = call("doctor", "--store", store)
    assert (grades(data)["leader"], "has no heartbeat" in said(data, "leader")) == ("warning", True)
