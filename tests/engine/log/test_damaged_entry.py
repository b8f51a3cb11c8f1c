"""A damaged entry is restored if that can be proven; else it is set aside or left out, and what is lost is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from catalog import open_catalog
from catalog.engine.log.damaged_entry import Remedy, find_damaged, repair_entry
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.delta_entries import commit_entry
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import CommitRequest, LogState
from catalog.engine.storage.local import LocalStorage
from catalog.engine.store.leadership import LeadershipOptions, leading
from catalog.errors import (
    AlteredEntryError,
    DiagnosisOutdatedError,
    ForeignTableError,
    LogTooNewError,
    LossNotAcceptedError,
    NotRepairableError,
    StoreUnreachableError,
    TornLogError,
)
from catalog.objects import SettingKey, SettingValue
from catalog.tools.fsck.findings import Severity
from catalog.tools.repair import diagnose, repair
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import findings_of
from tests.object_store import make_bucket, storage_options
from tests.upgrade.stores import files_of, log_of

BEAT = 0.25
LEADER = LeadershipOptions(None, lock_timeout_s=30, heartbeat_s=BEAT)


@pytest.fixture
def place(tmp_path: Path) -> StorePlace:
    """A store with two settings, each of a commit of its own; the last is the newest."""
    return settled(StorePlace(str(tmp_path / "store"), {}, PROJECT))


def settled(place: StorePlace) -> StorePlace:
    with open_catalog(place.uri, options=place.options) as catalog:
        for name in ("before", "torn"):
            with catalog.transaction() as tx:
                tx.insert(SettingKey(name=name), SettingValue(value="x"))
    return place


def newest(place: StorePlace) -> Path:
    return entry(place, max(int(path.stem) for path in Path(place.uri, "stash", "_delta_log").glob("*.json")))


def entry(place: StorePlace, version: int) -> Path:
    return Path(place.uri, "stash", "_delta_log", f"{version:020d}.json")


def settings(place: StorePlace) -> set[str]:
    with open_catalog(place.uri, "read-only", options=place.options) as catalog:
        return {key.name for key, _ in catalog.rows(SettingKey)}


def tear(place: StorePlace, content: bytes = b"") -> bytes:
    """Damage the newest entry; answer what it is now."""
    newest(place).write_bytes(content)
    return content


@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", lambda raw: raw[:40], lambda raw: b"\0" * len(raw), lambda _: b"\x00\xff garbage"],
    ids=["empty", "beginning", "zeros", "garbage"],
)
def test_a_newest_entry_that_says_nothing_is_set_aside_and_the_store_is_what_it_was_before_it(
    place: StorePlace, damage: Callable[[bytes], bytes]
) -> None:
    """Its bytes and its files are kept, nobody is fenced, and the store is sound and can be written."""
    store, version = Path(place.uri), int(newest(place).stem)
    torn, fence = tear(place, damage(newest(place).read_bytes())), log_of(store).state(version - 1).fence
    left = files_of(store)
    diagnosis = diagnose(place, heartbeat_s=BEAT)
    assert files_of(store) == left
    found = diagnosis.damaged
    assert found is not None
    assert (found.version, found.size, found.remedy) == (version, len(torn), Remedy.SET_ASIDE)
    assert found.lost.startswith(f"the changes of the commit of ts {version} (")
    assert found.lost.endswith("rows of that ts were found, and are kept: 1 of `setting`)")
    assert (diagnosis.ts, diagnosis.leader_lives, diagnosis.is_sound) == (version - 1, False, False)
    with pytest.raises(TornLogError):
        settings(place)
    repaired = repair(place, diagnosis, heartbeat_s=BEAT)
    assert (store / repaired.kept).read_bytes() == torn
    assert repaired.kept.startswith("stash/_quarantine/")
    (orphan,) = found.orphans
    assert (store / "stash/_quarantine" / orphan).read_bytes() == left[f"stash/{orphan}"]
    assert log_of(store).state(log_of(store).verify()).fence == fence
    assert settings(place) == {"before", "default_cluster", "default_database"}
    assert findings_of(store) == []
    assert diagnose(place, heartbeat_s=BEAT).is_sound
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="after"), SettingValue(value="x"))
    assert settings(place) == {"after", "before", "default_cluster", "default_database"}


ALL = {"before", "torn", "default_cluster", "default_database"}


def restore(place: StorePlace, path: Path) -> Path:
    """Repair the damage of an entry, which is all there is; return the path of its kept bytes."""
    damaged, store = path.read_bytes(), Path(place.uri)
    diagnosis = diagnose(place, heartbeat_s=BEAT)
    found = diagnosis.damaged
    assert found is not None
    assert (found.version, found.remedy, found.lost) == (int(path.stem), Remedy.RESTORE, "")
    kept = store / repair(place, diagnosis, heartbeat_s=BEAT).kept
    assert kept.read_bytes() == damaged
    assert settings(place) == ALL
    assert findings_of(store) == []
    assert diagnose(place, heartbeat_s=BEAT).is_sound
    return kept


@pytest.mark.parametrize("bit", [0, 333, 1500, 2600, 3333, -9, -1])
@pytest.mark.parametrize("age", [0, 1])
def test_a_flipped_bit_of_an_entry_is_restored(place: StorePlace, bit: int, age: int) -> None:
    """The newest, and one that others follow: the digest proves which bit it was."""
    path = entry(place, int(newest(place).stem) - age)
    whole = path.read_bytes()
    altered = bytearray(whole)
    altered[bit // 8] ^= 1 << bit % 8
    path.write_bytes(altered)
    with pytest.raises((AlteredEntryError, TornLogError)):
        settings(place)
    restore(place, path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("bit", [0, 2000, 5200, 9000, 14_000])
def test_a_flipped_bit_of_the_first_entry_is_restored(place: StorePlace, bit: int) -> None:
    """There is no state before it, and its digest is proof enough.

    What delta-rs notes for people (`operationParameters`) is in no digest: a bit of it becomes any text that reads.
    """
    path = entry(place, 0)
    whole = path.read_bytes()
    altered = bytearray(whole)
    altered[bit // 8] ^= 1 << bit % 8
    path.write_bytes(altered)
    if diagnose(place, heartbeat_s=BEAT).damaged is not None:  # else it is in a field that no reader of rows uses
        restore(place, path)
        assert facts(path.read_bytes()) == facts(whole)
    assert settings(place) == ALL


def facts(entry: bytes) -> list[object]:
    """Return what an entry says, but for what delta-rs notes for people."""
    first, *others = (json.loads(line) for line in entry.splitlines())
    first["commitInfo"].pop("operationParameters", None)
    return [first, *others]


@pytest.mark.parametrize("damage", [lambda raw: raw[:-5], lambda raw: raw[: raw.index(b"\n") + 1]])
def test_a_newest_entry_that_names_its_state_is_rebuilt_from_its_files(
    place: StorePlace, damage: Callable[[bytes], bytes]
) -> None:
    """They lead to that very state, so they are what was committed."""
    path = newest(place)
    path.write_bytes(damage(path.read_bytes()))
    restore(place, path)
    assert log_of(Path(place.uri)).commit(int(path.stem)).details["rebuilt"].startswith("from its files")


@pytest.mark.parametrize("damage", [lambda _: b"", lambda raw: b"\0" * len(raw), lambda raw: raw[:50]])
def test_an_entry_in_the_middle_is_rebuilt_from_its_files_if_the_next_one_proves_it(
    place: StorePlace, damage: Callable[[bytes], bytes]
) -> None:
    """Files of commits that failed at the same ts are told from those that landed."""
    path = entry(place, int(newest(place).stem) - 1)
    log = log_of(Path(place.uri))
    fence = log.state(log.verify()).fence
    log.write_tail("setting", fence, [(b"failed", b"", int(path.stem), 1)])
    path.write_bytes(damage(path.read_bytes()))
    restore(place, path)


def test_a_missing_entry_in_the_middle_is_rebuilt_too(place: StorePlace) -> None:
    """There are no bytes to be kept."""
    path = entry(place, int(newest(place).stem) - 1)
    path.unlink()
    diagnosis = diagnose(place, heartbeat_s=BEAT)
    assert diagnosis.damaged is not None
    assert diagnosis.damaged.found == "it is missing"
    repair(place, diagnosis, heartbeat_s=BEAT)
    assert settings(place) == ALL
    assert findings_of(Path(place.uri)) == []


def test_an_entry_in_the_middle_that_nothing_proves_is_left_out_only_if_the_loss_is_accepted(place: StorePlace) -> None:
    """Then the rows of its ts are gone, all later ones stay, and the store is sound."""
    store, path = Path(place.uri), entry(place, int(newest(place).stem) - 1)
    path.write_bytes(b"")
    (lost,) = [file for file in (store / "stash").rglob("tail-*.parquet") if is_of(file, path)]
    lost.unlink()  # as if its file were gone too
    left = files_of(store)
    diagnosis = diagnose(place, heartbeat_s=BEAT)
    found = diagnosis.damaged
    assert found is not None
    assert (found.remedy, found.lost) == (
        Remedy.LEAVE_OUT,
        f"the changes of the commit of ts {int(path.stem)} (no row of that ts was found)",
    )
    with pytest.raises(LossNotAcceptedError, match="a repair would lose the changes of the commit"):
        repair(place, diagnosis, heartbeat_s=BEAT)
    assert files_of(store) == left
    repair(place, diagnosis, accept_loss=True, heartbeat_s=BEAT)
    assert settings(place) == ALL - {"before"}
    assert findings_of(store) == []
    assert diagnose(place, heartbeat_s=BEAT).is_sound
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="after"), SettingValue(value="x"))


def is_of(file: Path, path: Path) -> bool:
    """Tell if the rows of a file are those of an entry."""
    return set(pq.read_table(file, partitioning=None)["ts"].to_pylist()) == {int(path.stem)}


def test_entries_before_a_checkpoint_cost_no_row_but_the_states_of_then(place: StorePlace) -> None:
    """Nothing proves what two of them in a row held; the states are retired, so that cleaning goes on."""
    store, head = Path(place.uri), int(newest(place).stem)
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="after"), SettingValue(value="x"))
    checkpoint = int(newest(place).stem)
    log_of(store).checkpoint(checkpoint)
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="last"), SettingValue(value="x"))
    for version in (head - 1, head):
        entry(place, version).write_bytes(b"")
    diagnosis = diagnose(place, heartbeat_s=BEAT)
    found = diagnosis.damaged
    assert found is not None
    assert (found.remedy, found.lost) == (Remedy.RETIRE, f"the states before ts {checkpoint}")
    repair(place, diagnosis, heartbeat_s=BEAT)
    assert log_of(store).state(log_of(store).verify()).frontier == checkpoint
    assert settings(place) == {*ALL, "after", "last"}
    assert diagnose(place, heartbeat_s=BEAT).is_sound
    assert {finding.severity for finding in findings_of(store)} == {Severity.NOTE}


def test_a_torn_newest_entry_of_an_object_store_is_set_aside(object_store: str) -> None:
    """By the same pieces, over its requests."""
    options = storage_options(object_store)
    place = settled(StorePlace(f"s3://{make_bucket(object_store)}/store", options, PROJECT))
    log = DeltaLog(f"{place.uri}/stash", options)
    version = log.verify()
    storage = log._storage  # noqa: SLF001
    torn = (storage.read(f"_delta_log/{version:020d}.json") or b"")[:40]
    storage.replace(f"_delta_log/{version:020d}.json", torn)
    repaired = repair(place, diagnose(place, heartbeat_s=BEAT), heartbeat_s=BEAT)
    assert storage.read(repaired.kept.removeprefix("stash/")) == torn
    assert settings(place) == {"before", "default_cluster", "default_database"}
    assert diagnose(place, heartbeat_s=BEAT).is_sound
    with open_catalog(place.uri, options=options) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="after"), SettingValue(value="x"))
    assert "after" in settings(place)


def by_another_program(_: LogState, raw: bytes) -> bytes:
    return raw.replace(b"stash.", b"other.")


def by_a_newer_build(before: LogState, _: bytes) -> bytes:
    """Return an entry whose digest fits, with an operation of the future."""
    change = CommitRequest("levitate", "new")  # type: ignore[arg-type]
    return commit_entry(before, change, 1)


@pytest.mark.parametrize(
    ("write", "error"), [(by_another_program, ForeignTableError), (by_a_newer_build, LogTooNewError)]
)
def test_a_whole_commit_of_another_program_or_build_is_not_set_aside(
    place: StorePlace, write: Callable[[LogState, bytes], bytes], error: type[Exception]
) -> None:
    """It is what somebody meant to write."""
    before = log_of(Path(place.uri)).state(int(newest(place).stem) - 1)
    newest(place).write_bytes(write(before, newest(place).read_bytes()))
    left = files_of(Path(place.uri))
    with pytest.raises(error):
        diagnose(place, heartbeat_s=BEAT)
    assert files_of(Path(place.uri)) == left


def damage_entry_before(place: StorePlace) -> None:
    """And the one before that, so that nothing proves either."""
    for age in (1, 2):
        entry(place, int(newest(place).stem) - age).write_bytes(b"")


def checkpoint_newest(place: StorePlace) -> None:
    log_of(Path(place.uri)).checkpoint(int(newest(place).stem))


def leave_only_the_first(place: StorePlace) -> None:
    for version in range(int(newest(place).stem), 0, -1):
        entry(place, version).unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (damage_entry_before, "a later entry is damaged too"),
        (checkpoint_newest, "a checkpoint was made of it"),
        (leave_only_the_first, "it is the first"),
    ],
)
def test_what_would_not_give_back_a_state_that_was_is_not_set_aside(
    place: StorePlace, spoil: Callable[[StorePlace], None], words: str
) -> None:
    """The diagnosis says why, and the repair refuses and changes nothing."""
    spoil(place)
    tear(place)
    left = files_of(Path(place.uri))
    diagnosis = diagnose(place, heartbeat_s=BEAT)
    assert diagnosis.damaged is not None
    assert words in diagnosis.damaged.obstacle
    with pytest.raises(NotRepairableError, match="cannot be repaired"):
        repair(place, diagnosis, heartbeat_s=BEAT)
    assert files_of(Path(place.uri)) == left


def test_under_a_live_leader_what_looks_torn_is_looked_at_again_a_heartbeat_later(place: StorePlace) -> None:
    """If it is still the same it is set aside, and the leader writes on after it."""
    with leading(place, LEADER) as leader:
        entry(place, leader.stash.ts + 1).write_bytes(b"")
        diagnosis = diagnose(place, heartbeat_s=BEAT)
        assert diagnosis.leader_lives
        began = time.monotonic()
        repair(place, diagnosis, heartbeat_s=BEAT)
        assert time.monotonic() - began >= BEAT
        setting = leader.stash.registry.named("setting")
        with leader.stash.transaction() as tx:
            tx.insert(setting.key_type(name="after"), setting.value_type(value="x"))
    assert "after" in settings(place)
    assert findings_of(Path(place.uri)) == []


def test_an_entry_that_turns_out_whole_at_the_second_look_stays(place: StorePlace) -> None:
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


def test_of_two_repairs_at_once_neither_overwrites_what_was_committed_since(place: StorePlace) -> None:
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

    def __init__(self, place: StorePlace) -> None:
        super().__init__(Path(place.uri, "stash"))
        self.place = place

    def replace(self, path: str, content: bytes) -> None:
        repair(self.place, diagnose(self.place, heartbeat_s=BEAT), heartbeat_s=BEAT)
        with open_catalog(self.place.uri) as catalog, catalog.transaction() as tx:
            tx.insert(SettingKey(name="after"), SettingValue(value="x"))
        super().replace(path, content)


def test_a_repair_that_is_overtaken_at_its_last_step_loses_no_commit(place: StorePlace) -> None:
    """The version of the torn entry stays taken, so that what is put there twice is a seal."""
    tear(place)
    storage = Overtaken(place)
    torn = find_damaged(storage)
    assert torn is not None
    repair_entry(storage, torn, 1)
    assert settings(place) == {"after", "before", "default_cluster", "default_database"}
    assert findings_of(Path(place.uri)) == []


class Stopping(LocalStorage):
    def replace(self, path: str, content: bytes) -> None:
        raise StoreUnreachableError(path, "write", f"{len(content)} bytes are lost")


def test_a_repair_that_stopped_half_way_is_done_again(place: StorePlace) -> None:
    """The bytes are kept before anything else happens."""
    torn_bytes = tear(place, b"torn")
    storage = Stopping(Path(place.uri, "stash"))
    torn = find_damaged(storage)
    assert torn is not None
    with pytest.raises(StoreUnreachableError):
        repair_entry(storage, torn, 1)
    assert Path(place.uri, "stash", torn.path).read_bytes() == torn_bytes
    repair(place, diagnose(place, heartbeat_s=BEAT), heartbeat_s=BEAT)
    assert settings(place) == {"before", "default_cluster", "default_database"}
