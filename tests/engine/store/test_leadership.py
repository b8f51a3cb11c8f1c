"""Leading a store that is there, at its own version, without changing what it holds."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from catalog import STASH_VERSION, open_catalog
from catalog.engine.base.fence import Fence
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, LogState, Operation
from catalog.engine.stash.engine_rows import NOT_PROTECTED
from catalog.engine.storage.base import open_storage
from catalog.engine.storage.identity import make_identity
from catalog.engine.store.leadership import LeadershipOptions, leading, own_stash
from catalog.engine.store.probed_place import PROBED
from catalog.errors import (
    CatalogError,
    FencedError,
    NotAStoreError,
    NotInitializedError,
    StaleGenerationError,
    StoreTooNewError,
    StoreTooOldError,
    TimedOutError,
)
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.upgrade.stores import files_of, load, log_of, rows_at

OLD = 17
SOON = LeadershipOptions(lock_timeout_s=30, heartbeat_s=0.25)


@pytest.fixture
def place(tmp_path: Path) -> StorePlace:
    """A store of this build that was made and left."""
    with open_catalog(tmp_path / "store"):
        return StorePlace(str(tmp_path / "store"), {}, PROJECT)


def fence_of(place: StorePlace) -> Fence:
    log = log_of(Path(place.uri))
    return log.state(log.verify()).fence


def test_an_old_store_is_led_with_its_own_types_and_stays_at_its_version(tmp_path: Path) -> None:
    """All that is added is a fence."""
    generate(PROJECT, tmp_path / "store", OLD, 100, 1)
    before, rows = log_of(tmp_path / "store").verify(), rows_at(tmp_path / "store")
    with leading(StorePlace(str(tmp_path / "store"), {}, PROJECT), SOON) as leader:
        role = leader.stash.registry.named("role")
        assert role.key_type is PROJECT.types(OLD).RoleKey
        assert len(rows["role"]) == len([role.decode(*row) for row in leader.stash.view().rows("role")]) > 0
        assert leader.stash.replica.constraints == PROJECT.constraints.at(OLD)
        assert leader.system_rows.version == OLD
    assert rows_at(tmp_path / "store") == rows
    assert [commit.operation for commit in leader.log.commits(before + 1, leader.log.verify())] == [Operation.FENCE]


def test_the_engines_rows_of_a_legacy_store_can_be_used(tmp_path: Path) -> None:
    """Rows of v14 are no messages, but the engine's own are."""
    generate(PROJECT, tmp_path / "store", 14, 100, 1)
    with leading(StorePlace(str(tmp_path / "store"), {}, PROJECT), SOON) as leader:
        config = leader.stash.registry.named("config")
        with leader.stash.transaction(NOT_PROTECTED) as tx:
            tx.insert(config.key_type(name="note"), config.value_type(text="here"))
        leader.system_rows.refresh()
        assert [key.name for key, _ in leader.system_rows.rows("config")] == ["note", "stash_version", PROBED]  # type: ignore[attr-defined]


def test_transactions_of_a_leader_keep_the_constraints_of_its_version(tmp_path: Path) -> None:
    """What that version forbids cannot be written by whoever leads by hand."""
    load(tmp_path / "store", OLD, {})
    types = PROJECT.types(OLD)
    with leading(StorePlace(str(tmp_path / "store"), {}, PROJECT), SOON) as leader:
        with pytest.raises(CatalogError, match="database_id"), leader.stash.transaction() as tx:
            tx.insert(types.SchemaKey(id=1), types.SchemaValue(database_id=9, name="s"))
        assert list(leader.stash.view().rows("schema")) == []


def test_whoever_led_before_is_fenced_and_waited_for_no_more_at_the_end(place: StorePlace) -> None:
    """The next need not wait: a leader that ends says so."""
    with open_catalog(place.uri) as before, leading(place, LeadershipOptions(1, heartbeat_s=0.05)) as leader:
        assert leader.fence == Fence(1, before.epoch + 1)
        with pytest.raises(FencedError):
            before.refresh()
    began = time.monotonic()
    with leading(place, LeadershipOptions(1, lock_timeout_s=60)) as following:
        assert following.fence == Fence(1, leader.fence.epoch + 1)
    assert time.monotonic() - began < 30
    assert [path.name for path in Path(place.uri, "heartbeats").iterdir()] == [f"1.{following.fence.epoch}.json"]


def test_a_leader_that_fails_lets_others_go_ahead(place: StorePlace) -> None:
    """Its end is told however it ends."""
    with pytest.raises(KeyError), leading(place, SOON):
        raise KeyError
    (sign,) = Path(place.uri, "heartbeats").iterdir()
    assert json.loads(sign.read_text())["beat"] == -1


def test_a_live_leader_is_waited_for(place: StorePlace) -> None:
    """The second leads when the first has ended, and not before."""
    order = []

    def second() -> None:
        with leading(place, SOON):
            order.append("second")

    waiting = threading.Thread(target=second)
    with leading(place, SOON):
        waiting.start()
        waiting.join(timeout=1.5)  # a leader that shows no sign of life is waited for less long
        assert waiting.is_alive()
        order.append("first")
    waiting.join(timeout=20)
    assert order == ["first", "second"]


def test_without_a_generation_the_stores_own_is_kept(place: StorePlace) -> None:
    """An operator need not know it, and never raises it."""
    with open_catalog(place.uri, deploy_generation=7):
        pass
    with leading(place, LeadershipOptions(None)) as leader:
        assert leader.fence.generation == 7
    with pytest.raises(StaleGenerationError), leading(place, LeadershipOptions(6)):
        pass
    assert fence_of(place) == leader.fence


def test_without_a_generation_one_that_rose_meanwhile_is_followed(
    place: StorePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was quicker is waited for, whatever its generation; it is no error."""
    waited: list[int] = []

    def wait(*_: object) -> bool:
        if not waited:
            open_catalog(place.uri, deploy_generation=3).close()
        waited.append(fence_of(place).generation)
        return False

    monkeypatch.setattr("catalog.engine.store.leadership.wait_for_leader", wait)
    with leading(place, LeadershipOptions(None)) as leader:
        assert (leader.fence.generation, waited) == (3, [3, 3])


def test_a_deadline_ends_the_wait_for_a_live_leader_and_changes_nothing(place: StorePlace) -> None:
    """The leader that is there leads on."""
    with leading(place, SOON) as first:
        before = first.log.verify()
        leadership = LeadershipOptions(lock_timeout_s=30, heartbeat_s=0.25, deadline_s=time.monotonic() + 0.5)
        with (
            pytest.raises(TimedOutError, match=rf"its leader \S+:\d+ of epoch {first.fence.epoch}\n") as caught,
            leading(place, leadership),
        ):
            pass
        assert 0.4 < caught.value.waited_s < 20
        assert "nothing was changed" in caught.value.why
        assert first.log.verify() == before
        first.stash.refresh()


def test_before_the_deadline_a_leader_that_does_not_end_is_replaced_after_the_timeout(place: StorePlace) -> None:
    """The deadline is of the whole, the timeout of each wait."""
    with leading(place, SOON) as first:
        leadership = LeadershipOptions(lock_timeout_s=0.2, heartbeat_s=0.05, deadline_s=time.monotonic() + 600)
        with leading(place, leadership) as second:
            assert second.fence.epoch == first.fence.epoch + 1


def test_a_dead_leader_is_no_reason_to_give_up(place: StorePlace) -> None:
    """Silence is waited out within the deadline, and then the store is led."""
    Path(place.uri, "heartbeats", f"0.{fence_of(place).epoch}.json").write_text('{"beat": 4}')
    with leading(place, LeadershipOptions(heartbeat_s=0.05, deadline_s=time.monotonic() + 60)) as leader:
        assert leader.fence == fence_of(place)


def test_what_is_no_store_is_refused_and_not_made_one(tmp_path: Path) -> None:
    """Leading never creates."""
    with (
        pytest.raises(NotAStoreError, match="nothing is there"),
        leading(StorePlace(str(tmp_path / "no"), {}, PROJECT), SOON),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_was_never_initialised_is_refused(tmp_path: Path) -> None:
    """There is nothing to lead, and no version to lead it at."""
    make_identity(open_storage(str(tmp_path), {}), PROJECT.name)
    DeltaLog(f"{tmp_path}/stash", {}).create("made")
    left = files_of(tmp_path)
    with pytest.raises(NotInitializedError), leading(StorePlace(str(tmp_path), {}, PROJECT), SOON):
        pass
    assert files_of(tmp_path) == left


@pytest.mark.parametrize(("version", "error"), [(STASH_VERSION + 1, StoreTooNewError), (13, StoreTooOldError)])
def test_a_store_of_a_version_that_is_not_known_is_refused_before_anyone_is_fenced(
    place: StorePlace, version: int, error: type[Exception]
) -> None:
    """The refusal writes nothing."""
    log = log_of(Path(place.uri))
    change = CommitRequest(Operation.TRANSACTION, "x", app_txns={AppTxn.STASH_VERSION: version})
    log.compare_and_append(log.state(log.verify()), change)
    left = files_of(Path(place.uri))
    with pytest.raises(error), leading(place, SOON):
        pass
    assert files_of(Path(place.uri)) == left


def test_a_store_that_is_upgraded_while_it_is_waited_for_is_led_at_its_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the types of then, not those from before the wait."""
    store = tmp_path / "store"
    load(store, OLD, {})

    def wait(*_: object) -> bool:
        log = log_of(store)
        state = log.state(log.verify())
        if state.app_txns[AppTxn.STASH_VERSION] == OLD:
            log.compare_and_append(
                state, CommitRequest(Operation.MIGRATE, "x", app_txns={AppTxn.STASH_VERSION: OLD + 1})
            )
        return False

    monkeypatch.setattr("catalog.engine.store.leadership.wait_for_leader", wait)
    with leading(StorePlace(str(store), {}, PROJECT), SOON) as leader:
        assert leader.stash.registry.named("role").key_type is PROJECT.types(OLD + 1).RoleKey
        assert leader.stash.replica.row_version == leader.system_rows.version == OLD + 1


class Upgraded(DeltaLog):
    """Somebody takes the store a version on just after it was looked at for the first time."""

    def state(self, version: int) -> LogState:
        state = super().state(version)
        if state.stash_version == OLD:
            self.compare_and_append(
                state, CommitRequest(Operation.MIGRATE, "x", app_txns={AppTxn.STASH_VERSION: OLD + 1})
            )
        return state


def test_the_types_are_those_of_the_state_that_is_read(tmp_path: Path) -> None:
    """Not of a version that the store had a moment before."""
    load(tmp_path / "store", OLD, {})
    stash = own_stash(PROJECT, Upgraded(f"{tmp_path}/store/stash"))
    assert stash.replica.row_version == OLD + 1
    assert stash.registry.named("role").key_type is PROJECT.types(OLD + 1).RoleKey
