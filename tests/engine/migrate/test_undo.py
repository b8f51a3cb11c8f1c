"""Steps taken back: exactly the rows of before, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catalog.actions import delete, insert
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.protocol import AppTxn
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.recorder import RunState
from catalog.engine.migrate.undo import undo
from catalog.engine.stash.registry import encode
from catalog.errors import NotUndoableError
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import (
    append,
    events_of,
    findings_of,
    lead,
    project_with,
    rows_of,
    stash_of,
    state_of,
    version_of,
)

Stores = Callable[[int], Path]
STEPS = [version for version in range(PROJECT.minimum, PROJECT.current) if version != 20]
new: Any = PROJECT.types(22)


def undone(store: Path, steps: int = 1) -> None:
    runner = lead(store)
    for _ in range(steps):
        undo(runner.journal, PROJECT)


def consolidated(store: Path, version: int) -> None:
    stash = stash_of(store, version)
    for name in sorted({file.collection for file in state_of(store).files.values()}):
        stash.consolidate(name)


def require_undone(store: Path, version: int) -> None:
    """A step is taken back and applied again, and each time the rows are those that they were."""
    before, marks = rows_of(store), state_of(store).app_txns
    upgrade(lead(store), until=version + 1, reapply=True)
    expected = rows_of(store)
    consolidated(store, version + 1)
    undone(store)
    assert (version_of(store), rows_of(store)) == (version, before)
    assert {**state_of(store).app_txns, AppTxn.EPOCH: 0} == {**marks, AppTxn.EPOCH: 0, AppTxn.RUNNING_STEP: 0}
    if version >= PROJECT.first_proto:
        assert findings_of(store) == []
    upgrade(lead(store), until=version + 1, reapply=True)
    assert (version_of(store), rows_of(store)) == (version + 1, expected)
    assert findings_of(store) == []
    assert [event.state for event in events_of(store)] == [RunState.UNDONE, RunState.MIGRATED]


@pytest.mark.parametrize("version", STEPS)
def test_a_step_is_undone_and_applied_again(copy_of: Stores, version: int) -> None:
    """Rows, version and allocators are those of before; a consolidation in between does not matter."""
    require_undone(copy_of(version), version)


def orphaned(store: Path, *numbers: int) -> None:
    """Items whose schema is not there."""
    types: Any = PROJECT.types(20)
    role = types.RoleKey.FromString(rows_of(store)["role"][0][0])
    for number in numbers:
        value = types.ItemValue(schema_id=10**9, name=f"lost {number}", owner_id=role.id)
        append(store, "item", (encode(types.ItemKey(id=number)), encode(value), 1))


@pytest.mark.spark
def test_a_step_on_frames_is_undone_and_applied_again(copy_of: Stores) -> None:
    """With rows that it deletes and rows that it adds."""
    store = copy_of(20)
    orphaned(store, 10**6, 10**6 + 1)
    require_undone(store, 20)


@pytest.mark.spark
@pytest.mark.parametrize("orphans", [(), (10**6, 10**6 + 1)], ids=["none deleted", "two deleted"])
def test_rows_that_are_appended_to_the_audit_log_later_stay(copy_of: Stores, orphans: tuple[int, ...]) -> None:
    """They keep no step from being undone, whether it added some itself or not."""
    store = copy_of(20)
    orphaned(store, *orphans)
    before = rows_of(store)
    upgrade(lead(store), until=21)
    assert len(rows_of(store)["audit_log"]) >= len(before["audit_log"]) + len(orphans)
    types: Any = PROJECT.types(21)
    stash = stash_of(store, 21)
    key = types.AuditLogKey(id=stash.allocate("audit_log", 10))
    with stash.transaction() as tx:
        tx.insert(key, types.AuditLogValue(object_name="later"))
    undone(store)
    after = rows_of(store)
    appended = encode(key), encode(types.AuditLogValue(object_name="later"))
    assert after["audit_log"] == sorted([*before["audit_log"], appended])
    assert {**after, "audit_log": [], "id_alloc": []} == {**before, "audit_log": [], "id_alloc": []}
    assert findings_of(store) == []


def test_several_steps_are_undone_the_newest_first(copy_of: Stores) -> None:
    """Also where each changed the same collections."""
    store = copy_of(15)
    before = rows_of(store)
    upgrade(lead(store), until=20)
    undone(store, 5)
    assert (version_of(store), rows_of(store)) == (15, before)
    assert {event.state for event in events_of(store)} == {RunState.UNDONE}
    assert findings_of(store) == []


def test_a_step_whose_rows_were_written_to_is_not_undone(copy_of: Stores) -> None:
    """It says which, and since when."""
    store = copy_of(18)
    upgrade(lead(store), until=19)
    stash = stash_of(store, 19)
    with stash.transaction() as tx:
        key, _ = next(iter(tx.rows(PROJECT.types(19).CommentKey)))
        tx.delete(key)
    before = rows_of(store)
    with pytest.raises(NotUndoableError, match=f"comment was written to at ts {stash.ts}"):
        undone(store)
    assert (version_of(store), rows_of(store)) == (19, before)


def test_rows_of_other_collections_that_were_written_meanwhile_stay(copy_of: Stores) -> None:
    """The step has nothing to do with them."""
    store = copy_of(18)
    before = rows_of(store)
    upgrade(lead(store), until=19)
    types: Any = PROJECT.types(19)
    with stash_of(store, 19).transaction() as tx:
        tx.insert(types.SettingKey(name="later"), types.SettingValue(value="1"))
    undone(store)
    later = encode(types.SettingKey(name="later")), encode(types.SettingValue(value="1"))
    assert rows_of(store) == {**before, "setting": sorted([*before["setting"], later])}


def test_an_allocator_that_moved_on_stays_where_it_is(copy_of: Stores) -> None:
    """Gaps are allowed, and doubles are not."""
    store = copy_of(19)
    upgrade(lead(store), until=20)
    first = stash_of(store, 20).allocate("cluster_replica", 10)
    undone(store)
    types: Any = PROJECT.types(19)
    found = dict(rows_of(store)["id_alloc"])[encode(types.IdAllocKey(name="cluster_replica"))]
    assert types.IdAllocValue.FromString(found).next_id == first + 10


def test_a_row_that_a_step_added_and_somebody_changed_keeps_it_from_being_undone(copy_of: Stores) -> None:
    """Or their work would be lost."""
    store = copy_of(21)
    row = new.SettingKey(name="added"), new.SettingValue(value="1")
    project = project_with(21, insert("setting", lambda: [row]))
    upgrade(lead(store, project))
    with stash_of(store, 22).transaction() as tx:
        tx.update(row[0], new.SettingValue(value="2"))
    with pytest.raises(NotUndoableError, match="rows that it added to setting were changed since"):
        undo(lead(store, project).journal, project)


def test_a_step_is_not_undone_when_its_files_are_no_longer_retained(copy_of: Stores) -> None:
    """Retention decides how long one can go back."""
    store = copy_of(17)
    runner = lead(store)
    upgrade(runner, until=18)
    expected = rows_of(store)
    clean(runner.journal.log, runner.journal.state, replace(Policy(), retention_ms=0))
    with pytest.raises(NotUndoableError, match="no longer retained"):
        undone(store)
    assert (version_of(store), rows_of(store)) == (18, expected)


def test_a_version_that_no_step_led_to_is_not_undone(copy_of: Stores) -> None:
    """There is nothing before it."""
    with pytest.raises(NotUndoableError, match="no step led to this version"):
        undone(copy_of(17))


def test_what_earlier_rows_refer_to_must_still_be_there(copy_of: Stores) -> None:
    """A row that only rows of before the step referred to was deleted since."""
    store = copy_of(21)
    owner = new.RoleKey(id=new.RoleId(user=77_001))
    database = encode(new.DatabaseKey(id=77_001))
    append(store, "role", (encode(owner), encode(new.RoleValue(name="owner")), 1))
    value = encode(new.DatabaseValue(name="owned", owner_id=owner.id))
    append(store, "database", (database, value, 1))
    project = project_with(21, delete("database", lambda key, _value: key.id == 77_001))
    upgrade(lead(store, project))
    with stash_of(store, 22).transaction() as tx:
        tx.delete(owner)
    with pytest.raises(NotUndoableError, match="refers to role"):
        undo(lead(store, project).journal, project)
    assert (version_of(store), findings_of(store)) == (22, [])


def test_what_later_rows_refer_to_must_still_be_there(copy_of: Stores) -> None:
    """A row that the step added is referred to by one that was written since."""
    store = copy_of(21)
    row = new.RoleKey(id=new.RoleId(user=77_001)), new.RoleValue(name="added")
    project = project_with(21, insert("role", lambda: [row]))
    upgrade(lead(store, project))
    with stash_of(store, 22).transaction() as tx:
        tx.insert(new.DatabaseKey(id=77_001), new.DatabaseValue(name="owned", owner_id=row[0].id))
    with pytest.raises(NotUndoableError, match="refers to role"):
        undo(lead(store, project).journal, project)
    assert (version_of(store), findings_of(store)) == (22, [])
