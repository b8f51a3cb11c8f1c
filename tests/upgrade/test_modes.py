"""An old store in every mode, and its past after it was upgraded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from catalog import STASH_VERSION, open_catalog
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.stash import Stash
from catalog.engine.store.catalog import Catalog
from catalog.errors import (
    CatalogError,
    LegacyRowsError,
    ReadOnlyError,
    RetiredError,
    UnknownCollectionError,
    UpgradeNeededError,
    VersionChangedError,
)
from catalog.objects import CommentKey, RoleKey, SettingKey, SettingValue
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.migrations.plain import ENGINE, Stored
from tests.upgrade.stores import files_of, log_of, rows_at, steps_of
from tests.upgrade.upgraded import Upgraded

pytestmark = pytest.mark.spark

OLD = 18
OLD_TYPES: Any = PROJECT.types(OLD)
ROWS, SEED = 300, 3


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("template") / "store"
    generate(PROJECT, store, OLD, ROWS, SEED)
    return store


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Path:
    """A store that an old build left."""
    return Path(shutil.copytree(template, tmp_path / "store"))


@dataclass(frozen=True, slots=True)
class Led:
    """A store that a leader of this build upgraded under the eyes of processes of the old one."""

    leader: Catalog
    store: Path
    then: int
    """A ts before the upgrade; after it the old build wrote once more."""
    reader: Catalog
    member: Stash


@pytest.fixture(scope="module")
def led(template: Path, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Led]:
    store = Path(shutil.copytree(template, tmp_path_factory.mktemp("led") / "store"))
    reader, member, then = open_catalog(store, "debug"), old_build(store), log_of(store).verify()
    write_as_old_build(member, "written late")
    with open_catalog(store, deploy_generation=1, spark=spark) as leader:
        yield Led(leader, store, then, reader, member)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where scratch copies are made."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


def old_build(store: Path) -> Stash:
    """The store as a process of the old build has it open."""
    stash = Stash.open(log_of(store), Registry.of(OLD_TYPES), PROJECT.constraints.at(OLD))
    stash.join()
    return stash


def write_as_old_build(stash: Stash, name: str) -> None:
    with stash.transaction() as tx:
        tx.insert(OLD_TYPES.SettingKey(name=name), OLD_TYPES.SettingValue(value="of then"))


def served(catalog: Catalog) -> Stored:
    """Every row that a catalog serves under the types of this build, as bytes."""
    kinds = Registry.of(PROJECT.current_types).by_name
    found = {name: encoded(catalog.rows(kind.key_type)) for name, kind in kinds.items() if name not in ENGINE}
    return {name: rows for name, rows in found.items() if rows}


def encoded(rows: Iterator[tuple[Message, Message]]) -> list[tuple[bytes, bytes]]:
    return [(encode(key), encode(value)) for key, value in rows]


def settings(catalog: Catalog) -> set[str]:
    return {key.name for key, _ in catalog.rows(SettingKey)}


def test_read_only_serves_the_upgraded_rows_and_writes_nothing(
    store: Path, scratch: Path, spark: SparkSession, led: Led
) -> None:
    """From a scratch copy, at the ts of the store; asked again, it is made again, and at the end it is gone."""
    left = files_of(store)
    with open_catalog(store, "read-only", spark=spark) as reader:
        assert (reader.version, reader.ts) == (STASH_VERSION, led.then)
        with pytest.raises(ReadOnlyError), reader.transaction():
            pass
        with pytest.raises(RetiredError):
            reader.rows(RoleKey, as_of=led.then - 1)
        assert "written late" not in settings(reader)
        assert len(list(scratch.glob("catalog-read-only-*"))) == 1
        assert files_of(store) == left

        write_as_old_build(old_build(store), "written late")
        assert "written late" not in settings(reader)
        written = files_of(store)
        assert reader.refresh() == reader.ts == led.then + 1
        assert served(reader) == rows_at(led.store, steps_of(led.store)[STASH_VERSION].version)
        assert len(list(scratch.glob("catalog-read-only-*"))) == 1
        assert files_of(store) == written
    assert list(scratch.glob("catalog-read-only-*")) == []


def test_a_savepoint_is_writable_and_leaves_the_store_alone(store: Path, scratch: Path, spark: SparkSession) -> None:
    """What is tried on the upgraded rows is gone afterwards."""
    left = files_of(store)
    with open_catalog(store, "savepoint", spark=spark) as savepoint:
        with savepoint.transaction() as tx:
            tx.insert(SettingKey(name="tried"), SettingValue(value="now"))
        assert savepoint.version == STASH_VERSION
        assert "tried" in settings(savepoint)
        assert list(scratch.glob("catalog-savepoint-*")) != []
    assert list(scratch.glob("catalog-savepoint-*")) == []
    assert files_of(store) == left


def test_a_member_does_not_upgrade(store: Path) -> None:
    """It says what is needed, and changes nothing."""
    left = files_of(store)
    with pytest.raises(UpgradeNeededError, match=f"is at version {OLD}, and this build serves version {STASH_VERSION}"):
        open_catalog(store, "member")
    assert files_of(store) == left


def test_debug_reads_a_store_with_the_types_of_its_own_version(store: Path) -> None:
    """Rows are messages of then, and a collection that came later is not there."""
    left = files_of(store)
    with open_catalog(store, "debug") as catalog:
        assert catalog.version == OLD
        rows = list(catalog.rows(OLD_TYPES.ItemKey))
        assert {type(part) for row in rows for part in row} == {OLD_TYPES.ItemKey, OLD_TYPES.ItemValue}
        assert encoded(iter(rows)) == rows_at(store)["item"]
        with pytest.raises(UnknownCollectionError):
            catalog.rows(CommentKey)
    assert files_of(store) == left


def test_debug_says_that_rows_of_before_messages_are_none(tmp_path: Path) -> None:
    """Nobody is told to generate code that never was."""
    generate(PROJECT, tmp_path / "store", PROJECT.first_proto - 1, 50, SEED)
    with pytest.raises(LegacyRowsError, match=f"since version {PROJECT.first_proto}"):
        open_catalog(tmp_path / "store", "debug")


@pytest.mark.parametrize("version", range(PROJECT.first_proto, STASH_VERSION))
def test_the_past_is_read_with_the_types_of_then(oldest: Upgraded, version: int) -> None:
    """At the ts of every step, whichever version the store is at now."""
    with open_catalog(oldest.store, "read-only") as catalog:
        then = PROJECT.types(version)
        rows = list(catalog.rows(RoleKey, as_of=oldest.ts(version)))
        assert {type(value).DESCRIPTOR.full_name for _, value in rows} == {f"catalog.objects_v{version}.RoleValue"}
        assert rows == list(catalog.rows(then.RoleKey, as_of=oldest.ts(version)))
        assert encoded(iter(rows)) == oldest.stored_at(version)["role"]
        assert catalog.table("role", as_of=oldest.ts(version)).num_rows == len(rows)


def test_the_past_of_before_messages_is_refused(oldest: Upgraded) -> None:
    """It is there for an undo, and says from when on rows can be read."""
    with open_catalog(oldest.store, "read-only") as catalog, pytest.raises(LegacyRowsError):
        catalog.rows(RoleKey, as_of=oldest.first_ts)


def test_a_feed_of_then_ends_at_the_upgrade(led: Led) -> None:
    """After all that was written before it; the error says at which ts."""
    feed = led.reader.subscribe(OLD_TYPES.SettingKey, since=led.then)
    seen: list[Any] = []
    with pytest.raises(VersionChangedError) as ended:
        seen.extend(feed)
    assert [(key.name, ts, diff) for key, _, ts, diff in seen] == [("written late", led.then + 1, 1)]
    first = steps_of(led.store)[OLD + 1].version
    assert (ended.value.before, ended.value.after, ended.value.ts) == (OLD, OLD + 1, first)


def test_a_feed_of_now_begins_after_the_upgrade(led: Led) -> None:
    """Asked for what was before, it names the ts from which it can begin."""
    with pytest.raises(VersionChangedError) as refused:
        list(led.leader.subscribe(SettingKey, since=led.then))
    assert refused.value.ts == steps_of(led.store)[STASH_VERSION].version
    assert refused.value.next.startswith(
        f"feeds start again from ts {refused.value.ts}, by `--since {refused.value.ts}`"
    )
    with led.leader.transaction() as tx:
        tx.upsert(SettingKey(name="after"), SettingValue(value="now"))
    feed = led.leader.subscribe(SettingKey, since=refused.value.ts)
    assert ("after", 1) in [(key.name, diff) for key, _, _, diff in feed]  # type: ignore[attr-defined]


def durable_files(store: Path) -> set[str]:
    """Name the files of a store, without the heartbeats of its leader, which come and go."""
    return {path for path in files_of(store) if not path.startswith("heartbeats/")}


def test_a_process_of_the_old_build_cannot_write_any_more(led: Led) -> None:
    """Nothing of it lands among rows of other types."""
    left = durable_files(led.store)
    with pytest.raises(CatalogError, match=r"epoch|version"):
        write_as_old_build(led.member, "too late")
    assert "too late" not in settings(led.leader)
    assert durable_files(led.store) == left
