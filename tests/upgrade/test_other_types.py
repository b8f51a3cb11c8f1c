"""Two builds that mean different types by one version: neither opens the store of the other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from catalog import STASH_VERSION, open_catalog
from catalog.engine.log.place import StorePlace
from catalog.engine.stash.engine_rows import NOT_PROTECTED
from catalog.engine.stash.recorded_types import record_name
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.storage.heartbeat import Heartbeat
from catalog.engine.store.leader_upgrade import initialize_stash, open_stash
from catalog.errors import CatalogError, OtherTypesError, VersionChangedError
from catalog.objects import ConfigKey, ConfigValue, RoleKey, SettingKey, SettingValue
from catalog.tools.fsck.store import check_store
from catalog.upgrade import PROJECT
from tests.conftest import ROOT

MIGRATION = '''"""Add a colour.

Datasets are shown in it.
"""

from __future__ import annotations

from catalog.actions import Action, wire_compatible


def upgrade() -> list[Action]:
    return [wire_compatible("dataset")]
'''
MODES = ("leader", "member", "read-only", "savepoint", "debug")
OPEN = """
import json, sys
from catalog import open_catalog
from catalog.errors import CatalogError
found = {}
for mode in sys.argv[2:]:
    try:
        with open_catalog(sys.argv[1], mode, project="shop") as cat:
            found[mode] = {"version": cat.version, "ts": cat.ts}
    except CatalogError as error:
        found[mode] = {"error": type(error).__name__, "text": str(error)}
print(json.dumps(found))
"""
READ = """
import json, sys
from dataclasses import replace
from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.engine.spark.datasource.feed_scan import find_feed
from catalog.engine.spark.datasource.scan import find
from catalog import open_catalog
from catalog.errors import CatalogError
from shop.objects import DatasetKey
ts = int(sys.argv[2])
def attempt(read):
    try:
        read()
    except CatalogError as error:
        return type(error).__name__
    return "read"
named = {"path": sys.argv[1], "collection": "dataset", "project": "shop"}
options = lambda **more: ReadOptions.of_options({**named, **more})
with open_catalog(sys.argv[1], "read-only", project="shop") as cat:
    print(json.dumps([[
        attempt(lambda: list(cat.rows(DatasetKey))),
        attempt(lambda: find(options())),
    ], [
        attempt(lambda: list(cat.rows(DatasetKey, as_of=ts))),
        attempt(lambda: cat.table("dataset", as_of=ts)),
        attempt(lambda: find(options(as_of=str(ts)))),
        attempt(lambda: list(cat.subscribe(DatasetKey, ts))),
        attempt(lambda: find_feed(options(since=str(ts)))),
        attempt(lambda: replace(find_feed(options(since="now")), request=options(since=str(ts))).parts_until(None)),
    ]]))
"""


@dataclass(frozen=True)
class Build:
    """The source of a project, from which programs run."""

    folder: Path

    def run(self, *command: object) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "PYTHONPATH": f"{self.folder}:{ROOT}", "CATALOG_PROJECT": "shop"}
        return subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def program(self, code: str, *arguments: object) -> Any:  # noqa: ANN401 - JSON
        done = self.run("-c", code, *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def opened(self, store: Path, *modes: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self.program(OPEN, store, *modes)
        return found

    def command(self, *words: object) -> tuple[int, str]:
        done = self.run("-m", "catalog.cli", *words)
        return done.returncode, done.stdout + done.stderr

    def change_types(self, line: str, *, amend: bool) -> None:
        """Make version 2 of the types, or make it again, with another line in `DatasetValue`."""
        proto = self.folder / "proto" / "objects.proto"
        lines = [own for own in proto.read_text(encoding="utf-8").splitlines() if "colour" not in own]
        at = lines.index("message DatasetValue {")
        proto.write_text("\n".join([*lines[: at + 1], line, *lines[at + 1 :], ""]), encoding="utf-8")
        self.run("-m", "build_tools", "snapshot", "--amend" if amend else "a colour")
        (self.folder / "shop" / "migrations" / "v1_to_v2.py").write_text(MIGRATION, encoding="utf-8")
        done = self.run("-m", "build_tools", "snapshot", "--amend")
        hashes = json.loads((self.folder / "proto" / "hashes.json").read_text(encoding="utf-8"))
        assert [*hashes["snapshots"]] == ["1", "2"], done


@dataclass(frozen=True)
class Builds:
    first: Build
    """At version 1."""
    a: Build
    b: Build
    """The same version as `a`, amended: the field has another type."""


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    place = tmp_path_factory.mktemp("builds")
    done = subprocess.run(
        [sys.executable, "-m", "catalog.cli", "new", str(place / "first"), "--name", "shop"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    shutil.copytree(place / "first", place / "a")
    Build(place / "a").change_types("  string colour = 60;", amend=False)
    shutil.copytree(place / "a", place / "b", ignore=shutil.ignore_patterns("__pycache__"))
    Build(place / "b").change_types("  uint64 colour = 60;", amend=True)
    return Builds(Build(place / "first"), Build(place / "a"), Build(place / "b"))


@pytest.fixture(scope="module")
def upgraded(builds: Builds, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that the first build made and build A upgraded; it is only copied."""
    place = tmp_path_factory.mktemp("upgraded") / "store"
    assert builds.first.opened(place, "leader")["leader"]["version"] == 1
    assert builds.a.opened(place, "leader")["leader"]["version"] == 2
    return place


@pytest.fixture(params=["initialised", "upgraded"])
def store(request: pytest.FixtureRequest, builds: Builds, upgraded: Path, tmp_path: Path) -> Path:
    """A store at version 2 as build A has it."""
    place = tmp_path / "store"
    if request.param == "upgraded":
        shutil.copytree(upgraded, place)
    else:
        assert builds.a.opened(place, "leader")["leader"]["version"] == 2
    return place


def bytes_of(store: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}


def test_a_store_of_one_build_is_opened_by_no_mode_of_another_with_other_types(builds: Builds, store: Path) -> None:
    """The error says which build wrote it; nothing is written, and the build that made it goes on."""
    before = bytes_of(store)
    found = builds.b.opened(store, *MODES)
    assert {mode: own.get("error") for mode, own in found.items()} == dict.fromkeys(MODES, "OtherTypesError")
    assert (
        f"the rows of version 2 in {store}/stash have other types than version 2 of this build"
        in found["leader"]["text"]
    )
    assert "build 0.1.0 wrote them with the types sha256:" in found["leader"]["text"]
    assert bytes_of(store) == before
    assert {mode: own.get("version") for mode, own in builds.a.opened(store, *MODES).items()} == dict.fromkeys(MODES, 2)


COMMANDS: Mapping[str, tuple[str, ...]] = {
    "start": ("start",),
    "start --read-only": ("start", "--read-only"),
    "apply": ("apply",),
    "apply --dry-run": ("apply", "--dry-run"),
    "undo": ("undo", "--yes"),
    "info --check": ("info", "--check"),
    "validate": ("validate",),
    "show": ("show", "dataset"),
    "subscribe": ("subscribe", "dataset", "--once"),
    "sql": ("sql", "DESCRIBE dataset"),
    "doctor": ("doctor",),
    "debug dump": ("debug", "dump"),
    "debug edit": ("debug", "edit", "team", "id=1", '{"name": "x"}', "--yes"),
    "debug compact": ("debug", "compact"),
    "debug vacuum": ("debug", "vacuum", "--retention", "0s", "--yes"),
    "debug stats": ("debug", "stats"),
    "debug copy --anonymise": ("debug", "copy", "--anonymise", "STORE", "copied"),
    "debug upgrade-check": ("debug", "upgrade-check"),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_of_another_build_reads_no_rows_with_its_own_types(
    builds: Builds, upgraded: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Each says why; nothing of the store changes."""
    shutil.copytree(upgraded, tmp_path / "store")
    before = bytes_of(tmp_path / "store")
    named = [str(tmp_path / "store") if word == "STORE" else word for word in words]
    status, printed = builds.b.command(*named, *([] if "STORE" in words else ["--store", tmp_path / "store"]))
    assert status != 0
    assert "other types than version 2 of this build" in " ".join(printed.split()), printed
    assert bytes_of(tmp_path / "store") == before


def test_fsck_tells_a_store_of_other_types(builds: Builds, store: Path) -> None:
    """Its rows are not checked by types that they do not have."""
    status, printed = builds.b.command("--format", "json", "debug", "fsck", "--store", store)
    report = json.loads(printed.splitlines()[0])["data"]["report"]
    assert (status != 0, [own["code"] for own in report["findings"]]) == (True, ["F406"])
    status, _ = builds.a.command("debug", "fsck", "--store", store)
    assert status == 0


def test_an_undone_version_is_made_again_by_another_build(builds: Builds, tmp_path: Path) -> None:
    """The record changes with the version; the past of the first build is not read with the types of the second."""
    place = tmp_path / "store"
    builds.first.opened(place, "leader")
    ts = builds.a.opened(place, "leader")["leader"]["ts"]
    assert builds.b.opened(place, "leader")["leader"]["error"] == "OtherTypesError"
    status, printed = builds.a.command("undo", "--yes", "--store", place)
    assert status == 0, printed
    status, printed = builds.b.command("apply", "--reapply", "--store", place)
    assert status == 0, printed
    assert builds.b.opened(place, "member")["member"]["version"] == 2
    assert builds.a.opened(place, "member")["member"]["error"] == "OtherTypesError"
    now, past = builds.b.program(READ, place, ts)
    assert now == ["read", "read"]
    assert past == [*["OtherTypesError"] * 3, "VersionChangedError", "OtherTypesError", "VersionChangedError"]


def recorded(store: Path) -> dict[str, str]:
    with open_catalog(store, "read-only") as cat:
        return {key.name: value.text for key, value in cat.rows(ConfigKey) if key.name.startswith("types_")}  # type: ignore[attr-defined]


def set_record(store: Path, text: str | None) -> None:
    """Write the record of another build, or none, as builds before records left it."""
    place = StorePlace.at(PROJECT, store)
    stash = Stash.open(place.log(), Registry.of(PROJECT.current_types), PROJECT.constraints)
    stash.join()
    with stash.transaction(NOT_PROTECTED) as tx:
        key = ConfigKey(name=record_name(STASH_VERSION))
        if text is None:
            tx.delete(key)
        else:
            tx.upsert(key, ConfigValue(text=text))


@pytest.mark.parametrize("mode", MODES)
def test_a_store_without_a_record_is_opened_and_its_next_leader_makes_one(tmp_path: Path, mode: str) -> None:
    """As stores of earlier builds are; the record is in the commit by which the leader takes over."""
    open_catalog(tmp_path / "store").close()
    made = recorded(tmp_path / "store")
    assert made == {record_name(STASH_VERSION): f"{PROJECT.types_hash(STASH_VERSION)} {PROJECT.build}"}
    set_record(tmp_path / "store", None)
    with open_catalog(tmp_path / "store", mode) as cat:
        assert cat.version == STASH_VERSION
    assert recorded(tmp_path / "store") == (made if mode == "leader" else {})
    assert check_store(StorePlace.at(PROJECT, tmp_path / "store")).findings == ()


def test_a_feed_does_not_begin_among_rows_of_other_types(tmp_path: Path) -> None:
    """The number of the version is the same at both ends, and the build does not matter. Before there was a record,
    nobody can tell.
    """
    store, own = tmp_path / "store", f"{PROJECT.types_hash(STASH_VERSION)} 0.10.0"
    with open_catalog(store) as leader:
        set_record(store, None)
        before = leader.refresh()
        set_record(store, "sha256:other 7.0.0")
        since = leader.refresh()
        with leader.transaction() as tx:
            tx.upsert(SettingKey(name="colour"), SettingValue(value="red"))
        set_record(store, own)
        after = leader.refresh()
        with leader.transaction() as tx:
            tx.upsert(SettingKey(name="colour"), SettingValue(value="green"))
    with open_catalog(store, "read-only") as reader:
        with pytest.raises(VersionChangedError):
            next(iter(reader.subscribe(SettingKey, since)))
        assert len(list(reader.subscribe(SettingKey, before))) > 0
        assert [value.value for _, value, _, diff in reader.subscribe(SettingKey, after) if diff > 0] == ["green"]  # type: ignore[attr-defined]


def test_a_process_that_slept_for_longer_than_the_log_notices_other_types(tmp_path: Path) -> None:
    """It begins again with the newest state; the commits that changed the types under the same number are gone."""
    with open_catalog(tmp_path / "store") as cat:
        replica = cat._stash.replica  # noqa: SLF001
        set_record(tmp_path / "store", "sha256:other 7.0.0")
        log = StorePlace.at(PROJECT, tmp_path / "store").log()
        replica.restart(log.state(log.verify()))
        with pytest.raises(VersionChangedError):
            cat.refresh()


def test_a_leader_that_waited_looks_at_the_types_of_what_it_takes_over(tmp_path: Path) -> None:
    """Both found an empty place; the other build was first, and is not fenced by this one."""
    with open_catalog(tmp_path / "model"):
        pass
    place = StorePlace.at(PROJECT, tmp_path / "store")
    place.log().create("made")
    shutil.copy(tmp_path / "model" / "store.json", tmp_path / "store" / "store.json")
    other = open_stash(place, place.log())
    fence = other.take_over(0, "the other build")
    assert fence is not None
    beating = Heartbeat(place.storage, fence)
    beating.start()
    refused: list[CatalogError] = []

    def wait() -> None:
        try:
            open_catalog(place.uri).close()
        except CatalogError as error:
            refused.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    initialize_stash(PROJECT, other)
    set_record(tmp_path / "store", "sha256:other 7.0.0")
    beating.stop()
    waiting.join()
    assert [(type(error), error.build) for error in refused] == [(OtherTypesError, "7.0.0")]  # type: ignore[attr-defined]
    assert place.state().fence == fence


def test_a_program_cannot_write_the_record(tmp_path: Path) -> None:
    """It is the engine's, as the version is."""
    with open_catalog(tmp_path / "store") as cat, pytest.raises(CatalogError, match="config"), cat.transaction() as tx:
        tx.upsert(ConfigKey(name=record_name(STASH_VERSION)), ConfigValue(text="sha256:other 7.0.0"))
    with open_catalog(tmp_path / "store") as cat:
        assert list(cat.rows(RoleKey))
