"""A torn newest entry is set aside, and nothing else is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.errors import (
    DiagnosisOutdatedError,
    ForeignTableError,
    LogTooNewError,
    StoreUnreachableError,
    TornLogError,
)
from catalog.leading import Patience, leading
from catalog.log.delta import DeltaLog
from catalog.log.local_storage import LocalStorage
from catalog.log.quarantine import find_torn, set_aside
from catalog.objects import SettingKey, SettingValue
from catalog.project import Place
from catalog.repairing import diagnose, repair
from catalog.upgrade import PROJECT
from tests.contract.conftest import make_bucket, serve, storage_options
from tests.engine.stores import findings_of
from tests.upgrade.stores import files_of, log_of

BEAT = 0.25
LEADER = Patience(None, lock_timeout_s=30, heartbeat_s=BEAT)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A store with two settings, each of a commit of its own; the last is the newest."""
    return settled(Place(str(tmp_path / "store"), {}, PROJECT))


def settled(place: Place) -> Place:
    with open_catalog(place.uri, options=place.options) as catalog:
        for name in ("before", "torn"):
            with catalog.transaction() as tx:
                tx.insert(SettingKey(name=name), SettingValue(value="x"))
    return place


def newest(place: Place) -> Path:
    return entry(place, max(int(path.stem) for path in Path(place.uri, "stash", "_delta_log").glob("*.json")))


def entry(place: Place, version: int) -> Path:
    return Path(place.uri, "stash", "_delta_log", f"{version:020d}.json")


def settings(place: Place) -> set[str]:
    with open_catalog(place.uri, "read-only", options=place.options) as catalog:
        return {key.name for key, _ in catalog.rows(SettingKey)}


def tear(place: Place, content: bytes = b"") -> bytes:
    """Damage the newest entry; answer what it is now."""
    newest(place).write_bytes(content)
    return content


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:-5],
        lambda raw: b"".join(raw.splitlines(keepends=True)[:-1]),
        lambda raw: b"\0" * len(raw),
        lambda _: b"\x00\xff garbage",
    ],
    ids=["empty", "half", "end", "line", "zeros", "garbage"],
)
def test_a_torn_newest_entry_is_set_aside_and_the_store_is_what_it_was_before_it(
    place: Place, damage: Callable[[bytes], bytes]
) -> None:
    """Its bytes are kept, nobody is fenced, and the store is sound and can be written."""
    store, version = Path(place.uri), int(newest(place).stem)
    torn, fence = tear(place, damage(newest(place).read_bytes())), log_of(store).state(version - 1).fence
    left = files_of(store)
    diagnosis = diagnose(place, heartbeat_s=BEAT)
    assert files_of(store) == left
    assert diagnosis.torn is not None
    assert (diagnosis.torn.version, diagnosis.torn.size, diagnosis.torn.obstacle) == (version, len(torn), "")
    assert (diagnosis.ts, diagnosis.leader_lives, diagnosis.is_sound) == (version - 1, False, False)
    with pytest.raises(TornLogError):
        settings(place)
    repaired = repair(place, diagnosis, heartbeat_s=BEAT)
    assert (store / repaired.set_aside).read_bytes() == torn
    assert repaired.set_aside.startswith("stash/_quarantine/")
    assert log_of(store).state(log_of(store).verify()).fence == fence
    assert settings(place) == {"before", "default_cluster", "default_database"}
    assert findings_of(store) == []
    assert diagnose(place, heartbeat_s=BEAT).is_sound
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="after"), SettingValue(value="x"))
    assert settings(place) == {"after", "before", "default_cluster", "default_database"}


@pytest.fixture(scope="module")
def object_store() -> Iterator[str]:
    pytest.importorskip("moto", reason="the object store of these tests is moto")
    yield from (f"http://127.0.0.1:{port}" for port in serve())


def test_a_torn_newest_entry_of_an_object_store_is_set_aside(object_store: str) -> None:
    """By the same pieces, over its requests."""
    options = storage_options(object_store)
    place = settled(Place(f"s3://{make_bucket(object_store)}/store", options, PROJECT))
    log = DeltaLog(f"{place.uri}/stash", options)
    version = log.verify()
    storage = log._storage  # noqa: SLF001
    torn = (storage.read(f"_delta_log/{version:020d}.json") or b"")[:40]
    storage.replace(f"_delta_log/{version:020d}.json", torn)
    repaired = repair(place, diagnose(place, heartbeat_s=BEAT), heartbeat_s=BEAT)
    assert storage.read(repaired.set_aside.removeprefix("stash/")) == torn
    assert settings(place) == {"before", "default_cluster", "default_database"}
    assert diagnose(place, heartbeat_s=BEAT).is_sound
    with open_catalog(place.uri, options=options) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="after"), SettingValue(value="x"))
    assert "after" in settings(place)


def test_an_entry_in_the_middle_is_not_set_aside(place: Place) -> None:
    """It was acknowledged, and others were built on it."""
    middle = entry(place, int(newest(place).stem) - 1)
    middle.write_bytes(middle.read_bytes()[:50])
    left = files_of(Path(place.uri))
    with pytest.raises(TornLogError, match=f"log entry {int(middle.stem)} of"):
        diagnose(place, heartbeat_s=BEAT)
    assert files_of(Path(place.uri)) == left


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (b"stash.", b"other.", ForeignTableError),
        (b'"stash.operation":"transaction"', b'"stash.operation":"levitate"', LogTooNewError),
    ],
)
def test_a_whole_commit_of_another_program_or_build_is_not_set_aside(
    place: Place, old: bytes, new: bytes, error: type[Exception]
) -> None:
    """It is what somebody meant to write."""
    newest(place).write_bytes(newest(place).read_bytes().replace(old, new))
    left = files_of(Path(place.uri))
    with pytest.raises(error):
        diagnose(place, heartbeat_s=BEAT)
    assert files_of(Path(place.uri)) == left


def damage_entry_before(place: Place) -> None:
    before = entry(place, int(newest(place).stem) - 1)
    before.write_bytes(before.read_bytes()[:50])


def checkpoint_newest(place: Place) -> None:
    log_of(Path(place.uri)).checkpoint(int(newest(place).stem))


def leave_only_the_first(place: Place) -> None:
    for version in range(int(newest(place).stem), 0, -1):
        entry(place, version).unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (damage_entry_before, "the state before it cannot be read either"),
        (checkpoint_newest, "a checkpoint was made of it"),
        (leave_only_the_first, "it is the first"),
    ],
)
def test_what_would_not_give_back_a_state_that_was_is_not_set_aside(
    place: Place, spoil: Callable[[Place], None], words: str
) -> None:
    """The diagnosis says why, and the repair refuses and changes nothing."""
    spoil(place)
    tear(place)
    left = files_of(Path(place.uri))
    diagnosis = diagnose(place, heartbeat_s=BEAT)
    assert diagnosis.torn is not None
    assert words in diagnosis.torn.obstacle
    with pytest.raises(TornLogError, match="it cannot be set aside"):
        repair(place, diagnosis, heartbeat_s=BEAT)
    assert files_of(Path(place.uri)) == left


def test_under_a_live_leader_what_looks_torn_is_looked_at_again_a_heartbeat_later(place: Place) -> None:
    """If it is still the same it is set aside, and the leader writes on after it."""
    with leading(place, LEADER) as leader:
        entry(place, leader.stash.ts + 1).write_bytes(b"")
        diagnosis = diagnose(place, heartbeat_s=BEAT)
        assert diagnosis.leader_lives
        began = time.monotonic()
        repair(place, diagnosis, heartbeat_s=BEAT)
        assert time.monotonic() - began >= BEAT
        setting = leader.stash.head.registry.named("setting")
        with leader.stash.transaction() as tx:
            tx.insert(setting.key_type(name="after"), setting.value_type(value="x"))
    assert "after" in settings(place)
    assert findings_of(Path(place.uri)) == []


def test_an_entry_that_turns_out_whole_at_the_second_look_stays(place: Place) -> None:
    """Whoever was about to write it has written it."""
    with leading(place, LEADER):
        path = newest(place)
        whole = path.read_bytes()
        path.write_bytes(whole[:20])
        diagnosis = diagnose(place, heartbeat_s=BEAT)
        finishing = threading.Timer(BEAT / 2, path.write_bytes, [whole])
        finishing.start()
        with pytest.raises(DiagnosisOutdatedError, match="diagnose the store again"):
            repair(place, diagnosis, heartbeat_s=BEAT)
        finishing.join()
    assert path.read_bytes() == whole
    assert not Path(place.uri, "stash", "_quarantine").exists()


def test_of_two_repairs_at_once_neither_overwrites_what_was_committed_since(place: Place) -> None:
    """The slower one finds the work done, even if it had looked before and acts only now."""
    tear(place)
    slow = diagnose(place, heartbeat_s=BEAT)
    repair(place, diagnose(place, heartbeat_s=BEAT), heartbeat_s=BEAT)
    with open_catalog(place.uri) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="after"), SettingValue(value="x"))
    left = files_of(Path(place.uri))
    repair(place, slow, heartbeat_s=BEAT)
    assert files_of(Path(place.uri)) == left


class Overtaken(LocalStorage):
    """Another repair does all its work, and somebody commits, between the last look and the seal of this one."""

    def __init__(self, place: Place) -> None:
        super().__init__(Path(place.uri, "stash"))
        self.place = place

    def replace(self, path: str, content: bytes) -> None:
        repair(self.place, diagnose(self.place, heartbeat_s=BEAT), heartbeat_s=BEAT)
        with open_catalog(self.place.uri) as catalog, catalog.transaction() as tx:
            tx.insert(SettingKey(name="after"), SettingValue(value="x"))
        super().replace(path, content)


def test_a_repair_that_is_overtaken_at_its_last_step_loses_no_commit(place: Place) -> None:
    """The version of the torn entry stays taken, so that what is put there twice is a seal."""
    tear(place)
    storage = Overtaken(place)
    torn = find_torn(storage)
    assert torn is not None
    set_aside(storage, torn, 1)
    assert settings(place) == {"after", "before", "default_cluster", "default_database"}
    assert findings_of(Path(place.uri)) == []


class Stopping(LocalStorage):
    def replace(self, path: str, content: bytes) -> None:
        raise StoreUnreachableError(path, "write", f"{len(content)} bytes are lost")


def test_a_repair_that_stopped_half_way_is_done_again(place: Place) -> None:
    """The bytes are kept before anything else happens."""
    torn_bytes = tear(place, b"torn")
    storage = Stopping(Path(place.uri, "stash"))
    torn = find_torn(storage)
    assert torn is not None
    with pytest.raises(StoreUnreachableError):
        set_aside(storage, torn, 1)
    assert Path(place.uri, "stash", torn.path).read_bytes() == torn_bytes
    repair(place, diagnose(place, heartbeat_s=BEAT), heartbeat_s=BEAT)
    assert settings(place) == {"before", "default_cluster", "default_database"}
