"""Mending a store without fencing anybody: a torn newest entry, runs of dead processes, checksums of edited steps."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.engine.events import State, begin
from catalog.engine.journal import Journal
from catalog.engine.plan import checksum, migration_of, plan
from catalog.engine.run import upgrade, validate
from catalog.errors import (
    ChecksumError,
    DiagnosisOutdatedError,
    ForeignTableError,
    LogTooNewError,
    NotAStoreError,
    StoreUnreachableError,
    TornLogError,
)
from catalog.generator import generate
from catalog.handle import Place
from catalog.leading import Leader, Patience, leading
from catalog.log.delta import DeltaLog
from catalog.log.local_storage import LocalStorage
from catalog.log.protocol import Change, Fence, Mark, Operation
from catalog.log.quarantine import find_torn, set_aside
from catalog.objects import SettingKey, SettingValue
from catalog.repairing import Difference, diagnose, repair
from catalog.upgrade import PROJECT
from tests.contract.conftest import make_bucket, serve, storage_options
from tests.engine.stores import events_of, findings_of, lead, state_of
from tests.upgrade.stores import files_of, log_of, rows_at

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


OLD = 21


@pytest.fixture
def old(tmp_path: Path) -> Place:
    generate(PROJECT, tmp_path / "old", OLD, 50, 1)
    return Place(str(tmp_path / "old"), {}, PROJECT)


def run(leader: Leader) -> int:
    """Say that a step runs, as its process does first."""
    return begin(leader.journal, plan(PROJECT, leader.journal.state, OLD, OLD + 1)[0], "0.0.0")


def commits_since(place: Place, ts: int) -> list[Operation]:
    log = log_of(Path(place.uri))
    return [commit.operation for commit in log.commits(ts + 1, log.verify())]


@pytest.mark.parametrize("ending", ["released", "silent", "fenced"])
def test_the_run_of_a_dead_process_becomes_an_error_with_its_reason(old: Place, ending: str) -> None:
    """In one commit at the present fence: whoever joined it goes on. Asked again, there is nothing to do."""
    store = Path(old.uri)
    with leading(old, LEADER) as leader:
        number = run(leader)
    if ending == "silent":
        (store / "heartbeats" / f"0.{leader.fence.epoch}.json").write_text('{"beat": 7}')
    if ending == "fenced":
        with leading(old, LEADER):
            pass
    before, rows = state_of(store), rows_at(store)
    diagnosis = diagnose(old, heartbeat_s=BEAT)
    assert [(found.number, found.step, found.lives) for found in diagnosis.runs] == [(number, "v21_to_v22", False)]
    assert state_of(store) == before
    repaired = repair(old, diagnosis, heartbeat_s=BEAT)
    assert (repaired.closed, repaired.ts) == (diagnosis.runs, before.version + 1)
    assert commits_since(old, before.version) == [Operation.TRANSACTION]
    after = state_of(store)
    assert (after.fence, after.marks[Mark.RUNNING_STEP]) == (before.fence, 0)
    assert [(event.state, event.value.error) for event in events_of(store)] == [
        (State.ERROR, "its process ended before the step did")
    ]
    assert rows_at(store) == rows
    assert findings_of(store) == []
    again = diagnose(old, heartbeat_s=BEAT)
    assert again.is_sound
    for old_or_new in (diagnosis, again):
        assert repair(old, old_or_new, heartbeat_s=BEAT).closed == ()
    assert state_of(store) == after


def test_a_live_run_is_left_alone_and_named(old: Place) -> None:
    """It has not failed."""
    with leading(old, LEADER) as leader:
        number = run(leader)
        diagnosis = diagnose(old, heartbeat_s=BEAT)
        assert [(found.number, found.lives) for found in diagnosis.runs] == [(number, True)]
        assert diagnosis.is_sound
        assert repair(old, diagnosis, heartbeat_s=BEAT).closed == ()
        leader.journal.refresh()
        assert leader.journal.state.marks[Mark.RUNNING_STEP] == OLD + 1


def test_a_run_that_shows_life_after_the_diagnosis_is_left_alone(old: Place) -> None:
    """A process that stood still is not dead; and one that began since was never looked at."""
    with leading(old, LEADER) as leader:
        run(leader)
    dead = diagnose(old, heartbeat_s=BEAT)
    beats = Path(old.uri, "heartbeats", f"0.{leader.fence.epoch}.json")
    beats.write_text('{"beat": 7}')
    waking = threading.Timer(BEAT, beats.write_text, ['{"beat": 8}'])
    waking.start()
    assert repair(old, dead, heartbeat_s=BEAT).closed == ()
    waking.join()
    assert [event.state for event in events_of(Path(old.uri))] == [State.RUNNING]
    with leading(old, LEADER) as following:
        number = run(following)
        assert repair(old, dead, heartbeat_s=BEAT).closed == ()
        assert [event.id for event in events_of(Path(old.uri)) if event.state is State.RUNNING] == [number]


def test_a_mark_of_a_running_step_without_an_event_is_taken_back(old: Place) -> None:
    """Else nothing would be vacuumed before the next leader."""
    store = Path(old.uri)
    log = log_of(store)
    change = Change(Operation.TRANSACTION, uuid.uuid4().hex, marks={Mark.RUNNING_STEP: 22})
    log.compare_and_append(log.state(log.verify()), change)
    diagnosis = diagnose(old, heartbeat_s=BEAT)
    assert (diagnosis.stray_step, diagnosis.runs, diagnosis.is_sound) == (22, (), False)
    assert repair(old, diagnosis, heartbeat_s=BEAT).stray_step == 22
    assert state_of(store).marks[Mark.RUNNING_STEP] == 0
    assert diagnose(old, heartbeat_s=BEAT).is_sound
    assert repair(old, diagnosis, heartbeat_s=BEAT).stray_step == 0


def test_a_torn_entry_and_a_dead_run_are_mended_together(old: Place) -> None:
    """The run is that of the state before the torn entry."""
    with leading(old, LEADER) as leader:
        run(leader)
    entry(old, state_of(Path(old.uri)).version + 1).write_bytes(b"{")
    diagnosis = diagnose(old, heartbeat_s=BEAT)
    assert diagnosis.torn is not None
    repaired = repair(old, diagnosis, heartbeat_s=BEAT)
    assert (repaired.closed, repaired.ts) == (diagnosis.runs, diagnosis.torn.version + 1)
    assert diagnose(old, heartbeat_s=BEAT).is_sound


@pytest.fixture
def edited(old: Place) -> Place:
    """A store that a migration was applied to which was edited since."""
    store = Path(old.uri)
    runner = lead(store)
    upgrade(runner)
    kind = runner.journal.registry.named("migration_event")
    event = events_of(store)[0]
    event.value.checksum = "sha256:other"
    change = runner.journal.change(kind.key_type(id=event.id), event.value)
    runner.journal.append(Operation.TRANSACTION, [change], {})
    return old


def journal_of(place: Place) -> Journal:
    runner = lead(Path(place.uri))
    return runner.journal


def test_checksums_that_differ_are_shown_and_recorded_anew_when_asked(edited: Place) -> None:
    """In one commit, at the present fence; asked again, there is nothing to do."""
    store, present = Path(edited.uri), checksum(migration_of(PROJECT, OLD))
    before, events = state_of(store), events_of(store)
    diagnosis = diagnose(edited, heartbeat_s=BEAT)
    assert diagnosis.checksums == (Difference(1, "v21_to_v22", "sha256:other", present),)
    assert not diagnosis.is_sound
    assert repair(edited, diagnosis, heartbeat_s=BEAT).recorded == ()
    assert state_of(store) == before
    repaired = repair(edited, diagnosis, checksums=True, heartbeat_s=BEAT)
    assert repaired.recorded == diagnosis.checksums
    assert commits_since(edited, before.version) == [Operation.TRANSACTION]
    assert state_of(store).fence == before.fence
    events[0].value.checksum = present
    assert events_of(store) == events
    assert diagnose(edited, heartbeat_s=BEAT).is_sound
    assert repair(edited, diagnosis, checksums=True, heartbeat_s=BEAT).recorded == ()
    validate(PROJECT, journal_of(edited))


def test_without_it_the_store_is_refused_by_the_next_upgrade(edited: Place) -> None:
    """So there is something to repair."""
    with pytest.raises(ChecksumError):
        validate(PROJECT, journal_of(edited))


def test_a_sound_store_is_told_at_once(place: Place) -> None:
    """Nobody is waited for, and nothing is written."""
    left, fence = files_of(Path(place.uri)), state_of(Path(place.uri)).fence
    began = time.monotonic()
    with open_catalog(place.uri, "member"):
        assert diagnose(place, heartbeat_s=60).is_sound
    assert time.monotonic() - began < 30
    assert files_of(Path(place.uri)) == left
    assert fence == Fence(0, 1)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    """And not made one."""
    with pytest.raises(NotAStoreError):
        diagnose(Place(str(tmp_path / "no"), {}, PROJECT))
    assert not (tmp_path / "no").exists()
