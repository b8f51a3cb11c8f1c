"""Several steps taken back: all are judged first, the engine's own rows are no obstacle, and a stop says where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalog import open_catalog
from catalog.engine.builtins.declaration import BuiltinName
from catalog.engine.builtins.mapping_rows import MappingRows
from catalog.engine.builtins.plan import StoredBuiltin
from catalog.engine.log.protocol import FaultPoint
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.recorder import RunState
from catalog.engine.migrate.row_types import row_types
from catalog.engine.migrate.undo import judge, undo_to
from catalog.engine.stash.engine_rows import NOT_PROTECTED
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.engine.storage.layout import new_shard_id
from catalog.errors import NotUndoableError, OtherTypesError, StoreFullError, UndoStoppedError
from catalog.upgrade import PROJECT
from tests.cli.commands import call
from tests.engine.migrate.stores import (
    events_of,
    findings_of,
    lead,
    open_log,
    rows_of,
    stash_of,
    state_of,
    version_of,
)

Stores = Callable[[int], Path]
NEW = BuiltinName("catalog", 1, "brought_along")


def migrate_builtins(store: Path, version: int, shard: str) -> None:
    """Write what a start of a leader writes about a new builtin, in its two commits."""
    stash = stash_of(store, version)
    with stash.transaction(NOT_PROTECTED) as tx:
        MappingRows(tx).name([NEW])
    with stash.transaction(NOT_PROTECTED) as tx:
        rows: Any = tx.rows(stash.registry.named("builtin_mapping").key_type)
        id_ = next(value.id for key, value in rows if key.object_name == NEW.object_name)
        MappingRows(tx).map(NEW, StoredBuiltin(id_, "f1", shard))


def next_id(store: Path, version: int, name: str) -> int:
    kind = row_types(PROJECT, version)["id_alloc"]
    decoded = (kind.decode(*row) for row in rows_of(store)["id_alloc"])
    return int(next(value.next_id for key, value in decoded if key.name == name))


def without(rows: Any, *names: str) -> dict[str, Any]:  # noqa: ANN401
    return {name: own for name, own in rows.items() if name not in names}


def test_the_whole_chain_is_judged_before_the_first_undo(copy_of: Stores) -> None:
    """The three newest steps could be undone, the fourth could not: none is, and nobody is told otherwise."""
    store = copy_of(15)
    upgrade(lead(store), until=20)
    types: Any = PROJECT.types(20)
    stash = stash_of(store, 20)
    with stash.transaction() as tx:
        tx.insert(types.RoleKey(id=types.RoleId(user=77_000)), types.RoleValue(name="later"))
    before, runner = rows_of(store), lead(store)
    judge(runner.journal, PROJECT, 17)
    ts = state_of(store).version
    for target in (16, 15):
        with pytest.raises(
            NotUndoableError, match=f"v16_to_v17 cannot be undone: role was written to at ts {stash.ts}"
        ):
            undo_to(runner.journal, PROJECT, target)
    assert (version_of(store), rows_of(store), state_of(store).version) == (20, before, ts)
    assert [event.value.name for event in undo_to(runner.journal, PROJECT, 17)] == [
        "v19_to_v20",
        "v18_to_v19",
        "v17_to_v18",
    ]


@pytest.mark.parametrize("version", [14, 15])
def test_rows_that_the_engine_wrote_itself_are_no_obstacle(copy_of: Stores, version: int) -> None:
    """A start gives ids to builtins and records their shards; ids stay given out, and the shards are to be deleted."""
    store, shard = copy_of(version), new_shard_id()
    before, first = rows_of(store), next_id(store, version, "item")
    upgrade(lead(store), until=20)
    migrate_builtins(store, 20, shard)
    undo_to(lead(store).journal, PROJECT, version)
    own = ("id_alloc", "unfinalized_shard", "builtin_mapping", "storage_metadata")
    assert (version_of(store), without(rows_of(store), *own)) == (version, without(before, *own))
    assert next_id(store, version, "item") == first + 1
    if version == 14:
        assert without(rows_of(store), *own[:2]) == without(before, *own[:2])
        kind = row_types(PROJECT, version)["unfinalized_shard"]
        assert shard in {kind.decode(*row)[0].shard for row in rows_of(store)["unfinalized_shard"]}
    else:
        assert findings_of(store) == []
    upgrade(lead(store), until=20, reapply=True)
    assert findings_of(store) == []


def test_ids_that_were_given_out_are_no_obstacle_and_stay_given_out(copy_of: Stores) -> None:
    """Also where the step rewrote the allocators themselves."""
    store = copy_of(14)
    upgrade(lead(store), until=15)
    names = ("item", "comment")
    given = {name: stash_of(store, 15).allocate(name, 10) for name in names}
    undo_to(lead(store).journal, PROJECT, 14)
    assert {name: next_id(store, 14, name) for name in names} == {name: first + 10 for name, first in given.items()}


def test_a_builtin_whose_data_were_replaced_is_an_obstacle(copy_of: Stores) -> None:
    """The shard that its earlier row names is deleted."""
    store = copy_of(14)
    shard = row_types(PROJECT, 14)["storage_metadata"].decode(*rows_of(store)["storage_metadata"][0])[1].shard
    upgrade(lead(store), until=16)
    with stash_of(store, 16).transaction(NOT_PROTECTED) as tx:
        MappingRows(tx).condemn({shard: "replaced"})
    before = rows_of(store)
    with pytest.raises(NotUndoableError, match="v14_to_v15 cannot be undone: the data of a builtin were replaced"):
        undo_to(lead(store).journal, PROJECT, 14)
    assert (version_of(store), rows_of(store)) == (16, before)


def test_a_chain_that_stops_half_way_says_where_the_store_is(copy_of: Stores) -> None:
    """With the steps that were undone, the cause, and both ways on; and the chain can be gone on with."""
    store = copy_of(15)
    before = rows_of(store)
    upgrade(lead(store), until=19)
    landed = 0

    def full(point: FaultPoint) -> None:
        nonlocal landed
        landed += point is FaultPoint.COMMIT_AFTER_SYNC
        if landed == 3 and point is FaultPoint.WRITE_BEFORE_FILE:
            raise StoreFullError(str(store), "write to", "no space")

    with pytest.raises(UndoStoppedError) as caught:
        undo_to(lead(store, log=open_log(store, full)).journal, PROJECT, 15)
    assert str(caught.value).splitlines()[:2] == [
        f"the undo to version 15 stopped half way, and the store is at version 17: cannot write to {store}: no space",
        "why:  each step is undone in a commit of its own; undone, and to stay so: v18_to_v19, v17_to_v18",
    ]
    assert caught.value.next == (
        "remove the cause and go on with `catalog undo --to 15`, or back to version 19 with `catalog apply --reapply`"
    )
    assert (version_of(store), findings_of(store)) == (17, [])
    undo_to(lead(store).journal, PROJECT, 15)
    assert (version_of(store), rows_of(store)) == (15, before)
    assert {event.state for event in events_of(store)} == {RunState.UNDONE}


@pytest.mark.spark
def test_what_a_start_applied_can_be_undone_to_the_first_version_and_applied_again(copy_of: Stores) -> None:
    """The start itself wrote the builtins, and so does the next one."""
    store = copy_of(14)
    before = rows_of(store)
    with open_catalog(store) as cat:
        given = cat.allocate("item")
    assert call("undo", "--to", "14", "--yes", "--store", store)["version"] == 14
    own = ("id_alloc", "unfinalized_shard")
    assert without(rows_of(store), *own) == without(before, *own)
    with open_catalog(store, reapply=True) as cat:
        assert cat.allocate("item") > given
        assert cat.builtin("migration_history").num_rows > 0
    assert findings_of(store) == []


def records(store: Path, ts: int | None = None) -> dict[str, str]:
    """The recorded types at a ts, by default now."""
    kind: Any = Registry.of(PROJECT.current_types).named("config")
    log = open_log(store)
    view = load_view(BaseFileCache(log), log.state(log.verify() if ts is None else ts))
    decoded = [kind.decode(*row) for row in view.rows("config")]
    return {key.name: value.text.split()[0] for key, value in decoded if key.name.startswith("types_")}


def test_the_record_of_the_types_changes_in_the_commit_that_changes_the_version(copy_of: Stores) -> None:
    """With each step, and back again with each undo; the records of earlier versions stay for them."""
    store = copy_of(14)
    journal = lead(store).journal
    upgrade(lead(store), until=17)
    undo_to(lead(store).journal, PROJECT, 15)
    seen = set[int]()
    for version in range(journal.state.version + 1, open_log(store).verify() + 1):
        state = open_log(store).state(version)
        at = state.stash_version
        assert at is not None
        known = {f"types_v{own}": PROJECT.types_hash(own) for own in range(PROJECT.first_proto, at + 1)}
        assert records(store, version) == known, f"ts {version}, version {at}"
        seen.add(at)
    assert seen == {14, 15, 16, 17}


def test_nothing_is_undone_to_a_version_that_had_other_types(copy_of: Stores) -> None:
    """Another build made it: this one could not read the rows that would come back. The whole chain is judged."""
    store = copy_of(15)
    upgrade(lead(store), until=18)
    stash = stash_of(store, 18)
    config: Any = stash.registry.named("config")
    with stash.transaction(NOT_PROTECTED) as tx:
        tx.update(config.key_type(name="types_v16"), config.value_type(text="sha256:other 7.0.0"))
    runner, before = lead(store), rows_of(store)
    with pytest.raises(OtherTypesError, match="other types than version 16 of this build"):
        undo_to(runner.journal, PROJECT, 15)
    assert (version_of(store), rows_of(store)) == (18, before)
    assert len(undo_to(runner.journal, PROJECT, 17)) == 1
