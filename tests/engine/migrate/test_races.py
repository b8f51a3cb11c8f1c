"""Others write, or take over, while a step runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from catalog.actions import delete, insert
from catalog.engine.base.project import Project
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, FileKind, Operation
from catalog.engine.migrate import step_runner
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.recorder import RunState, close_dead
from catalog.engine.migrate.step_runner import StepPoint
from catalog.engine.stash.registry import encode
from catalog.engine.store.catalog import Mode
from catalog.engine.store.leadership import LeadershipOptions
from catalog.engine.store.open import open_store
from catalog.errors import FencedError, StepDisturbedError, StepRefusedError
from catalog.upgrade import PROJECT
from tests.engine.migrate.direct import DirectJobs
from tests.engine.migrate.stores import (
    append,
    events_of,
    findings_of,
    lead,
    open_log,
    project_with,
    rows_of,
    stash_of,
    state_of,
    version_of,
)

Stores = Callable[[int], Path]
new: Any = PROJECT.types(22)


@dataclass
class Meanwhile:
    """Does something just before a step is committed, so many times."""

    act: Callable[[], None]
    times: int = 1
    point: StepPoint = StepPoint.BEFORE_COMMIT
    runs: int = field(default=0, init=False)

    def __call__(self, point: StepPoint) -> None:
        if point is self.point:
            self.runs += 1
            if self.runs <= self.times:
                self.act()


def write(store: Path, version: int, collection: str, **members: Any) -> Callable[[], None]:  # noqa: ANN401
    """A member of the old version writes a row."""
    types: Any = PROJECT.types(version)
    numbers = iter(range(77_000, 78_000))

    def act() -> None:
        with stash_of(store, version).transaction() as tx:
            number, key, value = (
                next(numbers),
                *(getattr(types, f"{collection}{side}")() for side in ("Key", "Value")),
            )
            named = value if "name" in value.DESCRIPTOR.fields_by_name else key
            named.name = str(number)
            if named is value:
                key.id = number
            value.MergeFrom(type(value)(**members))
            tx.insert(key, value)

    return act


def test_a_commit_that_loses_a_race_is_made_again_with_the_same_files(copy_of: Stores) -> None:
    """Nothing that the step read or wrote was touched."""
    store = copy_of(18)
    meanwhile = Meanwhile(write(store, 18, "Setting", value="1"), times=5)
    runner = lead(store, reached=meanwhile)
    begun = runner.journal.state.version + 1
    upgrade(runner, until=19)
    assert meanwhile.runs == 1
    state = state_of(store)
    assert {file.ts_max for file in state.files.values() if file.collection == "comment"} == {begun}
    assert open_log(store).commit(state.version).operation is Operation.MIGRATE
    assert state.version == begun + 2
    assert findings_of(store) == []


def test_a_commit_that_loses_several_races_is_made_as_often(copy_of: Stores) -> None:
    """Rows that are added carry the ts of the commit that lands."""
    store = copy_of(21)
    row = new.ServerConfigurationKey(name="added"), new.ServerConfigurationValue(value="1")
    act = write(store, 21, "Setting", value="1")

    def thrice() -> None:
        for _ in range(3):
            act()

    meanwhile = Meanwhile(thrice)
    upgrade(lead(store, project_with(21, insert("server_configuration", lambda: [row])), reached=meanwhile))
    state = state_of(store)
    (tail,) = (file for file in open_log(store).commit(state.version).adds if file.collection == "server_configuration")
    assert (tail.kind, tail.ts_min, tail.ts_max) == (FileKind.TAIL, state.version, state.version)
    assert dict(rows_of(store)["server_configuration"])[encode(row[0])] == encode(row[1])
    assert findings_of(store) == []


def test_a_write_to_what_a_step_changes_makes_it_run_again(copy_of: Stores) -> None:
    """The row is there afterwards, with the new type."""
    store = copy_of(18)
    types: Any = PROJECT.types(18)
    owner = types.RoleKey.FromString(rows_of(store)["role"][0][0]).id
    schema = types.SchemaKey.FromString(rows_of(store)["schema"][0][0]).id
    act = write(store, 18, "Item", schema_id=schema, owner_id=owner, comment="on time")
    meanwhile = Meanwhile(act)
    upgrade(lead(store, reached=meanwhile), until=19)
    assert meanwhile.runs == 2
    later: Any = PROJECT.types(19)
    assert encode(later.CommentKey(item_id=77_000)) in dict(rows_of(store)["comment"])
    assert [event.state for event in events_of(store)] == [RunState.MIGRATED]
    assert findings_of(store) == []


def test_a_row_that_comes_to_refer_to_one_that_a_step_deletes_is_seen(copy_of: Stores) -> None:
    """Its collection was only looked at."""
    store = copy_of(21)
    owner = new.RoleKey(id=new.RoleId(user=77_000))
    append(store, "role", (encode(owner), encode(new.RoleValue(name="to go")), 1))
    old_owner = PROJECT.types(21).RoleId(user=77_000)
    meanwhile = Meanwhile(write(store, 21, "Database", owner_id=old_owner))
    project = project_with(21, delete("role", lambda key, _value: key.id.user == 77_000))
    with pytest.raises(StepRefusedError, match=r'database \{"id": 77000\}: value.owner_id refers to role'):
        upgrade(lead(store, project, reached=meanwhile))
    assert (version_of(store), findings_of(store)) == (21, [])


def test_ids_that_are_given_out_while_a_step_runs_are_not_given_out_again(copy_of: Stores) -> None:
    """The step takes those that follow."""
    store = copy_of(19)
    taken = []
    meanwhile = Meanwhile(lambda: taken.append(stash_of(store, 19).allocate("cluster_replica", 10)))
    upgrade(lead(store, reached=meanwhile), until=20)
    types: Any = PROJECT.types(20)
    ids = sorted(types.ClusterReplicaKey.FromString(key).id for key, _ in rows_of(store)["cluster_replica"])
    assert ids == list(range(taken[0] + 10, taken[0] + 10 + len(ids)))
    following = dict(rows_of(store)["id_alloc"])[encode(types.IdAllocKey(name="cluster_replica"))]
    assert types.IdAllocValue.FromString(following).next_id == ids[-1] + 1


def test_a_step_that_is_disturbed_again_and_again_gives_up(copy_of: Stores) -> None:
    """It says what was written to, and that nothing was done."""
    store = copy_of(18)
    types: Any = PROJECT.types(18)
    owner = types.RoleKey.FromString(rows_of(store)["role"][0][0]).id
    act = write(store, 18, "Item", owner_id=owner)
    meanwhile = Meanwhile(act, times=3)
    with pytest.raises(StepDisturbedError, match="item changed while it ran, 3 times in a row") as caught:
        upgrade(lead(store, reached=meanwhile), until=19)
    (event,) = events_of(store)
    assert (event.state, event.value.error) == (RunState.ERROR, caught.value.what)
    assert (version_of(store), state_of(store).app_txns[AppTxn.RUNNING_STEP]) == (18, 0)
    assert len(rows_of(store)["item"]) == len(rows_of(copy_of(18))["item"]) + 3


def test_a_consolidation_of_what_a_step_read_makes_it_run_again(copy_of: Stores) -> None:
    """The files that it would remove are gone."""
    store = copy_of(18)
    expected = copy_of(18)
    upgrade(lead(expected), until=19)
    meanwhile = Meanwhile(lambda: stash_of(store, 18).consolidate("item"))
    upgrade(lead(store, reached=meanwhile), until=19)
    assert (meanwhile.runs, rows_of(store)) == (2, rows_of(expected))


def test_a_leader_that_is_fenced_while_tasks_run_stops_before_the_next_one(
    copy_of: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files never become part of the store."""
    monkeypatch.setattr(step_runner, "_POLL_S", -1)  # these tasks are done sooner than the fence is polled
    store = copy_of(16)
    before, begun = rows_of(store), list[str]()

    def count() -> None:
        begun.append("a task")
        if len(begun) == 2:
            lead(store)

    with pytest.raises(FencedError):
        upgrade(lead(store, jobs=DirectJobs(count)), until=17)
    assert len(begun) == 2
    assert (version_of(store), rows_of(store)) == (16, before)
    upgrade(lead(store), until=17)
    clean(open_log(store), state_of(store), Policy())
    assert [event.state for event in events_of(store)] == [RunState.ERROR, RunState.MIGRATED]
    assert findings_of(store) == []


@pytest.mark.parametrize("point", [StepPoint.AFTER_BEGIN, StepPoint.AFTER_TASKS, StepPoint.BEFORE_COMMIT])
def test_a_leader_whose_files_were_swept_learns_that_it_was_fenced(copy_of: Stores, point: StepPoint) -> None:
    """And not that the store is damaged; what the other leader recorded stays."""
    store = copy_of(16)
    before = rows_of(store)

    def take_over() -> None:
        close_dead(lead(store).journal)
        clean(open_log(store), state_of(store), Policy())

    with pytest.raises(FencedError):
        upgrade(lead(store, reached=Meanwhile(take_over, point=point)), until=17)
    assert (version_of(store), rows_of(store)) == (16, before)
    (event,) = events_of(store)
    assert event.value.error == "its process ended before the step did"


def test_two_leaders_that_start_at_once_upgrade_a_store_once(copy_of: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """One does it, and the other waits for it or finds it done."""
    store = copy_of(14)
    expected = copy_of(14)
    upgrade(lead(expected), until=20)
    monkeypatch.setattr("catalog.engine.spark.jobs.SparkJobs", lambda _make_session: DirectJobs())
    monkeypatch.setattr(Project, "require_frozen_types", lambda _project: None)  # those of 22
    project, start = replace(PROJECT, current=20, builtins=None), threading.Barrier(3)
    opened, failed = [], []

    def open_and_close() -> None:
        start.wait()
        try:
            catalog = open_store(StorePlace.at(project, store), Mode.LEADER, LeadershipOptions(0, 60, 0.2))
            opened.append(catalog.version)
            catalog.close()
        except Exception as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=open_and_close) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (opened, failed) == ([20, 20, 20], [])
    assert [event.state for event in events_of(store)] == [RunState.MIGRATED] * 6
    assert rows_of(store) == rows_of(expected)
    assert findings_of(store) == []
