"""Changing one row by hand: what is shown, what is refused, and what is written."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from catalog import STASH_VERSION, open_catalog
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, Operation
from catalog.engine.migrate.plan import plan
from catalog.engine.migrate.recorder import begin
from catalog.engine.stash.engine_rows import NOT_PROTECTED
from catalog.engine.stash.json_rows import to_json
from catalog.engine.store.leadership import LeadershipOptions, leading
from catalog.errors import (
    AllocatorSetBackError,
    DanglingReferenceError,
    DuplicateError,
    FencedError,
    LegacyRowsError,
    MarkedRowError,
    NoSuchRowError,
    NotAStoreError,
    ProtectedRowError,
    RowChangedError,
    TimedOutError,
    UnfitJsonError,
    UnknownCollectionError,
)
from catalog.objects import RoleId, RoleKey, RoleValue, SettingKey, SettingValue
from catalog.tools.edit import apply_edit, plan_delete, plan_edit
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import events_of, findings_of
from tests.upgrade.stores import files_of, log_of, rows_at

OLD = 17
SOON = LeadershipOptions(None, lock_timeout_s=30, heartbeat_s=0.05)


@pytest.fixture
def place(tmp_path: Path) -> StorePlace:
    """A store of this build with a setting and two roles of its own."""
    with open_catalog(tmp_path / "store") as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="colour"), SettingValue(value="red"))
        tx.insert(RoleKey(id=RoleId(user=1)), RoleValue(name="ann"))
        tx.insert(RoleKey(id=RoleId(user=2)), RoleValue(name="bob", member_of=[RoleId(user=1)]))
    return StorePlace(str(tmp_path / "store"), {}, PROJECT)


@pytest.fixture
def old(tmp_path: Path) -> StorePlace:
    generate(PROJECT, tmp_path / "old", OLD, 100, 1)
    return StorePlace(str(tmp_path / "old"), {}, PROJECT)


def setting(place: StorePlace, name: str = "colour") -> Any:  # noqa: ANN401
    with open_catalog(place.uri, "read-only") as catalog:
        return {key.name: value for key, value in catalog.rows(SettingKey)}.get(name)


def test_a_plan_shows_the_row_before_and_after_and_writes_nothing(place: StorePlace) -> None:
    """Whoever is asked to agree sees all that will be different."""
    left = files_of(Path(place.uri))
    edit = plan_edit(place, "setting", {"name": "colour"}, {"value": "blue"})
    assert (edit.collection, edit.key, edit.before, edit.after) == (
        "setting",
        {"name": "colour"},
        {"value": "red"},
        {"value": "blue"},
    )
    assert (edit.ts, edit.version, edit.is_same) == (log_of(Path(place.uri)).verify(), STASH_VERSION, False)
    deletion = plan_delete(place, "setting", {"name": "colour"})
    assert (deletion.before, deletion.after, deletion.is_same) == ({"value": "red"}, None, False)
    assert files_of(Path(place.uri)) == left


def test_an_edit_is_one_commit_after_the_fence(place: StorePlace) -> None:
    """And nothing else of the store is different."""
    before = rows_at(Path(place.uri))
    edit = plan_edit(place, "setting", {"name": "colour"}, {"value": "blue"})
    ts = apply_edit(place, edit, SOON)
    log = log_of(Path(place.uri))
    assert ts == log.verify()
    assert [commit.operation for commit in log.commits(edit.ts + 1, ts)] == [Operation.FENCE, Operation.TRANSACTION]
    assert setting(place).value == "blue"
    after = rows_at(Path(place.uri))
    assert {name for name in before if before[name] != after[name]} == {"setting"}
    assert findings_of(Path(place.uri)) == []


def test_a_deletion_removes_the_row(place: StorePlace) -> None:
    """The one that was shown, and no other."""
    apply_edit(place, plan_delete(place, "setting", {"name": "colour"}), SOON)
    assert setting(place) is None
    assert setting(place, "default_cluster") is not None
    with pytest.raises(NoSuchRowError):
        plan_delete(place, "setting", {"name": "colour"})


def test_whoever_leads_is_fenced(place: StorePlace) -> None:
    """It cannot go on with what it believes the row to be."""
    edit = plan_edit(place, "setting", {"name": "colour"}, {"value": "blue"})
    with open_catalog(place.uri, deploy_generation=3) as leader:
        apply_edit(place, edit, replace(SOON, lock_timeout_s=0))
        with pytest.raises(FencedError):
            leader.refresh()


def test_a_row_that_changed_after_it_was_shown_is_left_alone(place: StorePlace) -> None:
    """What somebody agreed to is what is done, or nothing is."""
    edit = plan_edit(place, "setting", {"name": "colour"}, {"value": "blue"})
    deletion = plan_delete(place, "setting", {"name": "colour"})
    with open_catalog(place.uri) as leader, leader.transaction() as tx:
        tx.update(SettingKey(name="colour"), SettingValue(value="green"))
    for planned in (edit, deletion):
        with pytest.raises(RowChangedError, match="is no longer what it was at ts"):
            apply_edit(place, planned, SOON)
    assert setting(place).value == "green"
    with open_catalog(place.uri) as leader, leader.transaction() as tx:
        tx.delete(SettingKey(name="colour"))
    with pytest.raises(RowChangedError):
        apply_edit(place, edit, SOON)
    assert setting(place) is None


def test_a_store_whose_version_changed_since_is_left_alone(place: StorePlace) -> None:
    """The same bytes may mean something else by now."""
    edit = plan_edit(place, "setting", {"name": "colour"}, {"value": "blue"})
    log = log_of(Path(place.uri))
    change = CommitRequest(Operation.MIGRATE, "x", app_txns={AppTxn.STASH_VERSION: OLD})
    log.compare_and_append(log.state(log.verify()), change)
    with pytest.raises(RowChangedError):
        apply_edit(place, edit, SOON)
    assert edit.stored in [value for _, value in rows_at(Path(place.uri))["setting"]]


def test_the_value_that_is_there_already_needs_no_commit_and_fences_nobody(place: StorePlace) -> None:
    """There is nothing to do, and the plan says so."""
    left = files_of(Path(place.uri))
    edit = plan_edit(place, "setting", {"name": "colour"}, {"value": "red"})
    assert edit.is_same
    assert apply_edit(place, edit, SOON) == edit.ts
    assert files_of(Path(place.uri)) == left


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ({"id": {"user": 2}}, {"name": "ann"}, DuplicateError),
        ({"id": {"user": 2}}, {"name": "bob", "member_of": [{"user": 9}]}, DanglingReferenceError),
        ({"id": {"user": 1}}, None, DanglingReferenceError),
    ],
)
def test_constraints_hold(place: StorePlace, key: dict[str, Any], value: dict[str, Any] | None, error: type) -> None:
    """A violation names the rows before anyone is fenced, and changes nothing."""
    before = files_of(Path(place.uri))
    with pytest.raises(error):
        plan_delete(place, "role", key) if value is None else plan_edit(place, "role", key, value)
    assert files_of(Path(place.uri)) == before


def test_a_key_that_is_not_there_is_told_with_those_that_look_like_it(place: StorePlace) -> None:
    """A slip of the pen is found at once."""
    with pytest.raises(NoSuchRowError, match=r'no row \{"name": "color"\}(.|\n)*similar keys: \{"name": "colour"\}'):
        plan_edit(place, "setting", {"name": "color"}, {"value": "blue"})


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ({}, {"value": "x"}, "no SettingKey: name is missing"),
        ({"nam": "colour"}, {"value": "x"}, "there is no field nam; did you mean name"),
        ({"name": 3}, {"value": "x"}, "name"),
        ({"name": "colour"}, {"valeu": "x"}, r"there is no field valeu; did you mean value\?(.|\n)*are value"),
        ({"name": "colour"}, {"value": 3}, "value"),
    ],
)
def test_json_that_does_not_fit_is_refused(
    place: StorePlace, key: dict[str, Any], value: dict[str, Any], words: str
) -> None:
    """Before anything is done, with the field and those that there are."""
    with pytest.raises(UnfitJsonError, match=words):
        plan_edit(place, "setting", key, value)


def test_a_collection_that_is_not_there_is_told_with_those_that_are(place: StorePlace) -> None:
    """At the version of the store."""
    with pytest.raises(UnknownCollectionError, match="setting"):
        plan_edit(place, "settings", {"name": "colour"}, {})


def test_an_old_store_is_edited_with_its_own_types_and_stays_at_its_version(old: StorePlace) -> None:
    """The row is what a build of that version would have written."""
    types: Any = PROJECT.types(OLD)
    key, value = next(
        (types.RoleKey.FromString(key), types.RoleValue.FromString(value))
        for key, value in rows_at(Path(old.uri))["role"]
        if types.RoleKey.FromString(key).id.WhichOneof("value") == "user"
    )
    before = rows_at(Path(old.uri))
    shown = plan_edit(old, "role", {"id": {"user": key.id.user}}, {}).before
    apply_edit(old, plan_edit(old, "role", {"id": {"user": key.id.user}}, {**shown, "name": "renamed"}), SOON)
    value.name = "renamed"
    after = dict(rows_at(Path(old.uri))["role"])
    assert types.RoleValue.FromString(after[key.SerializeToString(deterministic=True)]) == value
    assert sum(found != after[own] for own, found in before["role"]) == 1
    log = log_of(Path(old.uri))
    assert log.state(log.verify()).app_txns[AppTxn.STASH_VERSION] == OLD
    assert findings_of(Path(old.uri)) == []


def test_rows_from_before_messages_are_refused_but_the_engines_own_are_not(tmp_path: Path) -> None:
    """JSON of v14 has other types, which only its migration knows."""
    generate(PROJECT, tmp_path / "store", 14, 100, 1)
    legacy = StorePlace(str(tmp_path / "store"), {}, PROJECT)
    with pytest.raises(LegacyRowsError):
        plan_edit(legacy, "role", {"id": {"user": 1}}, {"name": "x"})
    with leading(legacy, SOON) as leader:
        config = leader.stash.registry.named("config")
        with leader.stash.transaction(NOT_PROTECTED) as tx:
            tx.insert(config.key_type(name="note"), config.value_type(text="here"))
    edit = plan_edit(legacy, "config", {"name": "note"}, {"text": "there"}, protected=True)
    apply_edit(legacy, edit, SOON)
    assert plan_delete(legacy, "config", {"name": "note"}, protected=True).before == {"text": "there"}


@pytest.mark.parametrize(
    "collection", ["config", "fence_token", "migration_event", "builtin_mapping", "unfinalized_shard"]
)
def test_the_engines_own_rows_need_a_word_more(place: StorePlace, collection: str) -> None:
    """The error names the flag."""
    with pytest.raises(ProtectedRowError, match="--protected"):
        plan_edit(place, collection, {}, {})
    with pytest.raises(ProtectedRowError, match="--protected"):
        plan_delete(place, collection, {})


@pytest.mark.parametrize("value", [{"next_id": 1}, {}, None], ids=["set back", "emptied", "deleted"])
def test_an_allocator_that_goes_back_needs_a_word_more(place: StorePlace, value: dict[str, Any] | None) -> None:
    """Its ids would be given out again; moved on, it only leaves a gap."""
    key = {"name": "item"}
    plan_it = plan_delete if value is None else partial(plan_edit, value=value)
    with pytest.raises(AllocatorSetBackError, match="--protected"):
        plan_it(place, "id_alloc", key)
    apply_edit(place, plan_edit(place, "id_alloc", key, {"next_id": 900}), SOON)
    with open_catalog(place.uri, "member") as cat:
        assert cat.allocate("item") == 900
    apply_edit(place, plan_it(place, "id_alloc", key, protected=True), SOON)


@pytest.mark.parametrize(
    ("collection", "key", "value", "words"),
    [
        ("config", {"name": "stash_version"}, {"number": 17}, "catalog apply"),
        ("config", {"name": "stash_version"}, None, "catalog apply"),
        ("fence_token", {"scope": "store"}, {"epoch": 99}, "open the store as leader"),
        ("fence_token", {"scope": "store"}, None, "open the store as leader"),
    ],
)
def test_rows_that_the_log_knows_as_marks_stay_in_step_with_it(
    place: StorePlace, collection: str, key: dict[str, Any], value: dict[str, Any] | None, words: str
) -> None:
    """The refusal names what changes both."""
    plan_it = plan_delete if value is None else partial(plan_edit, value=value)
    with pytest.raises(MarkedRowError, match=words):
        plan_it(place, collection, key, protected=True)


def test_a_version_row_that_lost_step_with_the_log_can_be_mended(place: StorePlace) -> None:
    """That is the one change of it that makes the store sound: fsck finds it before, and nothing after."""
    with leading(place, SOON) as leader:
        config = leader.stash.registry.named("config")
        with leader.stash.transaction(NOT_PROTECTED) as tx:
            tx.update(config.key_type(name="stash_version"), config.value_type(number=3))
    assert [found.code.value for found in findings_of(Path(place.uri))] == ["F404"]
    edit = plan_edit(place, "config", {"name": "stash_version"}, {"number": STASH_VERSION}, protected=True)
    apply_edit(place, edit, SOON)
    assert findings_of(Path(place.uri)) == []


def test_whether_a_step_runs_is_not_edited(old: StorePlace) -> None:
    """What says so is also in the log's own marks, and has commands of its own."""
    with leading(old, SOON) as leader:
        number = begin(leader.system_rows, plan(PROJECT, leader.system_rows.state, OLD, OLD + 1)[0], "0.0.0")
    with pytest.raises(MarkedRowError, match="catalog repair"):
        plan_delete(old, "migration_event", {"id": number}, protected=True)
    with pytest.raises(MarkedRowError, match="catalog abort"):
        plan_edit(old, "migration_event", {"id": number}, {"state": "MIGRATION_STATE_ERROR"}, protected=True)


def test_an_edit_closes_the_run_of_a_step_whose_process_it_fenced(old: StorePlace) -> None:
    """Or nothing would ever be vacuumed again before the next leader."""
    with leading(old, SOON) as leader:
        begin(leader.system_rows, plan(PROJECT, leader.system_rows.state, OLD, OLD + 1)[0], "0.0.0")
        role = leader.stash.registry.named("role")
        key, _ = next(iter(leader.stash.view().rows("role")))
    shown = to_json(role.key_type.FromString(key))
    edit = plan_edit(old, "role", shown, {**plan_edit(old, "role", shown, {}).before, "name": "renamed"})
    apply_edit(old, edit, SOON)
    assert [event.value.error for event in events_of(Path(old.uri))] == ["its process ended before the step did"]
    log = log_of(Path(old.uri))
    assert log.state(log.verify()).app_txns[AppTxn.RUNNING_STEP] == 0


def test_a_live_leader_that_does_not_end_in_time_keeps_its_row(place: StorePlace) -> None:
    """Whoever has no time to wait changes nothing."""
    edit = plan_edit(place, "setting", {"name": "colour"}, {"value": "blue"})
    with leading(place, replace(SOON, heartbeat_s=0.25)) as leader:
        with pytest.raises(TimedOutError):
            apply_edit(place, edit, LeadershipOptions(None, 30, 0.25, deadline_s=0))
        leader.stash.refresh()
    assert setting(place).value == "red"


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    """And not made one."""
    with pytest.raises(NotAStoreError):
        plan_edit(StorePlace(str(tmp_path / "no"), {}, PROJECT), "setting", {"name": "a"}, {})
    assert not (tmp_path / "no").exists()
